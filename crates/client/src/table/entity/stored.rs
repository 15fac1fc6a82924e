//! What the service says beside an entity.

use std::ops::{Deref, DerefMut};

use azure_core::http::Etag;

use crate::table::value::DateTime;

/// A value as it was read, with its version and the moment of its last change.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::{Entity, Stored, UpdateMode};
///
/// let mut jens: Stored<Entity> = people.get_entity::<Entity>("Sales", "00010", None).await?;
/// println!("version {} of {:?}", jens.etag, jens.timestamp);
/// // It is used like the value itself, and tells a change which version it is meant for.
/// jens.set("Age", 35);
/// people.update_entity(&jens.value, UpdateMode::Replace, &jens, None).await?;
///
/// let age = jens.map(|entity| entity.get::<i32>("Age"));
/// println!("{} as of {:?}", age.value?, age.timestamp);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<T> {
    /// The entity.
    pub value: T,
    /// Its version, for conditional changes.
    pub etag: Etag,
    /// When it was changed last.
    pub timestamp: Option<DateTime>,
}

impl<T> Stored<T> {
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
    pub fn map<U>(self, turn: impl FnOnce(T) -> U) -> Stored<U> {
        Stored { value: turn(self.value), etag: self.etag, timestamp: self.timestamp }
    }

    pub(crate) fn try_map<U, E>(
        self,
        turn: impl FnOnce(T) -> Result<U, E>,
    ) -> Result<Stored<U>, E> {
        Ok(Stored { value: turn(self.value)?, etag: self.etag, timestamp: self.timestamp })
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
