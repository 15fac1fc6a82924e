//! From properties to a serde type.

use serde::de::value::SeqDeserializer;
use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::BridgeError;
use crate::table::value::EdmValue;

/// One property as serde reads it. GUIDs and moments are texts, as their serde types expect.
pub(super) struct ValueDeserializer(pub EdmValue);

impl<'de> IntoDeserializer<'de, BridgeError> for ValueDeserializer {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for ValueDeserializer {
    type Error = BridgeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BridgeError> {
        match self.0 {
            EdmValue::String(text) => visitor.visit_string(text),
            EdmValue::Boolean(value) => visitor.visit_bool(value),
            EdmValue::Int32(value) => visitor.visit_i32(value),
            EdmValue::Int64(value) => visitor.visit_i64(value),
            EdmValue::Double(value) => visitor.visit_f64(value),
            EdmValue::DateTime(moment) => visitor.visit_string(moment.to_iso()),
            EdmValue::Guid(guid) => visitor.visit_string(guid.to_string()),
            EdmValue::Binary(bytes) => visitor.visit_byte_buf(bytes),
        }
    }

    /// A property that is there is `Some`; one that is not never gets here.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BridgeError> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BridgeError> {
        match self.0 {
            EdmValue::Binary(bytes) => visitor.visit_seq(SeqDeserializer::new(bytes.into_iter())),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, BridgeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, BridgeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BridgeError> {
        match self.0 {
            EdmValue::String(variant) => {
                let variant: serde::de::value::StringDeserializer<BridgeError> =
                    variant.into_deserializer();
                variant.deserialize_enum(name, variants, visitor)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct tuple_struct map struct identifier ignored_any
    }
}
