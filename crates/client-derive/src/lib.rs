//! The macros of `tavola-client`: `#[derive(TableEntity)]` and `filter!`.
//!
//! What they mean is documented where they are re-exported. They read their input into plain data (`attributes`,
//! `filter`) and write code from it; nothing here knows the protocol.

mod attributes;
mod enums;
mod filter;
mod structs;

use proc_macro::TokenStream;
use syn::{Data, DeriveInput, parse_macro_input};

/// Makes an entity of a struct, or of an enum over several entity types.
///
/// On a struct: `#[table(rename_all = "PascalCase")]` (or `camelCase`), `#[table(entity_type = "Employee")]`,
/// `#[table(version = 2, upgrade = path)]`, `#[table(columns)]`.
/// Also on an enum, which has those of its variants' types too: `#[table(index(name = "ByTown", keys = "Town"))]`, with the
/// names that properties are stored under.
/// On its fields: `#[table(partition_key)]`, `#[table(row_key)]`, `#[table(rename = "Name")]`, `#[table(skip)]`,
/// `#[table(default)]`, `#[table(flatten)]`, `#[table(encrypt)]`, `#[table(json)]`.
/// On the variants of an enum: `#[table(entity_type = "Employee")]`, `#[table(partition_key_prefix = "Employee_")]`,
/// `#[table(row_key_prefix = "EMP_")]`, `#[table(other)]`.
#[proc_macro_derive(TableEntity, attributes(table))]
pub fn derive_table_entity(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let code = match &input.data {
        Data::Struct(data) => structs::derive(&input, data),
        Data::Enum(data) => enums::derive(&input, data),
        Data::Union(_) => Err(syn::Error::new_spanned(&input, "a union is no entity")),
    };
    code.unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Makes a set of properties of a struct, for entity types to contain with `#[table(flatten)]`.
///
/// Knows `#[table(rename_all = "...")]` on the struct, and `rename`, `skip`, `default` and `flatten` on its fields.
#[proc_macro_derive(PropertySet, attributes(table))]
pub fn derive_property_set(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let code = match &input.data {
        Data::Struct(data) => structs::derive_set(&input, data),
        _ => Err(syn::Error::new_spanned(&input, "a set of properties is a struct")),
    };
    code.unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Makes a filter from an expression that reads like Rust.
///
/// Names on one side of a comparison are properties; the other side is any Rust expression. `&&`, `||`, `!` and
/// parentheses mean what they mean, a name alone means that it is true, and `Name.starts_with(prefix)` is a range.
#[proc_macro]
pub fn filter(input: TokenStream) -> TokenStream {
    let expression = parse_macro_input!(input as syn::Expr);
    filter::expand(&expression).unwrap_or_else(|error| error.to_compile_error()).into()
}
