//! Lists that come in pages: as a stream of items or of pages, which can be stopped anywhere and resumed exactly there.
//!
//! The service can resume at the start of a page only, by a token of its own that nobody else understands. So a
//! [`Continuation`] is that token and the number of items of the page that were taken: resuming asks for the page again
//! and leaves those out.

use std::fmt;
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll, ready};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::Stream;
use futures::future::BoxFuture;

use super::error::{Result, conversion};

/// A stream of items, which come in pages behind the scenes.
///
/// Stopping after any item and resuming by [`continuation`](Pager::continuation) gives the next item: none twice, none
/// lost, as long as nobody changes what is before it in its page. An entity that is added or deleted there in between
/// moves the others: then one can come twice or be passed over, as between the pages of any list that is changed while it
/// is read. Those who cannot have that stop at the [end of a page](Pager::by_page).
///
/// An error ends the stream; the continuation then tells where to go on.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> tavola_client::Result<()> {
/// use tavola_client::{Continuation, Entity, Pager, QueryOptions, TryStreamExt};
///
/// let mut everyone: Pager<_> = people.query_entities::<Entity>(None);
/// let first = everyone.try_next().await?;
/// let second = everyone.try_next().await?;
///
/// // A text to keep, in a link of a web page or in a file; `None` when there is nothing more.
/// let Some(kept) = everyone.continuation().map(|position| position.to_string()) else {
///     return Ok(());
/// };
///
/// // Later, in another process: the third, and so on.
/// let rest = QueryOptions { continuation: Some(kept.parse()?), ..Default::default() };
/// let mut rest = people.query_entities::<Entity>(rest);
/// let third = rest.try_next().await?;
/// let position: Option<Continuation> = rest.into_continuation();
/// # Ok(())
/// # }
/// ```
pub struct Pager<P: Page> {
    fetch: Fetch<P>,
    fetching: Option<BoxFuture<'static, Result<Fetched<P>>>>,
    /// Where the next page is; `None` after the last.
    next: Option<Continuation>,
    /// What is left of the page, and where the first of it is.
    items: std::vec::IntoIter<P::Item>,
    position: Continuation,
    is_failed: bool,
}

/// A page of a list.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> tavola_client::Result<()> {
/// use tavola_client::{Entity, Page, Pager, Result, TryStreamExt};
///
/// /// The first items of any list.
/// async fn first<P: Page>(list: Pager<P>, count: usize) -> Result<Vec<P::Item>> {
///     let mut found = Vec::new();
///     let mut list = list;
///     while found.len() < count && let Some(item) = list.try_next().await? {
///         found.push(item);
///     }
///     Ok(found)
/// }
///
/// let ten = first(people.query_entities::<Entity>(None), 10).await?;
/// # Ok(())
/// # }
/// ```
pub trait Page {
    #[doc(hidden)]
    type Item;

    #[doc(hidden)]
    fn items_mut(&mut self) -> &mut Vec<Self::Item>;
}

type Fetch<P> = Box<dyn Fn(Option<String>) -> BoxFuture<'static, Result<Fetched<P>>> + Send + Sync>;

/// A page, and the service's token for the one after it.
pub(crate) struct Fetched<P> {
    pub page: P,
    pub next: Option<String>,
}

impl<P: Page> Pager<P> {
    /// A list whose pages are asked for by the service's token, the first without.
    pub(crate) fn new<F>(start: Option<Continuation>, fetch: F) -> Self
    where
        F: Fn(Option<String>) -> BoxFuture<'static, Result<Fetched<P>>> + Send + Sync + 'static,
    {
        Self {
            fetch: Box::new(fetch),
            fetching: None,
            next: Some(start.unwrap_or_default()),
            items: Vec::new().into_iter(),
            position: Continuation::default(),
            is_failed: false,
        }
    }

    /// Where the item is that comes next; `None` if the last has been given.
    ///
    /// Before the first it is the start of the list. After the last item of a page it can be the start of a page that
    /// turns out to be empty, because only the service knows.
    pub fn continuation(&self) -> Option<Continuation> {
        match self.items.len() {
            0 => self.next.clone(),
            _ => Some(self.position.clone()),
        }
    }

    /// As [`Pager::continuation`], for a list that is done with.
    pub fn into_continuation(self) -> Option<Continuation> {
        self.continuation()
    }

    /// The list as a stream of pages: one for each request, with what the service says beside the items. Items of a page
    /// that were taken before are left out.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> tavola_client::Result<()> {
    /// use tavola_client::{Entity, TryStreamExt};
    ///
    /// let mut pages = people.query_entities::<Entity>(None).by_page();
    /// while let Some(page) = pages.try_next().await? {
    ///     println!("{} entities, {:?} to go on", page.entities.len(), pages.continuation());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "into_pages")]
    pub fn by_page(mut self) -> Pages<P> {
        self.next = self.continuation();
        self.items = Vec::new().into_iter();
        Pages(self)
    }

    /// The next page without the items that were taken before.
    fn poll_page(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<P>>> {
        let Some(wanted) = self.next.clone().filter(|_| !self.is_failed) else {
            return Poll::Ready(None);
        };
        let fetching = self.fetching.get_or_insert_with(|| (self.fetch)(wanted.token.clone()));
        let result = ready!(fetching.as_mut().poll(context));
        self.fetching = None;
        match result {
            Ok(Fetched { mut page, next }) => {
                let items = page.items_mut();
                let left_out = wanted.taken.min(items.len());
                items.drain(..left_out);
                // The service may make smaller pages this time: the rest is left out of those that follow.
                let taken = wanted.taken - left_out;
                self.next = next.map(|token| Continuation { token: Some(token), taken });
                self.position = Continuation { taken: left_out, ..wanted };
                Poll::Ready(Some(Ok(page)))
            }
            Err(error) => {
                self.is_failed = true;
                Poll::Ready(Some(Err(error)))
            }
        }
    }
}

/// Nothing in it is pinned: the future of a page is in a box of its own.
impl<P: Page> Unpin for Pager<P> {}

impl<P: Page> Stream for Pager<P> {
    type Item = Result<P::Item>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<P::Item>>> {
        loop {
            if let Some(item) = self.items.next() {
                self.position.taken += 1;
                return Poll::Ready(Some(Ok(item)));
            }
            match ready!(self.poll_page(context)) {
                Some(Ok(mut page)) => self.items = std::mem::take(page.items_mut()).into_iter(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<P: Page> fmt::Debug for Pager<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pager").field("continuation", &self.continuation()).finish_non_exhaustive()
    }
}

/// A stream of pages; see [`Pager::by_page`].
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> tavola_client::Result<()> {
/// use tavola_client::{Pages, TablePage, TryStreamExt};
///
/// let mut pages: Pages<TablePage> = service.list_tables(None).by_page();
/// let first = pages.try_next().await?;
/// // Where the second page is, if there is one.
/// let position = pages.continuation();
/// assert_eq!(position, pages.into_continuation());
/// # Ok(())
/// # }
/// ```
pub struct Pages<P: Page>(Pager<P>);

impl<P: Page> Pages<P> {
    /// Where the page is that comes next; `None` if the last has been given.
    pub fn continuation(&self) -> Option<Continuation> {
        self.0.continuation()
    }

    /// As [`Pages::continuation`], for a list that is done with.
    pub fn into_continuation(self) -> Option<Continuation> {
        self.0.into_continuation()
    }
}

impl<P: Page> Stream for Pages<P> {
    type Item = Result<P>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<P>>> {
        self.0.poll_page(context)
    }
}

impl<P: Page> fmt::Debug for Pages<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A place in a list, to go on from later: with the same client or another, the same page size or another, and the same
/// filter.
///
/// Its text has letters, digits, `-` and `_` alone, so that it fits into a URL or a file name. It holds the service's own
/// token, which names keys: treat it as you treat the keys.
///
/// ```
/// # fn main() -> tavola_client::Result<()> {
/// use tavola_client::{Continuation, QueryOptions};
///
/// let kept = "v1-12-";
/// let position: Continuation = kept.parse()?;
/// assert_eq!(position.to_string(), kept);
/// let rest = QueryOptions { continuation: Some(position), ..Default::default() };
/// assert!("page 2".parse::<Continuation>().is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Continuation {
    /// The service's token of the page; `None` for the first.
    token: Option<String>,
    /// Items of the page that were taken.
    taken: usize,
}

impl Continuation {
    /// The service's token of the page that it is in.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }
}

/// The form of the text, so that another can follow.
const VERSION: &str = "v1";

impl fmt::Display for Continuation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = URL_SAFE_NO_PAD.encode(self.token.as_deref().unwrap_or_default());
        write!(f, "{VERSION}-{}-{token}", self.taken)
    }
}

impl FromStr for Continuation {
    type Err = azure_core::Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (taken, token) = text.strip_prefix(VERSION)?.strip_prefix('-')?.split_once('-')?;
            let token = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
            let token = Some(token).filter(|token| !token.is_empty());
            Some(Self { token, taken: taken.parse().ok()? })
        };
        parse().ok_or_else(|| conversion(format!("this is no continuation: text={text}")))
    }
}

impl From<Continuation> for String {
    fn from(continuation: Continuation) -> Self {
        continuation.to_string()
    }
}

impl TryFrom<String> for Continuation {
    type Error = azure_core::Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt, TryStreamExt};
    use proptest::prelude::*;

    use super::*;
    use crate::core::error::refused;

    struct Numbers(Vec<usize>);

    impl Page for Numbers {
        type Item = usize;

        fn items_mut(&mut self) -> &mut Vec<usize> {
            &mut self.0
        }
    }

    /// The numbers from 0, in pages of these sizes.
    fn list(sizes: Vec<usize>, start: Option<Continuation>) -> Pager<Numbers> {
        Pager::new(start, move |token| {
            let page = token.map_or(0, |token| token.parse().unwrap());
            let first = sizes[..page].iter().sum();
            let numbers = (first..first + sizes[page]).collect();
            let next = (page + 1 < sizes.len()).then(|| (page + 1).to_string());
            async move { Ok(Fetched { page: Numbers(numbers), next }) }.boxed()
        })
    }

    fn rest(list: Pager<Numbers>) -> Vec<usize> {
        futures::executor::block_on(list.try_collect()).unwrap()
    }

    proptest! {
        /// Wherever it stops, and whatever sizes the pages have afterwards.
        #[test]
        fn resuming_gives_the_next_item(sizes in prop::collection::vec(0_usize..5, 1..6), stop in 0_usize..20) {
            let total: usize = sizes.iter().sum();
            let stop = stop.min(total);
            let mut first = list(sizes.clone(), None);
            let taken: Vec<_> =
                futures::executor::block_on(first.by_ref().take(stop).try_collect()).unwrap();
            prop_assert_eq!(taken, (0..stop).collect::<Vec<_>>());
            match first.continuation() {
                Some(position) => {
                    let kept = position.to_string();
                    prop_assert!(kept.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
                    let expected: Vec<_> = (stop..total).collect();
                    prop_assert_eq!(rest(list(sizes.clone(), Some(kept.parse().unwrap()))), expected.clone());
                    let pages = list(sizes, Some(position)).by_page();
                    let pages: Vec<Numbers> = futures::executor::block_on(pages.try_collect()).unwrap();
                    prop_assert_eq!(pages.into_iter().flat_map(|page| page.0).collect::<Vec<_>>(), expected.clone());
                    let by_page: Vec<Numbers> = futures::executor::block_on(first.by_page().try_collect()).unwrap();
                    prop_assert_eq!(by_page.into_iter().flat_map(|page| page.0).collect::<Vec<_>>(), expected);
                }
                None => prop_assert_eq!(stop, total),
            }
        }

        #[test]
        fn positions_round_trip(token in prop::option::of("[^\u{0}]{1,20}"), taken in any::<usize>()) {
            let position = Continuation { token, taken };
            let json = serde_json::to_string(&position).unwrap();
            prop_assert_eq!(serde_json::from_str::<Continuation>(&json).unwrap(), position.clone());
            prop_assert_eq!(position.to_string().parse::<Continuation>().unwrap(), position);
        }
    }

    /// A page that was larger when the position was taken.
    #[test]
    fn smaller_pages_leave_out_the_same_items() {
        let position = Continuation { token: None, taken: 5 };
        assert_eq!(rest(list(vec![2, 2, 2, 2], Some(position))), [5, 6, 7]);
    }

    #[test]
    fn an_error_ends_the_stream_and_keeps_the_place() {
        let mut broken = Pager::<Numbers>::new(None, |_| async { Err(refused("broken")) }.boxed());
        assert!(futures::executor::block_on(broken.next()).unwrap().is_err());
        assert!(futures::executor::block_on(broken.next()).is_none());
        assert_eq!(broken.continuation(), Some(Continuation::default()));
    }

    #[test]
    fn what_is_no_position_is_refused() {
        for text in ["", "v1", "v1-", "v1-1", "v2-1-", "v1-x-", "v1--1-", "v1-1-***", "v1-1-_w"] {
            assert!(text.parse::<Continuation>().is_err(), "{text}");
        }
    }
}
