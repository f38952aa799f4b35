#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod expand;
mod input;

use proc_macro::TokenStream;
use quote::quote;

/// Implements `tremula::ByteKey` for a struct or an enum that derives `Ord`: a byte form in the
/// same order.
///
/// - A struct compares by its fields from first to last, and so do the byte forms. Each field needs
///   a type with `ByteKey`.
/// - An enum compares by variant first: by the values of the discriminants, so in the order in
///   which the variants are written unless they have discriminants of their own. Then it compares
///   by the fields. Its form begins with a tag: a byte, two for more than 256 variants, none for a
///   single variant.
/// - Type parameters get the bound `ByteKey`, as `derive(Ord)` gives them `Ord`. Where a field's
///   type is an associated type of a parameter, write its bound yourself.
/// - A type may contain itself through `Box` or `Arc`.
///
/// If all forms have one length, and at most eight bytes, engines keep the head in place of the
/// key. If not, making the form of a key with several fields allocates.
///
/// The byte order is that of the *derived* `Ord`. If `Ord` is written by hand and compares
/// differently, an engine of byte keys follows the bytes and a comparing engine finds keys in wrong
/// places: no memory is at risk, but answers are wrong.
///
/// ```
/// use tremula::{ByteKey, Engine, OrderedMap};
///
/// #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
/// enum Owner {
///     System,
///     User { id: u32 },
///     Group(String, u8),
/// }
///
/// #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
/// struct Slot {
///     owner: Owner,
///     number: u64,
/// }
///
/// let slots = OrderedMap::with_byte_engine(Engine::Art);
/// for number in [2, 1] {
///     let owner = Owner::User { id: 7 };
///     slots.insert(Slot { owner, number }, "taken");
/// }
/// let (owner, number) = (Owner::System, 9);
/// slots.insert(Slot { owner, number }, "free");
/// let keys: Vec<u64> = slots.iter().map(|(slot, _)| slot.number).collect();
/// assert_eq!(keys, [9, 1, 2]);
/// ```
///
/// # Options
///
/// `#[byte_key(crate = path)]` names the library if the program knows it by another name than
/// `tremula` (`tremula_index`, if the macro comes from that crate).
///
/// # Errors
///
/// It refuses, with an error at the place that it refuses:
///
/// - unions, of which no code knows which field is in use;
///
///   ```compile_fail
///   #[derive(Clone, Copy, tremula::ByteKey)]
///   union Word { number: u64, bytes: [u8; 8] }
///   ```
///
/// - types with lifetimes, because a map keeps its keys;
///
///   ```compile_fail
///   #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, tremula::ByteKey)]
///   struct Name<'a>(&'a str);
///   ```
///
/// - packed structs, whose fields cannot be borrowed;
///
///   ```compile_fail
///   #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, tremula::ByteKey)]
///   #[repr(packed)]
///   struct Pair(u8, u64);
///   ```
///
/// - fields whose types have no byte form, such as paths;
///
///   ```compile_fail,E0277
///   #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, tremula::ByteKey)]
///   struct Path(std::path::PathBuf);
///   ```
///
/// - more than 65,536 variants, or more than 256 if some have discriminants of their own.
#[proc_macro_derive(ByteKey, attributes(byte_key))]
pub fn byte_key(item: TokenStream) -> TokenStream {
    derive(item, |library| match library {
        Some(tremula) => quote!(#tremula::index),
        None => quote!(::tremula::index),
    })
}

/// [`macro@ByteKey`] for programs that depend on `tremula-index` alone. It is exported as `ByteKey`
/// there too.
#[proc_macro_derive(ByteKeyOfIndex, attributes(byte_key))]
pub fn byte_key_of_index(item: TokenStream) -> TokenStream {
    derive(item, |library| match library {
        Some(index) => quote!(#index),
        None => quote!(::tremula_index),
    })
}

/// `index` is the path of `tremula-index`, given the library that the item names.
fn derive(
    item: TokenStream,
    index: fn(Option<&syn::Path>) -> proc_macro2::TokenStream,
) -> TokenStream {
    let expanded = syn::parse(item)
        .and_then(|item| input::Key::read(&item))
        .map(|key| expand::implementation(&key, &index(key.library.as_ref())));
    expanded
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
