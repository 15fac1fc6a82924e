//! List Queues: the catalogue, by name, page by page.

use std::ops::ControlFlow;

use tavola_engine::{Reader, Visitor};
use tavola_wire::queue::list::QueueListWriter;
use tavola_wire::queue::parameters::ListParameters;

use super::replies;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::{Result, corrupt, engine_error};
use crate::request::reply::Reply;
use crate::storage::layout::{Key, QueueRecord, Record, queues_of};

/// A page ends when it is this long: metadata may be large, and clients go on with the marker.
const PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;

pub(super) async fn run(context: &RequestContext<'_>, _permit: Permit<'_>) -> Result<Reply> {
    let parameters = ListParameters::parse(&context.head.query)?;
    let account = &context.account;
    let from = parameters.first_name(&account.name)?;
    let endpoint = [&context.head.base(), "/"].concat();
    let range = queues_of(account.id, from, parameters.prefix.unwrap_or_default());
    let page = Page {
        list: QueueListWriter::new(&endpoint, &parameters),
        left: parameters.page_size(),
        with_metadata: parameters.with_metadata,
        next: None,
        is_malformed: false,
    };
    let page = context.state.engine.scan(range, page).await.map_err(engine_error)?;
    if page.is_malformed {
        return Err(corrupt("a catalogue row"));
    }
    let next = page.next.as_deref().map(|name| (account.name.as_str(), name));
    Ok(replies::document(page.list.finish(next)))
}

struct Page {
    list: QueueListWriter,
    /// Queues that still fit.
    left: usize,
    with_metadata: bool,
    /// The first name of the next page.
    next: Option<String>,
    is_malformed: bool,
}

impl Visitor for Page {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let (Ok(Key::Queue { name, .. }), Some(record)) =
            (Key::decode(key), QueueRecord::decode(value))
        else {
            self.is_malformed = true;
            return ControlFlow::Break(());
        };
        if self.left == 0 || self.list.len() > PAGE_BYTES_MAX {
            self.next = Some(name.to_owned());
            return ControlFlow::Break(());
        }
        self.left -= 1;
        self.list.push(name, self.with_metadata.then_some(&record.metadata));
        ControlFlow::Continue(())
    }
}
