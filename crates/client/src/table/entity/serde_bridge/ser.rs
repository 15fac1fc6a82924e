//! From a serde type to properties.

use azure_core::Uuid;
use serde::ser::{self, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct};

use super::{BridgeError, DATE_TIME, GUID};
use crate::table::value::{DateTime, EdmValue};

/// A name and its value, if there is one.
pub(super) type Field = (String, Option<EdmValue>);

fn no_property<T>(what: &str) -> Result<T, BridgeError> {
    Err(BridgeError(format!("{what} is no property of an entity")))
}

fn no_entity<T>(what: &str) -> Result<T, BridgeError> {
    Err(BridgeError(format!("{what} is no entity")))
}

/// Declares the methods of a serializer that refuse.
macro_rules! refuse {
    ($refusal:ident: $($method:ident($($argument:ty),*)),+ $(,)?) => {
        $(fn $method(self $(, _: $argument)*) -> Result<Self::Ok, BridgeError> {
            $refusal(&stringify!($method)["serialize_".len()..])
        })+
    };
}

/// Takes a struct or a map apart into its fields.
pub(super) struct FieldsSerializer;

pub(super) struct Fields {
    fields: Vec<Field>,
    name: String,
}

impl ser::Serializer for FieldsSerializer {
    type Ok = Vec<Field>;
    type Error = BridgeError;
    type SerializeSeq = Impossible<Vec<Field>, BridgeError>;
    type SerializeTuple = Impossible<Vec<Field>, BridgeError>;
    type SerializeTupleStruct = Impossible<Vec<Field>, BridgeError>;
    type SerializeTupleVariant = Impossible<Vec<Field>, BridgeError>;
    type SerializeMap = Fields;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Impossible<Vec<Field>, BridgeError>;

    refuse!(no_entity:
        serialize_bool(bool), serialize_i8(i8), serialize_i16(i16), serialize_i32(i32), serialize_i64(i64),
        serialize_u8(u8), serialize_u16(u16), serialize_u32(u32), serialize_u64(u64), serialize_f32(f32),
        serialize_f64(f64), serialize_char(char), serialize_str(&str), serialize_bytes(&[u8]), serialize_none(),
        serialize_unit(), serialize_unit_struct(&'static str),
        serialize_unit_variant(&'static str, u32, &'static str),
    );

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Self::Ok, BridgeError> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Self::Ok, BridgeError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Self::Ok, BridgeError> {
        no_entity("a variant")
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, BridgeError> {
        no_entity("a sequence")
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, BridgeError> {
        no_entity("a tuple")
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, BridgeError> {
        no_entity("a tuple")
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, BridgeError> {
        no_entity("a variant")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields, BridgeError> {
        Ok(Fields { fields: Vec::new(), name: String::new() })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields, BridgeError> {
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, BridgeError> {
        no_entity("a variant")
    }
}

impl SerializeStruct for Fields {
    type Ok = Vec<Field>;
    type Error = BridgeError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), BridgeError> {
        let value = value.serialize(ValueSerializer)?;
        self.fields.push((name.to_owned(), value));
        Ok(())
    }

    fn end(self) -> Result<Vec<Field>, BridgeError> {
        Ok(self.fields)
    }
}

impl SerializeMap for Fields {
    type Ok = Vec<Field>;
    type Error = BridgeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), BridgeError> {
        match key.serialize(ValueSerializer)? {
            Some(EdmValue::String(name)) => self.name = name,
            _ => return no_entity("a map whose keys are no texts"),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), BridgeError> {
        let value = value.serialize(ValueSerializer)?;
        self.fields.push((std::mem::take(&mut self.name), value));
        Ok(())
    }

    fn end(self) -> Result<Vec<Field>, BridgeError> {
        Ok(self.fields)
    }
}

/// Turns one field into a property.
struct ValueSerializer;

/// A sequence of bytes, the only one that is a property.
pub(super) struct ByteSeq(Vec<u8>);

/// Declares the methods of numbers, each by its own EDM type.
macro_rules! numbers {
    ($($method:ident($rust:ty)),+ $(,)?) => {
        $(fn $method(self, value: $rust) -> Result<Option<EdmValue>, BridgeError> {
            Ok(Some(value.into()))
        })+
    };
}

impl ser::Serializer for ValueSerializer {
    type Ok = Option<EdmValue>;
    type Error = BridgeError;
    type SerializeSeq = ByteSeq;
    type SerializeTuple = ByteSeq;
    type SerializeTupleStruct = Impossible<Self::Ok, BridgeError>;
    type SerializeTupleVariant = Impossible<Self::Ok, BridgeError>;
    type SerializeMap = Impossible<Self::Ok, BridgeError>;
    type SerializeStruct = Impossible<Self::Ok, BridgeError>;
    type SerializeStructVariant = Impossible<Self::Ok, BridgeError>;

    numbers!(
        serialize_bool(bool),
        serialize_i8(i8),
        serialize_i16(i16),
        serialize_i32(i32),
        serialize_i64(i64),
        serialize_u8(u8),
        serialize_u16(u16),
        serialize_u32(u32),
        serialize_f32(f32),
        serialize_f64(f64),
    );

    fn serialize_u64(self, value: u64) -> Result<Self::Ok, BridgeError> {
        match i64::try_from(value) {
            Ok(value) => Ok(Some(value.into())),
            Err(_) => no_property("a number above 2^63"),
        }
    }

    fn serialize_char(self, value: char) -> Result<Self::Ok, BridgeError> {
        Ok(Some(value.to_string().into()))
    }

    fn serialize_str(self, value: &str) -> Result<Self::Ok, BridgeError> {
        Ok(Some(value.into()))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Self::Ok, BridgeError> {
        Ok(Some(value.into()))
    }

    fn serialize_none(self) -> Result<Self::Ok, BridgeError> {
        Ok(None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Self::Ok, BridgeError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Self::Ok, BridgeError> {
        Ok(None)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Self::Ok, BridgeError> {
        Ok(None)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Self::Ok, BridgeError> {
        Ok(Some(variant.into()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Self::Ok, BridgeError> {
        let value = value.serialize(self)?;
        Ok(match (name, value) {
            (GUID, Some(EdmValue::String(text))) => Uuid::parse_str(&text).ok().map(EdmValue::Guid),
            (DATE_TIME, Some(EdmValue::String(text))) => {
                DateTime::parse_iso(&text).map(EdmValue::DateTime)
            }
            (_, value) => value,
        })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Self::Ok, BridgeError> {
        no_property("a variant with a value")
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<ByteSeq, BridgeError> {
        Ok(ByteSeq(Vec::new()))
    }

    fn serialize_tuple(self, _: usize) -> Result<ByteSeq, BridgeError> {
        Ok(ByteSeq(Vec::new()))
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, BridgeError> {
        no_property("a tuple")
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, BridgeError> {
        no_property("a variant with values")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, BridgeError> {
        no_property("a map")
    }

    fn serialize_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStruct, BridgeError> {
        no_property("a struct")
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, BridgeError> {
        no_property("a variant with values")
    }
}

impl ByteSeq {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), BridgeError> {
        // Small integers all become `Edm.Int32` here, so a byte is a number from 0 to 255.
        match value.serialize(ValueSerializer)? {
            Some(EdmValue::Int32(number)) => match u8::try_from(number) {
                Ok(byte) => self.0.push(byte),
                Err(_) => return no_property("a sequence of other things than bytes"),
            },
            _ => return no_property("a sequence of other things than bytes"),
        }
        Ok(())
    }
}

impl SerializeSeq for ByteSeq {
    type Ok = Option<EdmValue>;
    type Error = BridgeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), BridgeError> {
        self.push(value)
    }

    fn end(self) -> Result<Self::Ok, BridgeError> {
        Ok(Some(EdmValue::Binary(self.0)))
    }
}

impl ser::SerializeTuple for ByteSeq {
    type Ok = Option<EdmValue>;
    type Error = BridgeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), BridgeError> {
        self.push(value)
    }

    fn end(self) -> Result<Self::Ok, BridgeError> {
        Ok(Some(EdmValue::Binary(self.0)))
    }
}
