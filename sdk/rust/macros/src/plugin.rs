//! `plugin!`: the crate's tools as one object, and the component's exports on WebAssembly.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Error, Path, Result, Token, parse::Parser, punctuated::Punctuated, spanned::Spanned};

pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let tools = Punctuated::<Path, Token![,]>::parse_terminated.parse2(input)?;
    if tools.is_empty() {
        return Err(Error::new(
            proc_macro2::Span::call_site(),
            "a plugin has one tool or more: `plugin!(read_file, write_file)`",
        ));
    }
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
