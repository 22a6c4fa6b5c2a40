//! `#[tool]`: keeps the function, and declares a type of its name that knows its tool.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, Ident, ItemFn, Lit, LitStr, Meta, Result, ReturnType,
    Token, Type, Visibility, ext::IdentExt, parse::Parse, parse::ParseStream, spanned::Spanned,
};

const HINTS: [&str; 4] = ["read_only", "destructive", "idempotent", "open_world"];

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let function: ItemFn = syn::parse2(item).map_err(|error| {
        Error::new(error.span(), format!("`#[tool]` goes on a function: {error}"))
    })?;
    let options: Options = syn::parse2(attribute)?;
    let (arguments, output) = signature(&function)?;
    let description = description(&function)?;
    let name = name(&function, options.name)?;
    let title = match options.title {
        Some(title) => quote!(::core::option::Option::Some(#title)),
        None => quote!(::core::option::Option::None),
    };
    let hints = &options.hints;

    let ident = &function.sig.ident;
    // `plugin!` stands at the crate's root, and the function itself is called from here: it may stay
    // private to its module.
    let visibility = match &function.vis {
        Visibility::Inherited => quote!(pub(crate)),
        visibility => visibility.to_token_stream(),
    };
    let (arguments, call) = match arguments {
        Some(arguments) => (arguments.to_token_stream(), quote!(#ident(arguments))),
        None => (quote!(::belljar_sdk::__private::NoArguments), quote!(#ident())),
    };

    Ok(quote! {
        #function

        #[doc(hidden)]
        #[expect(non_camel_case_types, reason = "`plugin!` finds the tool by its function's path")]
        #visibility enum #ident {}

        impl ::belljar_sdk::__private::DeclaredTool for #ident {
            // The types of the signature may be private to the module: so is the type that has
            // them.
            const ENTRY: ::belljar_sdk::__private::Entry = {
                enum Signature {}

                impl ::belljar_sdk::__private::Signature for Signature {
                    type Arguments = #arguments;
                    type Output = #output;

                    fn call(arguments: Self::Arguments) -> Self::Output {
                        #call
                    }
                }

                ::belljar_sdk::__private::Entry::of::<Signature>(
                    #name,
                    #title,
                    #description,
                    ::belljar_sdk::Hints {
                        #(#hints: true,)*
                        ..::belljar_sdk::Hints::NONE
                    },
                )
            };
        }
    })
}

#[derive(Default)]
struct Options {
    hints: Vec<Ident>,
    title: Option<LitStr>,
    name: Option<LitStr>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            let option = Ident::parse_any(input)?;
            let text = match option.to_string().as_str() {
                "title" => &mut options.title,
                "name" => &mut options.name,
                hint if HINTS.contains(&hint) => {
                    if options.hints.contains(&option) {
                        return Err(twice(&option));
                    }
                    if input.peek(Token![=]) {
                        return Err(Error::new(
                            input.span(),
                            format!("`{option}` takes no value: leave it out where it is false"),
                        ));
                    }
                    options.hints.push(option);
                    separator(input)?;
                    continue;
                }
                unknown => {
                    return Err(Error::new(
                        option.span(),
                        format!(
                            "a tool has no `{unknown}`: expected `read_only`, `destructive`, \
                             `idempotent`, `open_world`, `title = \"…\"` or `name = \"…\"`"
                        ),
                    ));
                }
            };
            input.parse::<Token![=]>()?;
            if text.replace(input.parse()?).is_some() {
                return Err(twice(&option));
            }
            separator(input)?;
        }
        let hint = |name: &str| options.hints.iter().find(|hint| *hint == name);
        if let (Some(_), Some(destructive)) = (hint("read_only"), hint("destructive")) {
            return Err(Error::new(
                destructive.span(),
                "a tool that is `read_only` cannot be `destructive`",
            ));
        }
        Ok(options)
    }
}

fn twice(option: &Ident) -> Error {
    Error::new(option.span(), format!("`{option}` is given twice"))
}

fn separator(input: ParseStream<'_>) -> Result<()> {
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok(())
}

/// The types of the arguments, where there are any, and of the result.
fn signature(function: &ItemFn) -> Result<(Option<&Type>, &Type)> {
    let signature = &function.sig;
    if let Some(keyword) = &signature.asyncness {
        return Err(Error::new(
            keyword.span(),
            "a tool is no async function: a call has its instance to itself, and may block",
        ));
    }
    if let Some(keyword) = &signature.unsafety {
        return Err(Error::new(keyword.span(), "a tool is no unsafe function"));
    }
    if let Some(abi) = &signature.abi {
        return Err(Error::new(abi.span(), "a tool is a plain function, without an ABI"));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new(
            signature.generics.span(),
            "a tool has no generics: its schema is that of one type",
        ));
    }
    let mut inputs = signature.inputs.iter();
    let arguments = match inputs.next() {
        None => None,
        Some(FnArg::Receiver(receiver)) => {
            return Err(Error::new(receiver.span(), "a tool is a function, not a method"));
        }
        Some(FnArg::Typed(argument)) => match &*argument.ty {
            ty @ (Type::Reference(_) | Type::ImplTrait(_)) => {
                return Err(Error::new(
                    ty.span(),
                    "a tool takes its arguments by value: one struct",
                ));
            }
            ty => Some(ty),
        },
    };
    if let Some(second) = inputs.next() {
        return Err(Error::new(
            second.span(),
            "a tool takes one struct: make this a field of it, with a doc comment",
        ));
    }
    match &signature.output {
        ReturnType::Default => Err(Error::new(
            signature.ident.span(),
            "a tool returns something: `Result<Output, Failure>`",
        )),
        ReturnType::Type(_, ty) => match &**ty {
            Type::ImplTrait(_) => {
                Err(Error::new(ty.span(), "a tool returns a named type: `Result<Output, Failure>`"))
            }
            ty => Ok((arguments, ty)),
        },
    }
}

fn description(function: &ItemFn) -> Result<String> {
    let lines: Vec<String> = function.attrs.iter().filter_map(doc_line).collect();
    let description = lines
        .iter()
        .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end())
        .collect::<Vec<_>>()
        .join("\n");
    let description = description.trim();
    if description.is_empty() {
        return Err(Error::new(
            function.sig.ident.span(),
            "a tool has a doc comment: it is all that the model reads about what the tool does, \
             when to use it and what it returns",
        ));
    }
    Ok(description.to_owned())
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// The tool's name for the model.
fn name(function: &ItemFn, chosen: Option<LitStr>) -> Result<String> {
    let (name, span): (String, Span) = match chosen {
        Some(chosen) => (chosen.value(), chosen.span()),
        None => (function.sig.ident.unraw().to_string(), function.sig.ident.span()),
    };
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let fits = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && name.len() <= 64;
    if starts && fits {
        Ok(name)
    } else {
        Err(Error::new(
            span,
            "a tool's name is a letter, then letters, digits or `_`, 64 at most: give another \
             with `#[tool(name = \"…\")]`",
        ))
    }
}
