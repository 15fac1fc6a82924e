//! Pages of queues.

use std::sync::Arc;

use azure_core::http::Method;
use futures::FutureExt;
use tavola_wire::queue::answers;

use super::{ListQueuesOptions, Metadata};
use crate::core::error::{Result, conversion};
use crate::core::pager::{Fetched, Page, Pager};
use crate::core::pipeline::{Call, ServicePipeline};

/// A stream of queues, page by page behind the scenes; see [`Pager`] for stopping and resuming.
///
/// ```no_run
/// # async fn run(service: tavola_client::queue::QueueServiceClient) -> tavola_client::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::queue::QueuePager;
///
/// let mut queues: QueuePager = service.list_queues(None);
/// while let Some(queue) = queues.try_next().await? {
///     println!("{}", queue.name);
/// }
/// # Ok(())
/// # }
/// ```
pub type QueuePager = Pager<QueuePage>;

/// A page of queues.
///
/// ```no_run
/// # async fn run(service: tavola_client::queue::QueueServiceClient) -> tavola_client::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::queue::QueuePage;
///
/// let mut pages = service.list_queues(None).by_page();
/// while let Some(QueuePage { queues }) = pages.try_next().await? {
///     println!("{} queues by one request", queues.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePage {
    /// The queues, in the order of their names.
    pub queues: Vec<QueueItem>,
}

/// A queue in a list.
///
/// ```no_run
/// # async fn run(service: tavola_client::queue::QueueServiceClient) -> tavola_client::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::queue::{ListQueuesOptions, QueueItem};
///
/// let options = ListQueuesOptions { include_metadata: true, ..Default::default() };
/// let queues: Vec<QueueItem> = service.list_queues(Some(options)).try_collect().await?;
/// for QueueItem { name, metadata, .. } in queues {
///     println!("{name}: {:?}", metadata.unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueItem {
    /// Its name.
    pub name: String,
    /// What is kept with it; `None` unless it was asked for.
    pub metadata: Option<Metadata>,
}

impl Page for QueuePage {
    type Item = QueueItem;

    fn items_mut(&mut self) -> &mut Vec<QueueItem> {
        &mut self.queues
    }
}

pub(super) fn list_queues(
    pipeline: Arc<ServicePipeline>,
    mut options: ListQueuesOptions,
) -> QueuePager {
    let start = options.continuation.take();
    let options = Arc::new(options);
    Pager::new(start, move |marker| {
        let (pipeline, options) = (pipeline.clone(), options.clone());
        async move { fetch(&pipeline, &options, marker.as_deref()).await }.boxed()
    })
}

async fn fetch(
    pipeline: &ServicePipeline,
    options: &ListQueuesOptions,
    marker: Option<&str>,
) -> Result<Fetched<QueuePage>> {
    let page_size = options.page_size.map(|size| size.to_string());
    let include = options.include_metadata.then_some("metadata");
    let parameters = [
        ("prefix", options.prefix.as_deref()),
        ("marker", marker),
        ("maxresults", page_size.as_deref()),
        ("include", include),
    ];
    let given = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let query: Vec<_> = std::iter::once(("comp", "list")).chain(given).collect();
    let call = Call { query: &query, ..Call::new("list_queues", Method::Get, "") };
    let answer = pipeline.send(call, &options.call_options()).await?;
    let page = answers::parse_queues(answer.body())
        .map_err(|error| conversion(error.message().to_owned()))?;
    let queues = page.queues.into_iter();
    let queues = queues.map(|queue| QueueItem { name: queue.name, metadata: queue.metadata });
    Ok(Fetched { page: QueuePage { queues: queues.collect() }, next: page.next_marker })
}
