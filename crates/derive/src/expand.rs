//! The code that the macro writes.

use crate::input::{Key, Variant};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::parse_quote;
use syn::spanned::Spanned;

/// The implementation of `ByteKey`. `index` is the path of the crate `tremula-index`.
///
/// A form is the tag of the variant, then the forms of the fields, all but the last
/// self-delimiting: see the module `parts` of that crate.
pub(crate) fn implementation(key: &Key, index: &TokenStream) -> TokenStream {
    let parts = quote!(#index::key::parts);
    let byte_key = quote!(#index::key::ByteKey);
    let vec = quote!(::std::vec::Vec<::core::primitive::u8>);
    let head_type = quote!(::core::primitive::u64);

    let width = Literal::usize_unsuffixed(match key.variants.len() {
        0 | 1 => 0,
        2..=256 => 1,
        _ => 2,
    });
    let ranks = Ident::new("__BYTE_KEY_TAGS", Span::mixed_site());
    let tags: Vec<TokenStream> = (0..key.variants.len())
        .map(|at| {
            let at = Literal::usize_unsuffixed(at);
            if key.has_discriminants() {
                quote!(#ranks[#at])
            } else {
                quote!(#at)
            }
        })
        .collect();

    let lengths = key.variants.iter().map(|variant| {
        let types = types(variant);
        let lengths = types.map(|ty| quote_spanned!(ty.span()=> <#ty as #byte_key>::LENGTH));
        quote!(#parts::sum(&[#(#lengths),*]))
    });
    let of_parts = key.variants.iter().flat_map(|variant| {
        types(variant).map(|ty| quote_spanned!(ty.span()=> <#ty as #byte_key>::HEAD_IS_KEY))
    });

    let patterns: Vec<TokenStream> = key.variants.iter().map(pattern).collect();
    // Calls of methods by their paths, because a type may have methods of the same names.
    let append = |last_too: bool| {
        let arms = key.variants.iter().zip(&patterns).zip(&tags);
        arms.map(|((variant, pattern), tag)| {
            let count = variant.fields.len();
            let appends = (0..count).map(|at| {
                let field = binding(at);
                let method = if last_too || at + 1 < count {
                    quote!(append_delimited)
                } else {
                    quote!(append_bytes)
                };
                quote!(#byte_key::#method(#field, out);)
            });
            let pad =
                (!last_too).then(|| quote!(#parts::pad(start, <Self as #byte_key>::LENGTH, out);));
            let start = (!last_too).then(|| quote!(let start = out.len();));
            quote!(#pattern => { #start #parts::append_tag(#tag, #width, out); #(#appends)* #pad })
        })
        .collect::<Vec<_>>()
    };
    let [append_bytes, append_delimited] = [false, true].map(append);
    let heads = key.variants.iter().zip(&patterns).zip(&tags);
    let heads = heads.map(|((variant, pattern), tag)| {
        let count = variant.fields.len();
        let calls = (0..count).map(|at| {
            let field = binding(at);
            if at + 1 < count {
                quote!(.part(#field))
            } else {
                quote!(.last(#field))
            }
        });
        quote!(#pattern => #parts::Head::new().tag(#tag, #width) #(#calls)* .bits(),)
    });
    let found = key.variants.iter().zip(&tags).map(|(variant, tag)| {
        let path = path(variant);
        let members = variant.fields.iter().map(|(member, _)| member);
        quote! {
            if tag == #tag {
                return ::core::option::Option::Some(#path { #(#members: rest.part()?),* });
            }
        }
    });

    // An empty enum may be matched without an arm, but a reference to one may not.
    let this = if key.variants.is_empty() {
        quote!(*self)
    } else {
        quote!(self)
    };
    let name = &key.name;
    let generics = bounded(key, &byte_key);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let implementation = quote! {
        #[automatically_derived]
        impl #impl_generics #byte_key for #name #type_generics #where_clause {
            const LENGTH: ::core::option::Option<::core::primitive::usize> = #parts::sum(&[
                ::core::option::Option::Some(#width),
                #parts::longest(&[#(#lengths),*]),
            ]);
            const HEAD_IS_KEY: ::core::primitive::bool =
                #parts::head_is_key(<Self as #byte_key>::LENGTH, &[#(#of_parts),*]);

            #[inline]
            fn with_bytes<__R>(
                &self,
                read: impl ::core::ops::FnOnce(&[::core::primitive::u8]) -> __R,
            ) -> __R {
                #parts::with_form(self, read)
            }

            #[inline]
            fn append_bytes(&self, out: &mut #vec) {
                match #this { #(#append_bytes)* }
            }

            #[inline]
            fn head(&self) -> #head_type {
                match #this { #(#heads)* }
            }

            #[inline]
            fn from_head(head: #head_type) -> ::core::option::Option<Self> {
                if !<Self as #byte_key>::HEAD_IS_KEY {
                    return ::core::option::Option::None;
                }
                let mut rest = #parts::Rest::of(head);
                let tag = rest.tag(#width);
                #(#found)*
                ::core::option::Option::None
            }

            fn append_delimited(&self, out: &mut #vec) {
                // If there is one length, padding keeps it.
                if <Self as #byte_key>::LENGTH.is_some() {
                    return #byte_key::append_bytes(self, out);
                }
                match #this { #(#append_delimited)* }
            }
        }
    };
    if !key.has_discriminants() {
        return implementation;
    }
    let rank = rank(key);
    let count = key.variants.len();
    quote! {
        const _: () = {
            const #ranks: [#head_type; #count] = #rank;
            #implementation
        };
    }
}

/// The ranks of the variants by their discriminants, which is how derived orders compare them. The
/// compiler works them out: a discriminant may be any constant expression.
fn rank(key: &Key) -> TokenStream {
    let repr = &key.repr;
    let count = key.variants.len();
    let values = key.variants.iter().enumerate().map(|(at, variant)| {
        let name = discriminant(at);
        let value = match (&variant.discriminant, at.checked_sub(1).map(discriminant)) {
            (Some(value), _) => quote!(#value),
            (None, Some(before)) => quote!(#before + 1),
            (None, None) => quote!(0),
        };
        quote!(const #name: ::core::primitive::#repr = #value;)
    });
    let names = (0..count).map(discriminant);
    quote! {{
        #(#values)*
        let all = [#(#names),*];
        let mut ranks = [0; #count];
        let mut at = 0;
        while at < #count {
            let mut other = 0;
            while other < #count {
                if all[other] < all[at] {
                    ranks[at] += 1;
                }
                other += 1;
            }
            at += 1;
        }
        ranks
    }}
}

/// The constant of the discriminant of the variant at this place.
fn discriminant(at: usize) -> Ident {
    format_ident!("__DISCRIMINANT_{}", at, span = Span::mixed_site())
}

/// The type's parameters, each with the bound `ByteKey`.
fn bounded(key: &Key, byte_key: &TokenStream) -> syn::Generics {
    let mut generics = key.generics.clone();
    let parameters: Vec<_> = generics
        .type_params()
        .map(|each| each.ident.clone())
        .collect();
    let bounds = parameters
        .iter()
        .map(|parameter| -> syn::WherePredicate { parse_quote!(#parameter: #byte_key) });
    generics.make_where_clause().predicates.extend(bounds);
    generics
}

fn types(variant: &Variant) -> impl Iterator<Item = &syn::Type> {
    variant.fields.iter().map(|(_, ty)| ty)
}

/// The path of a variant, or of a struct.
fn path(variant: &Variant) -> TokenStream {
    match &variant.name {
        Some(name) => quote!(Self::#name),
        None => quote!(Self),
    }
}

/// Binds each field.
fn pattern(variant: &Variant) -> TokenStream {
    let path = path(variant);
    let bound = variant.fields.iter().enumerate().map(|(at, (member, _))| {
        let field = binding(at);
        quote!(#member: #field)
    });
    quote!(#path { #(#bound),* })
}

/// What the field at this place is bound to.
fn binding(at: usize) -> Ident {
    format_ident!("field_{}", at, span = Span::mixed_site())
}
