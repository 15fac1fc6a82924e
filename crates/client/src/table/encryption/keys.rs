//! Where the keys come from that wrap content keys.

use std::collections::HashMap;
use std::fmt;

use aes_kw::{KeyInit, KwAes256};
use async_trait::async_trait;

use crate::core::error::{Result, refused};

/// The name of AES key wrap with a key of 256 bits, in the metadata of every library.
const AES_KEY_WRAP: &str = "A256KW";
/// AES key wrap adds one block of eight bytes.
const WRAP_OVERHEAD: usize = 8;

/// A content key, encrypted by a key of the provider.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> azure_core::Result<()> {
/// use tavola_client::encryption::{KeyProvider, KeyRing, WrappedKey};
///
/// let ring = KeyRing::new("2026", [7; 32]);
/// let WrappedKey { key_id, algorithm, bytes } = ring.wrap(&[9; 32]).await?;
/// assert_eq!((key_id.as_str(), algorithm.as_str(), bytes.len()), ("2026", "A256KW", 40));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedKey {
    /// The provider's name of the key that wrapped it.
    pub key_id: String,
    /// The way in which it was wrapped, such as `A256KW` or `RSA-OAEP`.
    pub algorithm: String,
    /// The encrypted content key.
    pub bytes: Vec<u8>,
}

/// Wraps and unwraps content keys: a vault, a hardware module, or a [`KeyRing`] in memory.
///
/// A provider in front of another, such as one that remembers what a vault unwrapped:
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Mutex;
///
/// use async_trait::async_trait;
/// use azure_core::Result;
/// use tavola_client::encryption::{KeyProvider, KeyRing, WrappedKey};
///
/// #[derive(Debug)]
/// struct Remembering<P> {
///     vault: P,
///     known: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
/// }
///
/// #[async_trait]
/// impl<P: KeyProvider> KeyProvider for Remembering<P> {
///     async fn wrap(&self, content_key: &[u8]) -> Result<WrappedKey> {
///         self.vault.wrap(content_key).await
///     }
///
///     async fn unwrap(&self, wrapped: &WrappedKey) -> Result<Vec<u8>> {
///         if let Some(key) = self.known.lock().unwrap().get(&wrapped.bytes) {
///             return Ok(key.clone());
///         }
///         let key = self.vault.unwrap(wrapped).await?;
///         self.known.lock().unwrap().insert(wrapped.bytes.clone(), key.clone());
///         Ok(key)
///     }
///
///     fn is_current(&self, wrapped: &WrappedKey) -> bool {
///         self.vault.is_current(wrapped)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let keys = Remembering { vault: KeyRing::new("2026", [7; 32]), known: Mutex::default() };
/// let wrapped = keys.wrap(&[9; 32]).await?;
/// assert_eq!(keys.unwrap(&wrapped).await?, [9; 32]);
/// assert!(keys.is_current(&wrapped));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait KeyProvider: fmt::Debug + Send + Sync {
    /// Encrypts a content key with the current key.
    async fn wrap(&self, content_key: &[u8]) -> Result<WrappedKey>;

    /// Decrypts a content key with the key that wrapped it.
    async fn unwrap(&self, wrapped: &WrappedKey) -> Result<Vec<u8>>;

    /// Tells whether the current key wrapped this, so that it need not be wrapped again.
    fn is_current(&self, wrapped: &WrappedKey) -> bool;
}

/// Keys in memory: one to write with, and any number to read with.
///
/// ```
/// use tavola_client::encryption::KeyRing;
///
/// // From now on "2026" is written with; what "2025" wrapped stays readable.
/// let keys = KeyRing::new("2026", [7; 32]).with_key("2025", [6; 32]);
/// assert_eq!(keys.current_id(), "2026");
/// ```
#[derive(Clone)]
pub struct KeyRing {
    current: String,
    keys: HashMap<String, [u8; 32]>,
}

impl KeyRing {
    /// A ring with one key, which is the current one.
    pub fn new(id: impl Into<String>, key: [u8; 32]) -> Self {
        let current = id.into();
        Self { keys: HashMap::from([(current.clone(), key)]), current }
    }

    /// Adds a key to read with.
    #[must_use]
    pub fn with_key(mut self, id: impl Into<String>, key: [u8; 32]) -> Self {
        self.keys.insert(id.into(), key);
        self
    }

    /// The name of the key that is written with.
    pub fn current_id(&self) -> &str {
        &self.current
    }

    fn wrapper(&self, id: &str) -> Result<KwAes256> {
        let key = self
            .keys
            .get(id)
            .ok_or_else(|| refused(format!("the ring has no such key: id={id}")))?;
        Ok(KwAes256::new(&(*key).into()))
    }
}

#[async_trait]
impl KeyProvider for KeyRing {
    async fn wrap(&self, content_key: &[u8]) -> Result<WrappedKey> {
        let mut bytes = vec![0; content_key.len() + WRAP_OVERHEAD];
        self.wrapper(&self.current)?
            .wrap_key(content_key, &mut bytes)
            .map_err(|_| refused("the content key cannot be wrapped"))?;
        Ok(WrappedKey { key_id: self.current.clone(), algorithm: AES_KEY_WRAP.to_owned(), bytes })
    }

    async fn unwrap(&self, wrapped: &WrappedKey) -> Result<Vec<u8>> {
        if wrapped.algorithm != AES_KEY_WRAP {
            return Err(refused(format!(
                "the ring cannot unwrap this: algorithm={}",
                wrapped.algorithm
            )));
        }
        let length = wrapped.bytes.len().saturating_sub(WRAP_OVERHEAD);
        let mut key = vec![0; length];
        self.wrapper(&wrapped.key_id)?
            .unwrap_key(&wrapped.bytes, &mut key)
            .map_err(|_| refused(format!("the key did not wrap this: id={}", wrapped.key_id)))?;
        Ok(key)
    }

    fn is_current(&self, wrapped: &WrappedKey) -> bool {
        wrapped.key_id == self.current
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").field("current", &self.current).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_key_that_wrapped_unwraps() {
        let ring = KeyRing::new("a", [1; 32]);
        let wrapped = ring.wrap(&[9; 32]).await.unwrap();
        assert_eq!(ring.unwrap(&wrapped).await.unwrap(), [9; 32]);
        assert!(ring.is_current(&wrapped));
        assert!(KeyRing::new("a", [2; 32]).unwrap(&wrapped).await.is_err());
        assert!(KeyRing::new("b", [1; 32]).unwrap(&wrapped).await.is_err());
        let foreign = WrappedKey { algorithm: "RSA-OAEP".into(), ..wrapped };
        assert!(ring.unwrap(&foreign).await.is_err());
    }

    #[test]
    fn keys_are_not_printed() {
        assert_eq!(format!("{:?}", KeyRing::new("a", [1; 32])), "KeyRing { current: \"a\", .. }");
    }
}
