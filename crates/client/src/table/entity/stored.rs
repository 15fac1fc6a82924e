//! What the service says beside an entity.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use azure_core::http::Etag;

use crate::table::value::DateTime;

/// A value as it was read, with its version and the moment of its last change.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::{Entity, Stored, UpdateMode};
///
/// let mut jens: Stored<Entity> = people.get_entity::<Entity>("Sales", "00010", None).await?;
/// println!("version {} of {:?}, read by {:?}", jens.etag, jens.timestamp, jens.request_id());
/// // It is used like the value itself, and tells a change which version it is meant for.
/// jens.set("Age", 35);
/// people.update_entity(&jens.value, UpdateMode::Replace, &jens, None).await?;
///
/// let age = jens.map(|entity| entity.get::<i32>("Age"));
/// println!("{} as of {:?}", age.value?, age.timestamp);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Stored<T> {
    /// The entity.
    pub value: T,
    /// Its version, for conditional changes.
    pub etag: Etag,
    /// When it was changed last.
    pub timestamp: Option<DateTime>,
    /// Shared by the entities of a page.
    request_id: Option<Arc<str>>,
}

impl<T> Stored<T> {
    /// A value with a version, as if it had been read; for tests, and for what is kept elsewhere.
    ///
    /// ```
    /// use tavola_client::{Entity, Stored};
    ///
    /// let jens = Stored::new(Entity::new("Sales", "00010"), "W/\"1\"");
    /// assert_eq!((jens.row_key(), jens.timestamp, jens.request_id()), ("00010", None, None));
    /// ```
    pub fn new(value: T, etag: impl Into<Etag>) -> Self {
        Self { value, etag: etag.into(), timestamp: None, request_id: None }
    }

    /// The service's name for the request that read this, for its log and its support.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    pub(crate) fn with_timestamp(mut self, timestamp: Option<DateTime>) -> Self {
        self.timestamp = timestamp;
        self
    }

    pub(crate) fn with_request_id(mut self, request_id: Option<Arc<str>>) -> Self {
        self.request_id = request_id;
        self
    }

    /// The entity alone.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::Entity;
    ///
    /// let stored = people.get_entity::<Entity>("Sales", "00010", None).await?;
    /// let jens: Entity = stored.into_value();
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_value(self) -> T {
        self.value
    }

    /// Turns the value into another, and keeps what the service said.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Stored<U> {
        let Self { value, etag, timestamp, request_id } = self;
        Stored { value: convert(value), etag, timestamp, request_id }
    }

    /// Parts the value from what the service said.
    pub(crate) fn take(self) -> (T, Stored<()>) {
        let Self { value, etag, timestamp, request_id } = self;
        (value, Stored { value: (), etag, timestamp, request_id })
    }

    pub(crate) fn try_map<U, E>(
        self,
        convert: impl FnOnce(T) -> Result<U, E>,
    ) -> Result<Stored<U>, E> {
        let Self { value, etag, timestamp, request_id } = self;
        Ok(Stored { value: convert(value)?, etag, timestamp, request_id })
    }
}

/// The same version of the same value; which request read it does not matter.
impl<T: PartialEq> PartialEq for Stored<T> {
    fn eq(&self, other: &Self) -> bool {
        (&self.value, &self.etag, &self.timestamp) == (&other.value, &other.etag, &other.timestamp)
    }
}

impl<T> Deref for Stored<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Stored<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
