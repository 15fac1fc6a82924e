//! `filter!`: a Rust expression whose names are properties.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{BinOp, Error, Expr, ExprBinary, ExprMethodCall, Ident, Result, UnOp};

pub(crate) fn expand(expression: &Expr) -> Result<TokenStream> {
    match expression {
        Expr::Paren(inner) => expand(&inner.expr),
        Expr::Group(inner) => expand(&inner.expr),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
            let inner = expand(&unary.expr)?;
            Ok(quote! { (!#inner) })
        }
        Expr::Binary(binary) => expand_binary(binary),
        Expr::MethodCall(call) => expand_call(call),
        Expr::Path(_) => {
            let name = property(expression).ok_or_else(|| unknown(expression))?.to_string();
            Ok(quote! {
                ::tavola_client::Filter::compare(#name, ::tavola_client::Operator::Eq, true)
            })
        }
        _ => Err(unknown(expression)),
    }
}

fn expand_binary(binary: &ExprBinary) -> Result<TokenStream> {
    if let BinOp::And(_) | BinOp::Or(_) = binary.op {
        let (left, right) = (expand(&binary.left)?, expand(&binary.right)?);
        return Ok(match binary.op {
            BinOp::And(_) => quote! { (#left & #right) },
            _ => quote! { (#left | #right) },
        });
    }
    let (operator, flipped) = match binary.op {
        BinOp::Eq(_) => (quote!(Eq), quote!(Eq)),
        BinOp::Ne(_) => (quote!(Ne), quote!(Ne)),
        BinOp::Gt(_) => (quote!(Gt), quote!(Lt)),
        BinOp::Ge(_) => (quote!(Ge), quote!(Le)),
        BinOp::Lt(_) => (quote!(Lt), quote!(Gt)),
        BinOp::Le(_) => (quote!(Le), quote!(Ge)),
        _ => return Err(Error::new_spanned(binary, "filters compare with == != < <= > >=")),
    };
    let (name, operator, value) = match (property(&binary.left), property(&binary.right)) {
        (Some(name), _) => (name, operator, &binary.right),
        (None, Some(name)) => (name, flipped, &binary.left),
        (None, None) => {
            return Err(Error::new_spanned(
                binary,
                "one side of a comparison is the name of a property",
            ));
        }
    };
    let name = name.to_string();
    Ok(quote! {
        ::tavola_client::Filter::compare(#name, ::tavola_client::Operator::#operator, #value)
    })
}

fn expand_call(call: &ExprMethodCall) -> Result<TokenStream> {
    let (Some(name), "starts_with", 1) =
        (property(&call.receiver), call.method.to_string().as_str(), call.args.len())
    else {
        return Err(Error::new_spanned(
            call,
            "the only call in a filter is Name.starts_with(prefix)",
        ));
    };
    let (name, prefix) = (name.to_string(), &call.args[0]);
    Ok(quote! { ::tavola_client::Filter::prefix(#name, #prefix) })
}

/// The name that an expression is, if it is nothing else.
fn property(expression: &Expr) -> Option<&Ident> {
    match expression {
        Expr::Path(path) if path.qself.is_none() => path.path.get_ident(),
        _ => None,
    }
}

fn unknown(expression: &Expr) -> Error {
    Error::new_spanned(expression, "filters are comparisons joined by &&, || and !")
}
