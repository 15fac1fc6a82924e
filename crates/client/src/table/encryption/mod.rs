//! Client-side encryption: chosen properties leave the client as ciphertext, and nobody at the service can read them.
//!
//! Every entity has a content key of its own, which encrypts its properties with AES-256-GCM; the content key is stored
//! beside them, wrapped by a key of the [`KeyProvider`]. An encrypted property is stored as `Edm.Binary` and comes back as
//! what it was. The ciphertext is bound to the entity's keys and to the property's name, so that it cannot be moved.
//!
//! Which properties: those with `#[table(encrypt)]` in a derived type, and those that a
//! [resolver](EncryptionPolicy::with_resolver) names. The keys of an entity are never encrypted, because the service
//! finds entities by them; an encrypted property cannot be filtered by.
//!
//! **Merge is refused.** The properties that a merge leaves alone are encrypted with the content key of the version before,
//! which the merge would replace in the metadata: they would be lost. Read, change and replace instead.
//!
//! **Key rotation**: give the provider a new current key and keep the old one. New entities use the new key, old ones stay
//! readable, and [`EncryptionPolicy::rewrap`] moves the content keys of a table to the new key without touching the
//! values.
//!
//! Entities that the older .NET, Java and Python libraries encrypted (protocol 1.0, AES-256-CBC) are read if the policy
//! [accepts](EncryptionPolicy::accept_protocol_1) them, and never written: that protocol does not detect changes. The tests
//! read entities that azure-cosmosdb-table for Python and azure-storage for Java wrote; the .NET library writes as Python's
//! does.

mod gcm;
mod keys;
mod metadata;
mod protocol_1;

use std::fmt;
use std::sync::Arc;

use futures::TryStreamExt;

use crate::core::error::{ErrorExt, Result, conversion, refused};
use crate::table::entity::Entity;
use crate::table::value::EdmValue;
use crate::table::{IfMatch, TableClient, UpdateMode};
use gcm::ContentKey;
use metadata::{Metadata, Protocol};

pub use keys::{KeyProvider, KeyRing, WrappedKey};

/// Holds the wrapped content key, as JSON.
const METADATA_1: &str = "_ClientEncryptionMetadata1";
/// Holds the names of the encrypted properties, encrypted.
const METADATA_2: &str = "_ClientEncryptionMetadata2";
pub(crate) const METADATA_PROPERTIES: [&str; 2] = [METADATA_1, METADATA_2];

type Resolver = dyn Fn(&str, &str, &str) -> bool + Send + Sync;

/// What is encrypted, and with whose keys.
///
/// ```
/// use std::sync::Arc;
/// use tavola_client::TableClient;
/// use tavola_client::encryption::{EncryptionPolicy, KeyRing};
///
/// # fn main() -> azure_core::Result<()> {
/// let keys = KeyRing::new("2026-11", [7; 32]).with_key("2025-11", [6; 32]);
/// let policy = EncryptionPolicy::new(Arc::new(keys))
///     .with_resolver(|_partition_key, _row_key, property| property == "Salary")
///     .require_encryption();
/// let table = TableClient::from_connection_string("UseDevelopmentStorage=true", "people", None)?
///     .with_encryption(policy);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct EncryptionPolicy {
    keys: Arc<dyn KeyProvider>,
    resolver: Option<Arc<Resolver>>,
    is_required: bool,
    accepts_protocol_1: bool,
}

impl EncryptionPolicy {
    /// Encrypts the properties that a derived type marks.
    ///
    /// ```
    /// # fn main() -> azure_core::Result<()> {
    /// use std::sync::Arc;
    /// use tavola_client::TableEntity;
    /// use tavola_client::encryption::{EncryptionPolicy, KeyRing};
    ///
    /// #[derive(TableEntity)]
    /// struct Employee {
    ///     #[table(partition_key)]
    ///     department: String,
    ///     #[table(row_key)]
    ///     id: String,
    ///     #[table(encrypt)]
    ///     salary: i64,
    /// }
    ///
    /// let policy = EncryptionPolicy::new(Arc::new(KeyRing::new("2026", [7; 32])));
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(keys: Arc<dyn KeyProvider>) -> Self {
        Self { keys, resolver: None, is_required: false, accepts_protocol_1: false }
    }

    /// Encrypts also the properties for which the resolver says so, by partition key, row key and property name.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> azure_core::Result<()> {
    /// use std::sync::Arc;
    /// use tavola_client::Entity;
    /// use tavola_client::encryption::{EncryptionPolicy, KeyRing};
    ///
    /// let keys = Arc::new(KeyRing::new("2026", [7; 32]));
    /// let policy = EncryptionPolicy::new(keys)
    ///     .with_resolver(|partition_key, _row_key, name| partition_key == "Sales" && name == "Salary");
    /// let jens = Entity::new("Sales", "00010").with("Salary", 85_000_i64);
    /// let sealed = policy.encrypt(jens.clone(), &[]).await?;
    /// assert!(sealed.get::<i64>("Salary").is_err(), "it is ciphertext now");
    /// assert_eq!(policy.decrypt(sealed).await?, jens);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_resolver(
        mut self,
        resolver: impl Fn(&str, &str, &str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    /// Refuses to read entities without encryption, and those in which a property that the resolver names is not
    /// encrypted: somebody may have put them there.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> azure_core::Result<()> {
    /// use std::sync::Arc;
    /// use tavola_client::Entity;
    /// use tavola_client::encryption::{EncryptionPolicy, KeyRing};
    ///
    /// let policy = EncryptionPolicy::new(Arc::new(KeyRing::new("2026", [7; 32]))).require_encryption();
    /// let smuggled_in = Entity::new("Sales", "00010").with("Salary", 85_000_i64);
    /// assert!(policy.decrypt(smuggled_in).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn require_encryption(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Reads also what the older libraries encrypted. Whoever can write to the table can change such entities
    /// without being noticed.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tavola_client::encryption::{EncryptionPolicy, KeyRing};
    ///
    /// // Under the name that the older program gave the key.
    /// let keys = KeyRing::new("local:key1", [7; 32]);
    /// let policy = EncryptionPolicy::new(Arc::new(keys)).accept_protocol_1();
    /// ```
    #[must_use]
    pub fn accept_protocol_1(mut self) -> Self {
        self.accepts_protocol_1 = true;
        self
    }

    /// Encrypts what the type marks and the resolver names.
    ///
    /// A client [with encryption](TableClient::with_encryption) does this by itself; this is for entities that go another way.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> azure_core::Result<()> {
    /// use std::sync::Arc;
    /// use tavola_client::Entity;
    /// use tavola_client::encryption::{EncryptionPolicy, KeyRing};
    ///
    /// let policy = EncryptionPolicy::new(Arc::new(KeyRing::new("2026", [7; 32])));
    /// let jens = Entity::new("Sales", "00010").with("Age", 34).with("Salary", 85_000_i64);
    /// let sealed = policy.encrypt(jens, &["Salary"]).await?;
    /// assert!(sealed.get::<Vec<u8>>("Salary").is_ok(), "stored as binary");
    /// assert_eq!(sealed.get::<i32>("Age")?, 34);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A provider that cannot wrap, a value that is too large once encrypted.
    pub async fn encrypt(&self, mut entity: Entity, marked: &[&str]) -> Result<Entity> {
        let names: Vec<String> = entity
            .properties()
            .map(|(name, _)| name)
            .filter(|name| marked.contains(name) || self.is_chosen(&entity, name))
            .map(str::to_owned)
            .collect();
        // Where encryption is required, an entity with nothing to encrypt says so, or it could not be read again.
        if names.is_empty() && !self.is_required {
            return Ok(entity);
        }
        let key = ContentKey::generate()?;
        let wrapped = self.keys.wrap(key.as_bytes()).await?;
        for name in &names {
            let value = entity.value(name).expect("the name is one of the entity's");
            let sealed = key.seal(&entity, name, &gcm::encode(value))?;
            entity.set(name.as_str(), sealed);
        }
        let list = serde_json::to_vec(&names)?;
        let sealed = key.seal(&entity, METADATA_2, &list)?;
        entity.set(METADATA_1, Metadata::new(wrapped).to_json()?);
        entity.set(METADATA_2, sealed);
        Ok(entity)
    }

    /// Decrypts an entity; one that is not encrypted stays as it is, unless encryption is required.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> azure_core::Result<()> {
    /// use std::sync::Arc;
    /// use tavola_client::Entity;
    /// use tavola_client::encryption::{EncryptionPolicy, KeyRing};
    ///
    /// let old = EncryptionPolicy::new(Arc::new(KeyRing::new("2025", [6; 32])));
    /// let sealed = old.encrypt(Entity::new("Sales", "00010").with("Age", 34), &["Age"]).await?;
    /// // The key was rotated, and the old one is kept to read with.
    /// let keys = KeyRing::new("2026", [7; 32]).with_key("2025", [6; 32]);
    /// let opened = EncryptionPolicy::new(Arc::new(keys)).decrypt(sealed).await?;
    /// assert_eq!(opened.get::<i32>("Age")?, 34);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A provider that cannot unwrap, an entity that was changed by somebody else, a protocol that is not accepted.
    pub async fn decrypt(&self, mut entity: Entity) -> Result<Entity> {
        let Some(metadata) = entity.remove(METADATA_1) else {
            return self.take_plain(entity);
        };
        let EdmValue::String(metadata) = metadata else {
            return Err(conversion("the encryption metadata is no text"));
        };
        let metadata = Metadata::from_json(&metadata)?;
        let Some(EdmValue::Binary(list)) = entity.remove(METADATA_2) else {
            return Err(conversion("the entity has no list of its encrypted properties"));
        };
        let key = self.keys.unwrap(&metadata.wrapped).await?;
        let (entity, names) = match metadata.protocol {
            Protocol::Gcm => gcm::open(entity, &list, &key)?,
            Protocol::Cbc { .. } if !self.accepts_protocol_1 => {
                return Err(refused(
                    "the entity is encrypted with protocol 1.0, which is not accepted",
                ));
            }
            Protocol::Cbc { initialization_vector, is_java } => {
                protocol_1::open(entity, &list, &key, &initialization_vector, is_java)?
            }
        };
        self.check_chosen(&entity, &names)?;
        Ok(entity)
    }

    /// Wraps the content keys of a table's entities with the provider's current key; gives how many there were.
    ///
    /// The values are not touched. An entity that somebody changes meanwhile is left to them: they use the current key.
    ///
    /// ```no_run
    /// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use std::sync::Arc;
    /// use tavola_client::encryption::{EncryptionPolicy, KeyRing};
    ///
    /// let keys = KeyRing::new("2026", [7; 32]).with_key("2025", [6; 32]);
    /// let policy = EncryptionPolicy::new(Arc::new(keys));
    /// let count = policy.rewrap(&table).await?;
    /// println!("{count} entities do not need the key of 2025 any more");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the table and of the provider. What was done stays done, and doing it again goes on.
    pub async fn rewrap(&self, table: &TableClient) -> Result<usize> {
        let table = table.without_encryption();
        let mut entities = table.query_entities::<Entity>(None);
        let mut count = 0;
        while let Some(stored) = entities.try_next().await? {
            let Some(EdmValue::String(metadata)) = stored.value(METADATA_1) else { continue };
            let metadata = Metadata::from_json(metadata)?;
            if self.keys.is_current(&metadata.wrapped) {
                continue;
            }
            let key = self.keys.unwrap(&metadata.wrapped).await?;
            let metadata = metadata.with_key(self.keys.wrap(&key).await?).to_json()?;
            let change =
                Entity::new(stored.partition_key(), stored.row_key()).with(METADATA_1, metadata);
            match table
                .update_entity(&change, UpdateMode::Merge, IfMatch::from(&stored), None)
                .await
            {
                Ok(_) => count += 1,
                Err(error) if error.is_precondition_failed() || error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    pub(crate) fn refuse_merge(&self) -> Result<()> {
        Err(refused(
            "an entity of a client with encryption cannot be merged: the properties that stay are encrypted with a key \
             that the merge would replace; read, change and replace it instead",
        ))
    }

    fn is_chosen(&self, entity: &Entity, name: &str) -> bool {
        let resolver = self.resolver.as_deref();
        resolver.is_some_and(|chosen| chosen(entity.partition_key(), entity.row_key(), name))
    }

    fn take_plain(&self, entity: Entity) -> Result<Entity> {
        match self.is_required {
            true => Err(refused("the entity is not encrypted, and encryption is required")),
            false => Ok(entity),
        }
    }

    fn check_chosen(&self, entity: &Entity, encrypted: &[String]) -> Result<()> {
        let mut names = entity.properties().map(|(name, _)| name);
        let bare = names.find(|name| {
            self.is_chosen(entity, name) && !encrypted.iter().any(|known| known == name)
        });
        match bare {
            Some(name) if self.is_required => Err(refused(format!(
                "a property is not encrypted, and encryption is required: property={name}"
            ))),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for EncryptionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptionPolicy").field("keys", &self.keys).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> EncryptionPolicy {
        EncryptionPolicy::new(Arc::new(KeyRing::new("k1", [1; 32])))
            .with_resolver(|_, _, name| name.starts_with('S'))
    }

    fn entity() -> Entity {
        Entity::new("p", "r").with("Secret", "text").with("Salary", 5_i64).with("Plain", true)
    }

    #[tokio::test]
    async fn chosen_properties_become_binary_and_come_back() {
        let sealed = policy().encrypt(entity(), &[]).await.unwrap();
        for name in ["Secret", "Salary", METADATA_2] {
            assert!(matches!(sealed.value(name), Some(EdmValue::Binary(_))), "{name}");
        }
        assert_eq!(sealed.value("Plain"), Some(&EdmValue::Boolean(true)));
        let text = format!("{sealed:?}");
        assert!(!text.contains("Salary\\"), "the list of names is encrypted: {text}");
        assert_eq!(policy().decrypt(sealed).await.unwrap(), entity());
    }

    #[tokio::test]
    async fn a_projection_decrypts_what_it_has() {
        let mut sealed = policy().encrypt(entity(), &[]).await.unwrap();
        sealed.remove("Secret");
        let opened = policy().decrypt(sealed).await.unwrap();
        assert_eq!(opened.get::<i64>("Salary").unwrap(), 5);
    }

    #[tokio::test]
    async fn marked_properties_need_no_resolver() {
        let policy = EncryptionPolicy::new(Arc::new(KeyRing::new("k1", [1; 32])));
        let sealed = policy.encrypt(entity(), &["Plain"]).await.unwrap();
        assert!(matches!(sealed.value("Plain"), Some(EdmValue::Binary(_))));
        assert_eq!(sealed.value("Secret"), Some(&EdmValue::from("text")));
        assert_eq!(policy.encrypt(entity(), &[]).await.unwrap(), entity());
    }

    #[tokio::test]
    async fn what_was_moved_or_changed_is_refused() {
        let sealed = policy().encrypt(entity(), &[]).await.unwrap();
        let mut moved = sealed.clone();
        moved.set_keys("p", "other");
        assert!(policy().decrypt(moved).await.is_err());

        let mut swapped = sealed.clone();
        let (secret, salary) =
            (swapped.remove("Secret").unwrap(), swapped.remove("Salary").unwrap());
        let swapped = swapped.with("Secret", salary).with("Salary", secret);
        assert!(policy().decrypt(swapped).await.is_err());

        let mut bent = sealed.clone();
        let Some(EdmValue::Binary(mut bytes)) = bent.remove("Secret") else { panic!() };
        bytes[20] ^= 1;
        bent.set("Secret", bytes);
        assert!(policy().decrypt(bent).await.is_err());

        let other = EncryptionPolicy::new(Arc::new(KeyRing::new("k1", [2; 32])));
        assert!(other.decrypt(sealed).await.is_err());
    }

    #[tokio::test]
    async fn an_old_key_stays_readable() {
        let sealed = policy().encrypt(entity(), &[]).await.unwrap();
        let rotated =
            EncryptionPolicy::new(Arc::new(KeyRing::new("k2", [2; 32]).with_key("k1", [1; 32])));
        assert_eq!(rotated.decrypt(sealed).await.unwrap(), entity());
    }

    /// Such as one whose only marked property is an option without a value.
    #[tokio::test]
    async fn required_encryption_reads_back_an_entity_with_nothing_to_encrypt() {
        let keys = Arc::new(KeyRing::new("k1", [1; 32]));
        let strict = EncryptionPolicy::new(keys).require_encryption();
        let sealed = strict.encrypt(entity(), &["Absent"]).await.unwrap();
        assert_eq!(strict.decrypt(sealed).await.unwrap(), entity());
    }

    #[tokio::test]
    async fn required_encryption_refuses_what_is_bare() {
        let strict = policy().require_encryption();
        assert!(strict.decrypt(entity()).await.is_err());
        let mut sealed = strict.encrypt(entity(), &[]).await.unwrap();
        assert_eq!(strict.decrypt(sealed.clone()).await.unwrap(), entity());
        sealed.set("Smuggled", "in");
        assert!(strict.decrypt(sealed.clone()).await.is_err());
        assert!(policy().decrypt(sealed).await.is_ok(), "allowed unless it is required");
    }
}
