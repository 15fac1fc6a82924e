//! Protocol 2.0: every property sealed with AES-256-GCM under the entity's content key.
//!
//! A sealed property is `nonce (12) . ciphertext . tag (16)`. The associated data is the partition key, the row key and the
//! property's name, each behind its length, so that no property can stand in for another. What is sealed is the EDM type
//! and the value, so that every type comes back as itself.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use azure_core::Uuid;
use tavola_wire::table::stored::{BINARY_BYTES_MAX, EdmType};

use super::METADATA_2;
use crate::core::error::{Result, conversion, refused};
use crate::table::entity::Entity;
use crate::table::value::EdmValue;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

/// The key of one entity.
pub(super) struct ContentKey([u8; KEY_BYTES]);

impl ContentKey {
    pub(super) fn generate() -> Result<Self> {
        let mut key = [0; KEY_BYTES];
        random(&mut key)?;
        Ok(Self(key))
    }

    fn from_slice(bytes: &[u8]) -> Result<Self> {
        let key = bytes.try_into().map_err(|_| conversion("the content key has not 256 bits"))?;
        Ok(Self(key))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn seal(&self, entity: &Entity, name: &str, plain: &[u8]) -> Result<Vec<u8>> {
        let mut nonce = [0; NONCE_BYTES];
        random(&mut nonce)?;
        let payload = Payload { msg: plain, aad: &associated_data(entity, name) };
        let sealed = self.cipher().encrypt(&Nonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| refused("the property cannot be encrypted"))?;
        let bytes = [&nonce[..], &sealed].concat();
        if bytes.len() > BINARY_BYTES_MAX {
            return Err(refused(format!(
                "the property is above 64 KiB once it is encrypted: property={name} bytes={}",
                bytes.len()
            )));
        }
        Ok(bytes)
    }

    fn open(&self, entity: &Entity, name: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        let failed = || {
            refused(format!(
                "the property was not encrypted for this place, or was changed: property={name}"
            ))
        };
        let (nonce, sealed) = sealed.split_at_checked(NONCE_BYTES).ok_or_else(failed)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().expect("split at the nonce's length");
        let payload = Payload { msg: sealed, aad: &associated_data(entity, name) };
        self.cipher().decrypt(&Nonce::from(nonce), payload).map_err(|_| failed())
    }

    fn cipher(&self) -> Aes256Gcm {
        Aes256Gcm::new(&self.0.into())
    }
}

/// Opens the properties of an entity that the sealed list names; gives the list too.
pub(super) fn open(mut entity: Entity, list: &[u8], key: &[u8]) -> Result<(Entity, Vec<String>)> {
    let key = ContentKey::from_slice(key)?;
    let list = key.open(&entity, METADATA_2, list)?;
    let names: Vec<String> = serde_json::from_slice(&list)?;
    for name in &names {
        match entity.value(name) {
            // A projection may have left it out.
            None => {}
            Some(EdmValue::Binary(sealed)) => {
                let value = decode(&key.open(&entity, name, sealed)?)?;
                entity.set(name.as_str(), value);
            }
            Some(_) => {
                return Err(refused(format!(
                    "an encrypted property is not binary: property={name}"
                )));
            }
        }
    }
    Ok((entity, names))
}

fn associated_data(entity: &Entity, name: &str) -> Vec<u8> {
    let mut data = Vec::new();
    for text in [entity.partition_key(), entity.row_key(), name] {
        data.extend_from_slice(&(text.len() as u64).to_le_bytes());
        data.extend_from_slice(text.as_bytes());
    }
    data
}

fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes)
        .map_err(|error| refused(format!("the system gives no randomness: {error}")))
}

/// The type and the value as bytes; numbers little-endian.
pub(super) fn encode(value: &EdmValue) -> Vec<u8> {
    let mut bytes = vec![value.edm_type() as u8];
    match value {
        EdmValue::String(text) => bytes.extend_from_slice(text.as_bytes()),
        EdmValue::Boolean(value) => bytes.push(u8::from(*value)),
        EdmValue::Int32(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        EdmValue::Int64(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        EdmValue::Double(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        EdmValue::DateTime(moment) => bytes.extend_from_slice(&moment.0.to_le_bytes()),
        EdmValue::Guid(guid) => bytes.extend_from_slice(guid.as_bytes()),
        EdmValue::Binary(value) => bytes.extend_from_slice(value),
    }
    bytes
}

fn decode(bytes: &[u8]) -> Result<EdmValue> {
    decode_parts(bytes).ok_or_else(|| conversion("a decrypted property is malformed"))
}

fn decode_parts(bytes: &[u8]) -> Option<EdmValue> {
    let (&tag, payload) = bytes.split_first()?;
    let edm = EdmType::ALL.into_iter().find(|edm| *edm as u8 == tag)?;
    Some(match edm {
        EdmType::String => EdmValue::String(String::from_utf8(payload.to_vec()).ok()?),
        EdmType::Boolean => EdmValue::Boolean(payload == [1]),
        EdmType::Int32 => EdmValue::Int32(i32::from_le_bytes(payload.try_into().ok()?)),
        EdmType::Int64 => EdmValue::Int64(i64::from_le_bytes(payload.try_into().ok()?)),
        EdmType::Double => EdmValue::Double(f64::from_le_bytes(payload.try_into().ok()?)),
        EdmType::DateTime => {
            EdmValue::DateTime(tavola_wire::Ticks(i64::from_le_bytes(payload.try_into().ok()?)))
        }
        EdmType::Guid => EdmValue::Guid(Uuid::from_bytes(payload.try_into().ok()?)),
        EdmType::Binary => EdmValue::Binary(payload.to_vec()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::value::DateTime;

    #[test]
    fn every_type_comes_back_as_itself() {
        for value in [
            EdmValue::from("text"),
            EdmValue::from(true),
            EdmValue::from(false),
            EdmValue::from(-7),
            EdmValue::from(i64::MIN),
            EdmValue::from(0.1),
            EdmValue::from(DateTime::MIN_STORED),
            EdmValue::from(Uuid::from_u128(5)),
            EdmValue::from(b"bytes"),
        ] {
            assert_eq!(decode(&encode(&value)).unwrap(), value);
        }
        assert!(decode(&[]).is_err());
        assert!(decode(&[3, 1]).is_err());
    }

    #[test]
    fn two_seals_of_one_value_differ() {
        let (key, entity) = (ContentKey::generate().unwrap(), Entity::new("p", "r"));
        let seal = || key.seal(&entity, "A", b"same").unwrap();
        assert_ne!(seal(), seal());
    }

    #[test]
    fn what_does_not_fit_is_refused_before_it_is_sent() {
        let (key, entity) = (ContentKey::generate().unwrap(), Entity::new("p", "r"));
        assert!(key.seal(&entity, "A", &[0; BINARY_BYTES_MAX - 28]).is_ok());
        assert!(key.seal(&entity, "A", &[0; BINARY_BYTES_MAX - 27]).is_err());
    }
}
