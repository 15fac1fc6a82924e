//! Several queries as one: in parallel, and in order.

use std::cmp::Ordering;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use tavola_wire::table::stored::key::compare_text;

use crate::core::error::Result;
use crate::table::entity::{Stored, TableEntity};
use crate::table::filter::Filter;
use crate::table::{QueryOptions, TableClient};

impl TableClient {
    /// Asks many partitions in parallel and gives their entities as one stream, in the order of partition and row key.
    ///
    /// The filter of the options, if there is one, is asked within each partition. Up to `concurrency` partitions are read
    /// ahead, each by one page. On Azure this is the way to ask for several partitions: an `or` over them scans the table.
    ///
    /// ```no_run
    /// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use futures::TryStreamExt;
    /// use tavola_client::{Entity, filter};
    ///
    /// let departments = ["Sales", "Marketing"];
    /// let mut found = table.query_partitions::<Entity>(departments, 4, filter!(Age >= 30));
    /// while let Some(employee) = found.try_next().await? {
    ///     println!("{} {}", employee.partition_key(), employee.row_key());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn query_partitions<T: TableEntity + Send + 'static>(
        &self,
        partition_keys: impl IntoIterator<Item = impl Into<String>>,
        concurrency: usize,
        options: impl Into<Option<QueryOptions>>,
    ) -> BoxStream<'static, Result<Stored<T>>> {
        let mut keys: Vec<String> = partition_keys.into_iter().map(Into::into).collect();
        keys.sort_by(|a, b| compare_text(a, b));
        keys.dedup();
        let (table, options) = (self.clone(), options.into().unwrap_or_default());
        let queries = keys.into_iter().map(move |key| {
            let rest = options.filter.clone().unwrap_or(Filter::ALL);
            let options =
                QueryOptions { filter: Some(Filter::partition(&key) & rest), ..options.clone() };
            let mut pager = table.query_entities::<T>(options);
            async move {
                let first = pager.next().await;
                stream::iter(first).chain(pager)
            }
        });
        stream::iter(queries).buffered(concurrency.max(1)).flatten().boxed()
    }
}

/// Merges streams that are sorted into one that is, by the order that is given.
///
/// All streams are polled together, so that their pages are fetched in parallel. After an error the stream it came from is
/// over, and the others go on.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> azure_core::Result<()> {
/// use futures::{StreamExt, TryStreamExt, stream};
/// use tavola_client::merge_sorted;
///
/// let odd = stream::iter([1, 3, 5]).map(Ok).boxed();
/// let even = stream::iter([2, 4]).map(Ok).boxed();
/// let all: Vec<i32> = merge_sorted(vec![odd, even], Ord::cmp).try_collect().await?;
/// assert_eq!(all, [1, 2, 3, 4, 5]);
/// # Ok(())
/// # }
/// ```
pub fn merge_sorted<T, F>(
    streams: Vec<BoxStream<'static, Result<T>>>,
    compare: F,
) -> BoxStream<'static, Result<T>>
where
    T: Send + Unpin + 'static,
    F: Fn(&T, &T) -> Ordering + Send + Unpin + 'static,
{
    let sources = streams.into_iter().map(|stream| Source { stream: Some(stream), head: None });
    Merge { sources: sources.collect(), compare }.boxed()
}

struct Merge<T, F> {
    sources: Vec<Source<T>>,
    compare: F,
}

struct Source<T> {
    /// `None` once it is over.
    stream: Option<BoxStream<'static, Result<T>>>,
    head: Option<T>,
}

impl<T: Unpin, F: Fn(&T, &T) -> Ordering + Unpin> Stream for Merge<T, F> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        let this = &mut *self;
        let mut is_pending = false;
        for source in &mut this.sources {
            match source.poll_head(context) {
                Poll::Pending => is_pending = true,
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(Ok(())) => {}
            }
        }
        if is_pending {
            return Poll::Pending;
        }
        let heads = this.sources.iter_mut().filter(|source| source.head.is_some());
        let least = heads.min_by(|a, b| match (&a.head, &b.head) {
            (Some(a), Some(b)) => (this.compare)(a, b),
            _ => Ordering::Equal,
        });
        Poll::Ready(least.and_then(|source| source.head.take()).map(Ok))
    }
}

impl<T> Source<T> {
    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        if self.head.is_some() {
            return Poll::Ready(Ok(()));
        }
        let Some(stream) = &mut self.stream else { return Poll::Ready(Ok(())) };
        match stream.as_mut().poll_next(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(head))) => {
                self.head = Some(head);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Some(Err(error))) => {
                self.stream = None;
                Poll::Ready(Err(error))
            }
            Poll::Ready(None) => {
                self.stream = None;
                Poll::Ready(Ok(()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;
    use proptest::prelude::*;

    use super::*;
    use crate::core::error::refused;

    fn merge(lists: Vec<Vec<u8>>) -> Vec<u8> {
        let streams = lists.into_iter().map(|list| stream::iter(list).map(Ok).boxed()).collect();
        futures::executor::block_on(merge_sorted(streams, u8::cmp).try_collect()).unwrap()
    }

    proptest! {
        #[test]
        fn merging_is_sorting(mut lists in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..5)) {
            lists.iter_mut().for_each(|list| list.sort_unstable());
            let mut expected = lists.concat();
            expected.sort_unstable();
            prop_assert_eq!(merge(lists), expected);
        }
    }

    #[test]
    fn an_error_ends_its_stream_and_no_other() {
        let broken = stream::iter([Ok(1), Err(refused("broken")), Ok(2)]).boxed();
        let whole = stream::iter([Ok(3), Ok(4)]).boxed();
        let merged: Vec<_> = futures::executor::block_on(
            merge_sorted(vec![broken, whole], u8::cmp).map(|item| item.ok()).collect(),
        );
        assert_eq!(merged, [Some(1), None, Some(3), Some(4)]);
    }
}
