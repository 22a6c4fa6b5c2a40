//! `#[arguments]` and `#[structured]`: the derives of a type, by way of the SDK's dependencies, so
//! that a plugin names no version of them.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Error, Item, Result};

pub(crate) enum Direction {
    Arguments,
    Structured,
}

pub(crate) fn expand(
    direction: Direction,
    attribute: TokenStream,
    item: TokenStream,
) -> Result<TokenStream> {
    let (name, derived) = match direction {
        Direction::Arguments => ("arguments", quote!(Deserialize)),
        Direction::Structured => ("structured", quote!(Serialize)),
    };
    if !attribute.is_empty() {
        return Err(Error::new_spanned(attribute, format!("`#[{name}]` takes nothing")));
    }
    let item: Item = syn::parse2(item)?;
    if !matches!(item, Item::Struct(_) | Item::Enum(_)) {
        return Err(Error::new(
            Span::call_site(),
            format!("`#[{name}]` goes on a struct or an enum"),
        ));
    }
    Ok(quote! {
        #[derive(
            ::belljar_sdk::serde::#derived,
            ::belljar_sdk::schemars::JsonSchema,
        )]
        #[serde(crate = "::belljar_sdk::serde")]
        #[schemars(crate = "::belljar_sdk::schemars")]
        #item
    })
}
