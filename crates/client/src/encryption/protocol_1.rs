//! Protocol 1.0 of the older libraries, for reading: AES-256-CBC with a vector per property.
//!
//! The vector of a property is the start of SHA-256 over the entity's vector, the keys and the property's name. The
//! libraries for .NET and Python put the row key first, the first one for Java the partition key. All encrypt strings
//! only. Nothing detects a changed ciphertext, which is why the policy must accept this protocol explicitly.

use aes::Aes256;
use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt, KeyIvInit};
use sha2::{Digest, Sha256};

use super::METADATA_2;
use crate::entity::Entity;
use crate::error::{Result, conversion, refused};
use crate::value::EdmValue;

const BLOCK_BYTES: usize = 16;

/// Opens the properties of an entity that the encrypted list names; gives the list too.
pub(super) fn open(
    mut entity: Entity,
    list: &[u8],
    key: &[u8],
    vector: &[u8],
    is_java: bool,
) -> Result<(Entity, Vec<String>)> {
    let list = decrypt(&entity, METADATA_2, list, key, vector, is_java)?;
    let names = read_list(&list, is_java)?;
    for name in &names {
        let Some(EdmValue::Binary(sealed)) = entity.value(name) else { continue };
        let text = decrypt(&entity, name, sealed, key, vector, is_java)?;
        entity.set(name.as_str(), text);
    }
    Ok((entity, names))
}

fn decrypt(
    entity: &Entity,
    name: &str,
    sealed: &[u8],
    key: &[u8],
    vector: &[u8],
    is_java: bool,
) -> Result<String> {
    let keys = match is_java {
        true => [entity.partition_key(), entity.row_key()],
        false => [entity.row_key(), entity.partition_key()],
    };
    let hash = Sha256::new()
        .chain_update(vector)
        .chain_update(keys[0])
        .chain_update(keys[1])
        .chain_update(name)
        .finalize();
    let cipher = cbc::Decryptor::<Aes256>::new_from_slices(key, &hash[..BLOCK_BYTES])
        .map_err(|_| conversion("the content key has not 256 bits"))?;
    let plain = cipher
        .decrypt_padded_vec::<Pkcs7>(sealed)
        .map_err(|_| refused(format!("the property cannot be decrypted: property={name}")))?;
    Ok(String::from_utf8(plain)?)
}

fn read_list(text: &str, is_java: bool) -> Result<Vec<String>> {
    if !is_java {
        return Ok(serde_json::from_str(text)?);
    }
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inner = inner.ok_or_else(|| conversion("the list of encrypted properties is malformed"))?;
    Ok(inner.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect())
}
