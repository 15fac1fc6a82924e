//! A struct as an entity: two fields are its keys, the others its properties.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{DataStruct, DeriveInput, Error, Field, Fields, Ident, LitStr, Result, Type};

use crate::attributes::{FieldAttributes, IndexAttributes, Role, TypeAttributes};

struct Property<'a> {
    field: &'a Ident,
    kind: &'a Type,
    name: String,
    attributes: FieldAttributes,
}

#[derive(Clone, Copy)]
struct Key<'a> {
    field: &'a Ident,
    kind: &'a Type,
}

/// The fields of a struct by what they are. Code for a field has the place of its type, so that errors point there.
struct Plan<'a> {
    partition_key: Option<Key<'a>>,
    row_key: Option<Key<'a>>,
    properties: Vec<Property<'a>>,
    flattened: Vec<&'a Ident>,
    skipped: Vec<&'a Ident>,
}

/// Writes `TableEntity`.
pub(crate) fn derive(input: &DeriveInput, data: &DataStruct) -> Result<TokenStream> {
    let attributes = TypeAttributes::parse(&input.attrs)?;
    if attributes.upgrade.is_some() && attributes.version.is_none() {
        return Err(Error::new_spanned(&input.ident, "an upgrade needs a version"));
    }
    let plan = Plan::new(input, data, &attributes)?;
    let missing =
        |key: &str| Error::new_spanned(&input.ident, format!("one field needs #[table({key})]"));
    let partition_key = plan.partition_key.ok_or_else(|| missing("partition_key"))?;
    let row_key = plan.row_key.ok_or_else(|| missing("row_key"))?;
    let (write_partition_key, write_row_key) = (partition_key.write(), row_key.write());
    let read_partition_key = partition_key.read(&quote!(take_partition_key));
    let read_row_key = row_key.read(&quote!(take_row_key));
    let (partition_key, row_key) = (partition_key.field, row_key.field);
    let (writes, reads) = (plan.writes(), plan.reads());
    let (marks, checks) = (marks(&attributes), checks(&attributes));
    let encrypted = plan.properties.iter().filter(|property| property.attributes.encrypt);
    let encrypted = encrypted.map(|property| &property.name);
    for index in &attributes.indexes {
        plan.check_index(index, &attributes)?;
    }
    let indexes = attributes.indexes.iter().map(index);
    let columns = attributes.columns.then(|| plan.columns(input));
    let ident = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    Ok(quote! {
        impl #impl_generics ::tavola_client::TableEntity for #ident #type_generics #where_clause {
            fn to_entity(&self) -> ::tavola_client::Result<::tavola_client::Entity> {
                let mut entity = ::tavola_client::Entity::new(#write_partition_key, #write_row_key);
                #marks
                #writes
                Ok(entity)
            }

            fn from_entity(mut entity: ::tavola_client::Entity) -> ::tavola_client::Result<Self> {
                #checks
                Ok(Self {
                    // The properties come first, because their errors name the keys.
                    #reads
                    #partition_key: #read_partition_key,
                    #row_key: #read_row_key,
                })
            }

            fn encrypted_properties(&self) -> &'static [&'static str] {
                &[#(#encrypted),*]
            }

            fn indexes() -> ::std::vec::Vec<(&'static str, ::tavola_client::IndexSpec)> {
                ::std::vec![#(#indexes),*]
            }
        }
        #columns
    })
}

/// Writes `PropertySet`.
pub(crate) fn derive_set(input: &DeriveInput, data: &DataStruct) -> Result<TokenStream> {
    let attributes = TypeAttributes::parse(&input.attrs)?;
    if let Some(index) = attributes.indexes.first() {
        let text = "a set of properties has no indexes: declare them on the entity type";
        return Err(Error::new_spanned(&index.name, text));
    }
    let plan = Plan::new(input, data, &attributes)?;
    if let Some(key) = plan.partition_key.or(plan.row_key) {
        return Err(Error::new_spanned(key.field, "a set of properties has no keys"));
    }
    if let Some(property) = plan.properties.iter().find(|property| property.attributes.encrypt) {
        let text = "mark the property in the entity type, or name it in a resolver";
        return Err(Error::new_spanned(property.field, text));
    }
    let (writes, reads) = (plan.writes(), plan.reads());
    let ident = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    Ok(quote! {
        impl #impl_generics ::tavola_client::patterns::heterogeneous::PropertySet for #ident #type_generics #where_clause {
            #[allow(unused_mut)]
            fn write_to(&self, mut entity: &mut ::tavola_client::Entity) -> ::tavola_client::Result<()> {
                #writes
                Ok(())
            }

            #[allow(unused_mut)]
            fn take_from(mut entity: &mut ::tavola_client::Entity) -> ::tavola_client::Result<Self> {
                Ok(Self { #reads })
            }
        }
    })
}

impl<'a> Plan<'a> {
    fn new(
        input: &'a DeriveInput,
        data: &'a DataStruct,
        attributes: &TypeAttributes,
    ) -> Result<Self> {
        let Fields::Named(fields) = &data.fields else {
            return Err(Error::new_spanned(
                &input.ident,
                "an entity is a struct with named fields",
            ));
        };
        let mut plan = Self {
            partition_key: None,
            row_key: None,
            properties: Vec::new(),
            flattened: Vec::new(),
            skipped: Vec::new(),
        };
        for field in &fields.named {
            let ident = field.ident.as_ref().expect("the fields are named");
            let found = FieldAttributes::parse(&field.attrs)?;
            let key = Key { field: ident, kind: &field.ty };
            match found.role {
                Role::PartitionKey => set_once(&mut plan.partition_key, key, "partition key")?,
                Role::RowKey => set_once(&mut plan.row_key, key, "row key")?,
                Role::Flattened => plan.flattened.push(ident),
                Role::Skipped => plan.skipped.push(ident),
                Role::Property => plan.properties.push(property(field, ident, found, attributes)?),
            }
        }
        Ok(plan)
    }

    /// An index on a name that nothing is stored under has no entries, and one on what is encrypted finds nothing: the
    /// service sees other values. What flattened fields are stored as is not known here.
    fn check_index(&self, index: &IndexAttributes, attributes: &TypeAttributes) -> Result<()> {
        let (keys, include) = (names(Some(&index.keys)), names(index.include.as_ref()));
        let filter = compared(index.filter.as_ref());
        let uses = |name: &String| [&keys, &include, &filter].iter().any(|it| it.contains(name));
        let mut encrypted = self.properties.iter().filter(|property| property.attributes.encrypt);
        if let Some(Property { name, .. }) = encrypted.find(|property| uses(&property.name)) {
            let text = format!("{name} is encrypted, so that the service cannot index its values");
            return Err(Error::new_spanned(&index.keys, text));
        }
        let mut stored = vec!["PartitionKey", "RowKey", "Timestamp"];
        stored.extend(attributes.entity_type.as_ref().map(|_| "EntityType"));
        stored.extend(attributes.version.as_ref().map(|_| "EntityVersion"));
        stored.extend(self.properties.iter().map(|property| property.name.as_str()));
        let (include_text, filter_text) = (index.include.as_ref(), index.filter.as_ref());
        let all = [(Some(&index.keys), keys), (include_text, include), (filter_text, filter)];
        for (text, names) in all {
            let unknown = names.iter().find(|name| !stored.contains(&name.as_str()));
            if let Some(name) = unknown.filter(|_| self.flattened.is_empty()) {
                let message =
                    format!("no property is stored as {name}; there are {}", stored.join(", "));
                return Err(Error::new_spanned(text, message));
            }
        }
        Ok(())
    }

    /// Statements that write the properties into `entity`.
    fn writes(&self) -> TokenStream {
        let writes =
            self.properties.iter().map(
                |Property { field, name, attributes, kind }| match attributes.json {
                    true => quote_spanned! { kind.span() =>
                        ::tavola_client::macros::set_json(&mut entity, #name, &self.#field)?;
                    },
                    false => quote_spanned! { kind.span() =>
                        entity.set_property(#name, &self.#field)?;
                    },
                },
            );
        let flattened = &self.flattened;
        quote! {
            #(#writes)*
            #(::tavola_client::patterns::heterogeneous::PropertySet::write_to(&self.#flattened, &mut entity)?;)*
        }
    }

    /// Fields of a struct expression that take the properties from `entity`.
    fn reads(&self) -> TokenStream {
        let properties = self.properties.iter().map(|Property { field, name, attributes, kind }| {
            let value = match (attributes.json, attributes.default) {
                (true, false) => quote! { ::tavola_client::macros::take_json(&mut entity, #name)? },
                (true, true) => {
                    quote! { ::tavola_client::macros::take_json_or_default(&mut entity, #name)? }
                }
                (false, true) => {
                    quote! { entity.take::<::core::option::Option<#kind>>(#name)?.unwrap_or_default() }
                }
                (false, false) => quote! { entity.take::<#kind>(#name)? },
            };
            quote! { #field: #value }
        });
        let (flattened, skipped) = (&self.flattened, &self.skipped);
        quote! {
            #(#properties,)*
            #(#flattened: ::tavola_client::patterns::heterogeneous::PropertySet::take_from(&mut entity)?,)*
            #(#skipped: ::core::default::Default::default(),)*
        }
    }

    fn columns(&self, input: &DeriveInput) -> TokenStream {
        let (ident, visibility) = (&input.ident, &input.vis);
        let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
        // What is stored as JSON cannot be compared by its value.
        let properties = self.properties.iter().filter(|property| !property.attributes.json);
        let constants = properties.map(|Property { field, kind, name, .. }| {
            let constant = format_ident!("{}", field.unraw().to_string().to_uppercase());
            let text = format!("The property `{name}`, for filters.");
            quote! {
                #[doc = #text]
                #visibility const #constant: ::tavola_client::Column<#kind> = ::tavola_client::Column::new(#name);
            }
        });
        quote! {
            #[allow(dead_code)]
            impl #impl_generics #ident #type_generics #where_clause {
                #(#constants)*
            }
        }
    }
}

/// The properties that a list names, without their types and signs. `*` names none.
fn names(list: Option<&LitStr>) -> Vec<String> {
    let list = list.map(LitStr::value).unwrap_or_default();
    let name = |part: &str| {
        let part = part.trim().trim_end_matches(['!', '?']);
        part.split(':').next().unwrap_or_default().to_owned()
    };
    list.split(',').map(name).filter(|name| !name.is_empty() && name != "*").collect()
}

/// The properties that a filter compares with something that is written behind them, as most do.
fn compared(filter: Option<&LitStr>) -> Vec<String> {
    const COMPARISONS: [&str; 6] = ["eq", "ne", "gt", "ge", "lt", "le"];
    let filter = filter.map(LitStr::value).unwrap_or_default();
    let mut names = Vec::new();
    for outside in filter.split('\'').step_by(2) {
        let words = outside.split(|c: char| !c.is_alphanumeric() && c != '_');
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        let pairs = words.windows(2).filter(|pair| COMPARISONS.contains(&pair[1]));
        let is_name = |word: &&str| !word.starts_with(|c: char| c.is_ascii_digit());
        let is_constant = |word: &&str| ["true", "false", "null"].contains(word);
        let found = pairs.map(|pair| pair[0]).filter(|word| is_name(word) && !is_constant(word));
        names.extend(found.map(str::to_owned));
    }
    names
}

/// An index, by its name.
pub(crate) fn index(attributes: &IndexAttributes) -> TokenStream {
    let IndexAttributes { name, keys, include, filter, browse_as, unique } = attributes;
    let include = include.as_ref().map(|text| quote! { .include(#text) });
    let filter = filter.as_ref().map(|text| quote! { .filter(#text) });
    let browse_as = browse_as.as_ref().map(|text| quote! { .browse_as(#text) });
    let unique = unique.then(|| quote! { .unique() });
    quote! {
        (#name, ::tavola_client::IndexSpec::on(#keys) #include #filter #unique #browse_as)
    }
}

/// The properties that tell type and version.
fn marks(attributes: &TypeAttributes) -> TokenStream {
    let kind = attributes.entity_type.as_ref().map(|kind| {
        quote! { entity.set(::tavola_client::ENTITY_TYPE, #kind); }
    });
    let version = attributes.version.as_ref().map(|version| {
        quote! { entity.set(::tavola_client::ENTITY_VERSION, #version as i32); }
    });
    quote! { #kind #version }
}

/// What an entity must be before it is read as this type.
fn checks(attributes: &TypeAttributes) -> TokenStream {
    let kind = attributes.entity_type.as_ref().map(|kind| {
        quote! { ::tavola_client::macros::check_entity_type(&mut entity, #kind)?; }
    });
    let version = attributes.version.as_ref().map(|version| match &attributes.upgrade {
        Some(upgrade) => quote! {
            let found = ::tavola_client::macros::take_version(&mut entity, #version as i32)?;
            if found < #version as i32 {
                entity = #upgrade(entity, found)?;
            }
        },
        None => quote! { ::tavola_client::macros::take_version(&mut entity, #version as i32)?; },
    });
    quote! { #version #kind }
}

impl Key<'_> {
    fn write(&self) -> TokenStream {
        let Self { field, kind } = self;
        quote_spanned! { kind.span() => ::tavola_client::KeyField::to_key(&self.#field)? }
    }

    fn read(&self, take: &TokenStream) -> TokenStream {
        let kind = self.kind;
        quote_spanned! { kind.span() => <#kind as ::tavola_client::KeyField>::from_key(entity.#take())? }
    }
}

fn set_once<'a>(slot: &mut Option<Key<'a>>, key: Key<'a>, what: &str) -> Result<()> {
    match slot.replace(key) {
        None => Ok(()),
        Some(_) => Err(Error::new_spanned(key.field, format!("an entity has one {what}"))),
    }
}

fn property<'a>(
    field: &'a Field,
    ident: &'a Ident,
    found: FieldAttributes,
    attributes: &TypeAttributes,
) -> Result<Property<'a>> {
    let plain = ident.unraw().to_string();
    let name = match (&found.rename, attributes.rename_all) {
        (Some(name), _) => name.value(),
        (None, Some(case)) => case.apply(&plain),
        (None, None) => plain,
    };
    if matches!(name.as_str(), "PartitionKey" | "RowKey" | "Timestamp") {
        let text = format!(
            "{name} is the service's own: mark the key fields, and read the rest beside the value"
        );
        return Err(Error::new_spanned(ident, text));
    }
    Ok(Property { field: ident, kind: &field.ty, name, attributes: found })
}

#[cfg(test)]
mod tests {
    use syn::{Data, parse_quote};

    use super::*;

    #[test]
    fn a_set_of_properties_has_no_indexes() {
        let input: DeriveInput = parse_quote! {
            #[table(index(name = "ByTown", keys = "Town"))]
            struct Address { town: String }
        };
        let Data::Struct(data) = &input.data else { panic!("it is a struct") };
        let refused = derive_set(&input, data).unwrap_err().to_string();
        assert!(refused.contains("on the entity type"), "{refused}");
    }

    /// Why a type is refused that has this index.
    fn refusal(index: &str, fields: &str) -> Option<String> {
        let text = format!(
            "#[table(rename_all = \"PascalCase\", entity_type = \"Person\")] #[table(index({index}))]
             struct Person {{
                 #[table(partition_key)] country: String,
                 #[table(row_key)] id: String,
                 town: String, last_name: String, #[table(encrypt)] email: String, {fields}
             }}"
        );
        let input: DeriveInput = syn::parse_str(&text).unwrap();
        let Data::Struct(data) = &input.data else { panic!("it is a struct") };
        derive(&input, data).err().map(|error| error.to_string())
    }

    #[test]
    fn an_index_is_on_what_is_stored() {
        for known in [
            r#"name = "A", keys = "Town:String!, LastName?", include = "*""#,
            r#"name = "A", keys = "PartitionKey,Timestamp,RowKey", include = "Town, LastName""#,
            r#"name = "A", keys = "EntityType", filter = "Town eq 'Email' and LastName gt 'A'""#,
            r#"name = "A", keys = "Town", filter = "guid'ab' lt Town or 'a eq b' ne Town or 5 eq Town""#,
        ] {
            assert_eq!(refusal(known, ""), None, "{known}");
        }
        for (index, name) in [
            (r#"name = "A", keys = "town""#, "town"),
            (r#"name = "A", keys = "Town,Country""#, "Country"),
            (r#"name = "A", keys = "Town", include = "Id""#, "Id"),
            (r#"name = "A", keys = "EntityVersion""#, "EntityVersion"),
            (r#"name = "A", keys = "Town", filter = "Town gt 'x' and (town eq 'y')""#, "town"),
        ] {
            let why = refusal(index, "").unwrap();
            assert!(why.starts_with(&format!("no property is stored as {name};")), "{why}");
            assert_eq!(refusal(index, "#[table(flatten)] address: Address,"), None);
        }
    }

    #[test]
    fn an_index_is_on_nothing_that_is_encrypted() {
        for index in [
            r#"name = "A", keys = "Email?""#,
            r#"name = "A", keys = "Town", include = "Email""#,
            r#"name = "A", keys = "Town", filter = "Email eq 'a@b.c'""#,
        ] {
            let why = refusal(index, "#[table(flatten)] address: Address,").unwrap();
            assert!(why.starts_with("Email is encrypted"), "{why}");
        }
    }
}
