//! The `#[table(...)]` attributes, as data.

use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, LitInt, LitStr, Path, Result};

#[derive(Default)]
pub(crate) struct TypeAttributes {
    pub rename_all: Option<Case>,
    pub entity_type: Option<LitStr>,
    pub version: Option<LitInt>,
    pub upgrade: Option<Path>,
    pub columns: bool,
    pub indexes: Vec<IndexAttributes>,
}

/// `index(name = "...", keys = "...")`
pub(crate) struct IndexAttributes {
    pub name: LitStr,
    pub keys: LitStr,
    pub include: Option<LitStr>,
    pub filter: Option<LitStr>,
    pub browse_as: Option<LitStr>,
    pub unique: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Case {
    Pascal,
    Camel,
}

#[derive(Default)]
pub(crate) struct FieldAttributes {
    pub role: Role,
    pub rename: Option<LitStr>,
    pub default: bool,
    pub encrypt: bool,
    /// Stored as a text in JSON.
    pub json: bool,
}

#[derive(Default, PartialEq, Eq)]
pub(crate) enum Role {
    #[default]
    Property,
    PartitionKey,
    RowKey,
    Flattened,
    Skipped,
}

#[derive(Default)]
pub(crate) struct VariantAttributes {
    pub entity_type: Option<LitStr>,
    pub partition_key_prefix: Option<LitStr>,
    pub row_key_prefix: Option<LitStr>,
    pub other: bool,
}

impl TypeAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("table")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("rename_all") {
                    let case: LitStr = meta.value()?.parse()?;
                    found.rename_all = Some(Case::parse(&case)?);
                } else if meta.path.is_ident("entity_type") {
                    found.entity_type = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("version") {
                    found.version = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("upgrade") {
                    found.upgrade = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("columns") {
                    found.columns = true;
                } else if meta.path.is_ident("index") {
                    found.indexes.push(IndexAttributes::parse(&meta)?);
                } else {
                    return Err(meta.error("this attribute is not known on a type"));
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

impl IndexAttributes {
    fn parse(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        let (mut name, mut keys, mut unique) = (None, None, false);
        let (mut include, mut filter, mut browse_as) = (None, None, None);
        meta.parse_nested_meta(|meta| {
            let slot = if meta.path.is_ident("name") {
                &mut name
            } else if meta.path.is_ident("keys") {
                &mut keys
            } else if meta.path.is_ident("include") {
                &mut include
            } else if meta.path.is_ident("filter") {
                &mut filter
            } else if meta.path.is_ident("browse_as") {
                &mut browse_as
            } else if meta.path.is_ident("unique") {
                unique = true;
                return Ok(());
            } else {
                return Err(meta.error("this attribute is not known of an index"));
            };
            *slot = Some(meta.value()?.parse()?);
            Ok(())
        })?;
        let name = name.ok_or_else(|| meta.error("an index needs a name"))?;
        let keys = keys.ok_or_else(|| meta.error("an index needs keys"))?;
        Ok(Self { name, keys, include, filter, browse_as, unique })
    }
}

impl FieldAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("table")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("partition_key") {
                    found.role = Role::PartitionKey;
                } else if meta.path.is_ident("row_key") {
                    found.role = Role::RowKey;
                } else if meta.path.is_ident("flatten") {
                    found.role = Role::Flattened;
                } else if meta.path.is_ident("skip") {
                    found.role = Role::Skipped;
                } else if meta.path.is_ident("rename") {
                    found.rename = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("default") {
                    found.default = true;
                } else if meta.path.is_ident("encrypt") {
                    found.encrypt = true;
                } else if meta.path.is_ident("json") {
                    found.json = true;
                } else {
                    return Err(meta.error("this attribute is not known on a field"));
                }
                Ok(())
            })?;
            if found.json && found.role != Role::Property {
                return Err(syn::Error::new(
                    attribute.span(),
                    "only properties are stored as JSON",
                ));
            }
            if found.encrypt && found.role != Role::Property {
                let text =
                    "only properties are encrypted: the service finds entities by their keys";
                return Err(syn::Error::new(attribute.span(), text));
            }
        }
        Ok(found)
    }
}

impl VariantAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("table")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("entity_type") {
                    found.entity_type = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("partition_key_prefix") {
                    found.partition_key_prefix = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("row_key_prefix") {
                    found.row_key_prefix = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("other") {
                    found.other = true;
                } else {
                    return Err(meta.error("this attribute is not known on a variant"));
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

impl Case {
    fn parse(text: &LitStr) -> Result<Self> {
        match text.value().as_str() {
            "PascalCase" => Ok(Self::Pascal),
            "camelCase" => Ok(Self::Camel),
            _ => Err(syn::Error::new(text.span(), "known are PascalCase and camelCase")),
        }
    }

    /// Turns `first_name` into `FirstName` or `firstName`.
    pub(crate) fn apply(self, name: &str) -> String {
        let mut out = String::with_capacity(name.len());
        let mut is_upper = matches!(self, Self::Pascal);
        for character in name.chars() {
            if character == '_' {
                is_upper = !out.is_empty() || matches!(self, Self::Pascal);
            } else if is_upper {
                out.extend(character.to_uppercase());
                is_upper = false;
            } else {
                out.push(character);
            }
        }
        out
    }
}
