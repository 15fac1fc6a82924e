//! Protocol 1.0 of the older libraries, for reading: AES-256-CBC with a vector per property.
//!
//! The vector of a property is the start of SHA-256 over the entity's vector, the keys and the property's name. The
//! libraries for .NET and Python put the row key first, azure-storage for Java the partition key; it also writes the list of
//! encrypted properties without quotes. All encrypt strings only. Nothing detects a changed ciphertext, which is why the
//! policy must accept this protocol explicitly.

use aes::Aes256;
use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt, KeyIvInit};
use sha2::{Digest, Sha256};

use super::METADATA_2;
use crate::core::error::{Result, conversion, refused};
use crate::table::entity::Entity;
use crate::table::value::EdmValue;

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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use crate::table::encryption::{EncryptionPolicy, KeyRing, METADATA_1};
    use crate::table::entity::json;

    /// Written by azure-cosmosdb-table 1.0.6 for Python, with a key of 32 bytes of 7 and the resolver
    /// `name in ('Secret', 'Empty')`.
    fn written_by_python() -> Entity {
        let binary = |text| STANDARD.decode(text).unwrap();
        Entity::new("Sales", "00010")
            .with("FirstName", "Jens")
            .with("Secret", binary("sAh2QChXmFY+JdifJ5jOsA=="))
            .with("Empty", binary("JcdKp/yLdusI5gkZArDQCw=="))
            .with("Age", 34)
            .with(METADATA_2, binary("lt+t3pw5NlaTKm/7ErgVcWAuywRlo2NiBGWdaOC1EnU="))
            .with(METADATA_1, r#"{"WrappedContentKey": {"KeyId": "local:key1", "EncryptedKey": "9mnKstsOsmXT5LbF8Wh9UhderFivrdjc6aAMSkV9uuxmv2O/lxJKYQ==", "Algorithm": "A256KW"}, "EncryptionAgent": {"Protocol": "1.0", "EncryptionAlgorithm": "AES_CBC_256"}, "ContentEncryptionIV": "xro4yf5y3RkE6e7KIH3zfQ==", "KeyWrappingMetadata": {"EncryptionLibrary": "Python 1.4.2"}}"#)
    }

    fn policy() -> EncryptionPolicy {
        EncryptionPolicy::new(Arc::new(KeyRing::new("local:key1", [7; 32])))
    }

    #[tokio::test]
    async fn what_the_python_library_wrote_is_read() {
        let opened = policy().accept_protocol_1().decrypt(written_by_python()).await.unwrap();
        let expected = Entity::new("Sales", "00010")
            .with("FirstName", "Jens")
            .with("Secret", "caf\u{e9} \u{1F600}")
            .with("Empty", "")
            .with("Age", 34);
        assert_eq!(opened, expected);
    }

    /// Written by azure-storage for Java with the same key and the resolver `name in ('Secret', 'Empty', 'Note')`: two
    /// entities, one of them with keys beyond ASCII. 4.1.0 is the first version that encrypts, and does not name itself
    /// in the metadata; 8.6.6 is the last one.
    #[tokio::test]
    async fn what_the_java_library_wrote_is_read() {
        for (version, is_named, text) in [
            ("4.1.0", false, include_str!("../../../fixtures/protocol_1_java_4.1.0.json")),
            ("8.6.6", true, include_str!("../../../fixtures/protocol_1_java_8.6.6.json")),
        ] {
            assert_eq!(text.contains("EncryptionLibrary"), is_named, "{version}");
            let written = json::read_entities(text.as_bytes()).unwrap();
            let keys = [("D\u{e9}p\u{f4}t \u{65e5}\u{672c}", "\u{1F600} 'x'"), ("Sales", "00010")];
            assert_eq!(written.len(), keys.len(), "{version}");
            for (stored, (partition_key, row_key)) in written.into_iter().zip(keys) {
                let opened =
                    policy().accept_protocol_1().decrypt(stored.into_value()).await.unwrap();
                assert_eq!((opened.partition_key(), opened.row_key()), (partition_key, row_key));
                assert_eq!(opened.properties().len(), 5, "{version}: {opened:?}");
                for (name, expected) in [
                    ("FirstName", "Jens"),
                    ("Secret", "caf\u{e9} \u{1F600}"),
                    ("Empty", ""),
                    ("Note", "a longer text, of more than one block: [x, y]"),
                ] {
                    assert_eq!(opened.get::<String>(name).unwrap(), expected, "{version}");
                }
                assert_eq!(opened.get::<i32>("Age").unwrap(), 34);
            }
        }
    }

    #[tokio::test]
    async fn it_must_be_accepted_and_have_its_key() {
        let error = policy().decrypt(written_by_python()).await.unwrap_err().to_string();
        assert!(error.contains("protocol 1.0"), "{error}");
        let other = EncryptionPolicy::new(Arc::new(KeyRing::new("local:key1", [8; 32])));
        assert!(other.accept_protocol_1().decrypt(written_by_python()).await.is_err());
    }

    #[test]
    fn the_lists_of_both_kinds_are_read() {
        assert_eq!(read_list("[\"A\", \"B\"]", false).unwrap(), ["A", "B"]);
        assert_eq!(read_list("[A, B]", true).unwrap(), ["A", "B"]);
        assert!(read_list("[]", true).unwrap().is_empty());
        assert!(read_list("A", true).is_err());
    }
}
