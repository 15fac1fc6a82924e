//! The metadata beside an encrypted entity: which protocol, which key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::WrappedKey;
use crate::core::error::{Result, conversion};

const LIBRARY: &str = concat!("Rust tavola-client ", env!("CARGO_PKG_VERSION"));

/// Who encrypted how, and the wrapped key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    pub protocol: Protocol,
    pub wrapped: WrappedKey,
    library: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Ours: AES-256-GCM. The number is above those that the older libraries know, so that they refuse it.
    Gcm,
    /// Protocol 1.0 of the older libraries: AES-256-CBC.
    Cbc {
        initialization_vector: Vec<u8>,
        /// azure-storage for Java mixed the keys into the vectors in another order, and wrote lists otherwise.
        is_java: bool,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    wrapped_content_key: KeyDocument,
    encryption_agent: AgentDocument,
    #[serde(rename = "ContentEncryptionIV", skip_serializing_if = "Option::is_none")]
    initialization_vector: Option<String>,
    #[serde(default)]
    key_wrapping_metadata: Option<LibraryDocument>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KeyDocument {
    key_id: String,
    encrypted_key: String,
    algorithm: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AgentDocument {
    protocol: String,
    encryption_algorithm: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct LibraryDocument {
    #[serde(default)]
    encryption_library: Option<String>,
}

impl Metadata {
    pub(super) fn new(wrapped: WrappedKey) -> Self {
        Self { protocol: Protocol::Gcm, wrapped, library: Some(LIBRARY.to_owned()) }
    }

    /// The same with another wrapped key.
    pub(super) fn with_key(self, wrapped: WrappedKey) -> Self {
        Self { wrapped, ..self }
    }

    pub(super) fn to_json(&self) -> Result<String> {
        let (protocol, algorithm, vector) = match &self.protocol {
            Protocol::Gcm => ("2.0", "AES_GCM_256", None),
            Protocol::Cbc { initialization_vector, .. } => {
                ("1.0", "AES_CBC_256", Some(STANDARD.encode(initialization_vector)))
            }
        };
        let document = Document {
            wrapped_content_key: KeyDocument {
                key_id: self.wrapped.key_id.clone(),
                encrypted_key: STANDARD.encode(&self.wrapped.bytes),
                algorithm: self.wrapped.algorithm.clone(),
            },
            encryption_agent: AgentDocument {
                protocol: protocol.to_owned(),
                encryption_algorithm: algorithm.to_owned(),
            },
            initialization_vector: vector,
            key_wrapping_metadata: self
                .library
                .clone()
                .map(|library| LibraryDocument { encryption_library: Some(library) }),
        };
        Ok(serde_json::to_string(&document)?)
    }

    pub(super) fn from_json(text: &str) -> Result<Self> {
        let document: Document = serde_json::from_str(text)?;
        let library = document.key_wrapping_metadata.map(|library| library.encryption_library);
        let agent = &document.encryption_agent;
        let protocol = match (agent.protocol.as_str(), agent.encryption_algorithm.as_str()) {
            ("2.0", "AES_GCM_256") => Protocol::Gcm,
            ("1.0", "AES_CBC_256") => {
                let vector = document.initialization_vector.as_deref().unwrap_or_default();
                // Without the metadata it was an early version of the Java library too.
                let is_java = library.as_ref().is_none_or(|library| {
                    library.as_deref().is_some_and(|library| library.contains("Java"))
                });
                Protocol::Cbc { initialization_vector: STANDARD.decode(vector)?, is_java }
            }
            (protocol, algorithm) => {
                return Err(conversion(format!(
                    "the entity is encrypted in an unknown way: protocol={protocol} algorithm={algorithm}"
                )));
            }
        };
        let key = document.wrapped_content_key;
        let wrapped = WrappedKey {
            key_id: key.key_id,
            algorithm: key.algorithm,
            bytes: STANDARD.decode(key.encrypted_key)?,
        };
        Ok(Self { protocol, wrapped, library: library.flatten() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_round_trips() {
        let wrapped =
            WrappedKey { key_id: "k".into(), algorithm: "A256KW".into(), bytes: vec![1, 2] };
        let metadata = Metadata::new(wrapped);
        assert_eq!(Metadata::from_json(&metadata.to_json().unwrap()).unwrap(), metadata);
    }

    #[test]
    fn the_metadata_of_the_older_libraries_is_read() {
        let python = r#"{"WrappedContentKey": {"KeyId": "key1", "EncryptedKey": "AQI=", "Algorithm": "A256KW"}, "EncryptionAgent": {"Protocol": "1.0", "EncryptionAlgorithm": "AES_CBC_256"}, "ContentEncryptionIV": "AAAAAAAAAAAAAAAAAAAAAA==", "KeyWrappingMetadata": {"EncryptionLibrary": "Python 1.0.6"}}"#;
        let metadata = Metadata::from_json(python).unwrap();
        let vector = vec![0; 16];
        assert_eq!(
            metadata.protocol,
            Protocol::Cbc { initialization_vector: vector.clone(), is_java: false }
        );
        let java = python.replace("Python 1.0.6", "Java 4.0.0");
        let java = Metadata::from_json(&java).unwrap().protocol;
        assert_eq!(java, Protocol::Cbc { initialization_vector: vector, is_java: true });
        let unknown = python.replace("\"1.0\"", "\"3.0\"");
        assert!(Metadata::from_json(&unknown).is_err());
    }
}
