//! `plugin!`: the crate's tools as one object, and the component's exports on WebAssembly.

use crate::wants::Wants;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    Error, Ident, LitByteStr, Path, Result, Token, bracketed,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
    spanned::Spanned,
};

/// `plugin!(a, b)`, or `plugin! { tools: [a, b], wants: { … } }`.
struct Declaration {
    tools: Punctuated<Path, Token![,]>,
    /// Without them the component carries no manifest.
    wants: Option<Wants>,
}

impl Parse for Declaration {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let names_its_parts =
            input.peek(Ident) && input.peek2(Token![:]) && !input.peek2(Token![::]);
        if !names_its_parts {
            return Ok(Self { tools: Punctuated::parse_terminated(input)?, wants: None });
        }
        let (mut tools, mut wants) = (None, None);
        while !input.is_empty() {
            let part: Ident = input.parse()?;
            input.parse::<Token![:]>()?;
            let is_new = match part.to_string().as_str() {
                "tools" => {
                    let list;
                    bracketed!(list in input);
                    tools.replace(Punctuated::parse_terminated(&list)?).is_none()
                }
                "wants" => wants.replace(input.parse()?).is_none(),
                unknown => {
                    return Err(Error::new(
                        part.span(),
                        format!("a plugin has no `{unknown}`: expected `tools` or `wants`"),
                    ));
                }
            };
            if !is_new {
                return Err(Error::new(part.span(), format!("`{part}` is given twice")));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(Self { tools: tools.unwrap_or_default(), wants })
    }
}

pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let Declaration { tools, wants } = syn::parse2(input)?;
    if tools.is_empty() {
        return Err(Error::new(
            Span::call_site(),
            "a plugin has one tool or more: `plugin!(read_file, write_file)`",
        ));
    }
    let section = wants.map(|wants| {
        let manifest = LitByteStr::new(&wants.manifest(), Span::call_site());
        let length = manifest.value().len();
        quote! {
            // What the plugin asks for, which the host reads without running it.
            #[cfg(target_family = "wasm")]
            const _: () = {
                #[used]
                #[unsafe(link_section = "belljar:manifest")]
                static MANIFEST: [u8; #length] = *#manifest;
            };
        }
    });
    let entries = tools.iter().map(|tool| {
        quote_spanned! {tool.span()=>
            <#tool as ::belljar_sdk::__private::DeclaredTool>::ENTRY
        }
    });
    let unique = tools.iter().enumerate().map(|(index, tool)| {
        quote_spanned! {tool.span()=>
            const _: () = ::core::assert!(
                !::belljar_sdk::__private::is_declared_before(ENTRIES, #index),
                "another tool of this plugin has the same name",
            );
        }
    });
    Ok(quote! {
        /// The plugin, for its tests: what the host sees of it.
        pub fn plugin() -> &'static ::belljar_sdk::Plugin {
            const ENTRIES: &[::belljar_sdk::__private::Entry] = &[#(#entries),*];
            #(#unique)*
            static PLUGIN: ::belljar_sdk::Plugin = ::belljar_sdk::Plugin::new(ENTRIES);
            &PLUGIN
        }

        #section

        // A native library with a component's exports does not link.
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Component;

            impl ::belljar_sdk::__private::Component for Component {
                fn plugin() -> &'static ::belljar_sdk::Plugin {
                    plugin()
                }
            }

            ::belljar_sdk::__private::export!(
                Component with_types_in ::belljar_sdk::__private::generated
            );
        };
    })
}
