//! An enum as an entity: a table that holds several types, told apart by a property or by a prefix of a key.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, DeriveInput, Error, Fields, Ident, Result, Type, Variant};

use crate::attributes::{TypeAttributes, VariantAttributes};
use crate::structs::index;

struct Arm<'a> {
    ident: &'a Ident,
    kind: &'a Type,
    attributes: VariantAttributes,
}

pub(crate) fn derive(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let attributes = TypeAttributes::parse(&input.attrs)?;
    let indexes = attributes.indexes.iter().map(index);
    let arms = data.variants.iter().map(arm).collect::<Result<Vec<_>>>()?;
    let others = arms.iter().filter(|arm| arm.attributes.other).count();
    if others > 1 {
        return Err(Error::new_spanned(&input.ident, "one variant at most takes the others"));
    }
    let writes = arms.iter().map(write);
    let variants = arms.iter().map(|arm| arm.ident);
    let kinds = arms.iter().map(|arm| arm.kind);
    let by_type = arms.iter().filter_map(|Arm { ident, kind, attributes }| {
        let name = attributes.entity_type.as_ref()?;
        Some(quote! {
            ::core::option::Option::Some(#name) => {
                return <#kind as ::tavola_client::TableEntity>::from_entity(entity).map(Self::#ident);
            }
        })
    });
    let by_prefix = arms.iter().filter_map(|Arm { ident, kind, attributes }| {
        let partition_key = attributes.partition_key_prefix.as_ref();
        let row_key = attributes.row_key_prefix.as_ref();
        partition_key.or(row_key)?;
        let partition_key =
            partition_key.map(|prefix| quote! { && entity.partition_key().starts_with(#prefix) });
        let row_key = row_key.map(|prefix| quote! { && entity.row_key().starts_with(#prefix) });
        Some(quote! {
            if true #partition_key #row_key {
                return <#kind as ::tavola_client::TableEntity>::from_entity(entity).map(Self::#ident);
            }
        })
    });
    let rest = match arms.iter().find(|arm| arm.attributes.other) {
        Some(Arm { ident, kind, .. }) => quote! {
            <#kind as ::tavola_client::TableEntity>::from_entity(entity).map(Self::#ident)
        },
        None => quote! { Err(::tavola_client::macros::no_variant(&entity)) },
    };
    let ident = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    Ok(quote! {
        impl #impl_generics ::tavola_client::TableEntity for #ident #type_generics #where_clause {
            fn to_entity(&self) -> ::tavola_client::Result<::tavola_client::Entity> {
                match self { #(#writes)* }
            }

            fn from_entity(entity: ::tavola_client::Entity) -> ::tavola_client::Result<Self> {
                match ::tavola_client::macros::entity_type(&entity) {
                    #(#by_type)*
                    _ => {}
                }
                #(#by_prefix)*
                #rest
            }

            fn encrypted_properties(&self) -> &'static [&'static str] {
                match self {
                    #(Self::#variants(value) => ::tavola_client::TableEntity::encrypted_properties(value),)*
                }
            }

            fn indexes() -> ::std::vec::Vec<(&'static str, ::tavola_client::IndexSpec)> {
                let mut indexes = ::std::vec![#(#indexes),*];
                #(::tavola_client::macros::add_indexes::<#kinds>(&mut indexes);)*
                indexes
            }
        }
    })
}

fn arm(variant: &Variant) -> Result<Arm<'_>> {
    let attributes = VariantAttributes::parse(&variant.attrs)?;
    let kind = match &variant.fields {
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => &fields.unnamed[0].ty,
        _ => return Err(Error::new_spanned(variant, "a variant holds one entity type")),
    };
    let prefix = attributes.partition_key_prefix.as_ref().or(attributes.row_key_prefix.as_ref());
    if attributes.entity_type.is_none() && prefix.is_none() && !attributes.other {
        let text = "a variant needs an entity_type, a partition_key_prefix, a row_key_prefix, or to be the other";
        return Err(Error::new_spanned(variant, text));
    }
    Ok(Arm { ident: &variant.ident, kind, attributes })
}

/// Writes the variant's entity, with the property that tells it apart.
fn write(arm: &Arm<'_>) -> TokenStream {
    let Arm { ident, attributes, .. } = arm;
    let mark = attributes.entity_type.as_ref().map(|name| {
        quote! { entity.set(::tavola_client::ENTITY_TYPE, #name); }
    });
    let partition_key = attributes.partition_key_prefix.as_ref().map(|prefix| {
        quote! { ::tavola_client::macros::check_partition_key_prefix(&entity, #prefix)?; }
    });
    let row_key = attributes.row_key_prefix.as_ref().map(|prefix| {
        quote! { ::tavola_client::macros::check_row_key_prefix(&entity, #prefix)?; }
    });
    quote! {
        Self::#ident(value) => {
            #[allow(unused_mut)]
            let mut entity = ::tavola_client::TableEntity::to_entity(value)?;
            #mark
            #partition_key
            #row_key
            Ok(entity)
        }
    }
}
