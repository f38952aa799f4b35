//! What the macro reads of an item: its variants and their fields, or why it refuses.

use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Fields, Generics, Ident, Member, Path, Type};

/// Variants that the tags can distinguish.
const MOST_VARIANTS: usize = 1 << 16;

/// The same if some have discriminants of their own. The compiler then ranks them, in steps that
/// grow with the square of their number.
const MOST_RANKED: usize = 1 << 8;

/// A type that is to have byte forms.
pub(crate) struct Key {
    pub(crate) name: Ident,
    pub(crate) generics: Generics,
    /// The library, if the item names it.
    pub(crate) library: Option<Path>,
    /// Its variants in the order in which they are written. A struct has one, without a name.
    pub(crate) variants: Vec<Variant>,
    /// The type of the discriminants.
    pub(crate) repr: Ident,
}

/// A variant of an enum, or a struct.
pub(crate) struct Variant {
    pub(crate) name: Option<Ident>,
    pub(crate) fields: Vec<(Member, Type)>,
    pub(crate) discriminant: Option<Expr>,
}

impl Key {
    pub(crate) fn read(item: &DeriveInput) -> Result<Self, Error> {
        if let Some(lifetime) = item.generics.lifetimes().next() {
            let refusal = "a map keeps its keys, so a type with `ByteKey` cannot have a lifetime: \
                           hold the data itself (`String`, `Arc<str>`), or a `&'static` reference";
            return Err(Error::new(lifetime.lifetime.span(), refusal));
        }
        let repr = repr(&item.attrs)?;
        let variants = match &item.data {
            Data::Struct(data) => vec![Variant {
                name: None,
                fields: fields(&data.fields)?,
                discriminant: None,
            }],
            Data::Enum(data) => {
                let variants = data.variants.iter().map(|variant| {
                    refuse_options(&variant.attrs)?;
                    Ok(Variant {
                        name: Some(variant.ident.clone()),
                        fields: fields(&variant.fields)?,
                        discriminant: variant
                            .discriminant
                            .as_ref()
                            .map(|(_, value)| value.clone()),
                    })
                });
                variants.collect::<Result<_, Error>>()?
            }
            Data::Union(data) => {
                let refusal = "a union cannot have `ByteKey`, because no code knows which of its \
                               fields is in use: use an enum";
                return Err(Error::new(data.union_token.span, refusal));
            }
        };
        let key = Self {
            name: item.ident.clone(),
            generics: item.generics.clone(),
            library: library(&item.attrs)?,
            variants,
            repr: repr.unwrap_or_else(|| Ident::new("isize", item.ident.span())),
        };
        let most = if key.has_discriminants() {
            MOST_RANKED
        } else {
            MOST_VARIANTS
        };
        if key.variants.len() > most {
            let own = if key.has_discriminants() {
                " with discriminants of their own"
            } else {
                ""
            };
            let refusal = format!(
                "`{}` has {} variants{own}, more than {most}, the most that `ByteKey` can be derived for",
                key.name,
                key.variants.len()
            );
            return Err(Error::new(key.name.span(), refusal));
        }
        Ok(key)
    }

    /// Whether a variant has a discriminant of its own.
    pub(crate) fn has_discriminants(&self) -> bool {
        self.variants
            .iter()
            .any(|variant| variant.discriminant.is_some())
    }
}

fn fields(fields: &Fields) -> Result<Vec<(Member, Type)>, Error> {
    fields
        .iter()
        .try_for_each(|field| refuse_options(&field.attrs))?;
    let types = fields.iter().map(|field| field.ty.clone());
    Ok(fields.members().zip(types).collect())
}

/// Options are of the type as a whole.
fn refuse_options(attributes: &[Attribute]) -> Result<(), Error> {
    match attributes
        .iter()
        .find(|attribute| attribute.path().is_ident("byte_key"))
    {
        Some(attribute) => Err(Error::new(
            attribute.span(),
            "`#[byte_key(...)]` belongs before the type, not before a field or a variant",
        )),
        None => Ok(()),
    }
}

/// The path in `#[byte_key(crate = path)]`.
fn library(attributes: &[Attribute]) -> Result<Option<Path>, Error> {
    let mut library = None;
    for attribute in attributes {
        if attribute.path().is_ident("byte_key") {
            attribute.parse_nested_meta(|option| {
                if !option.path.is_ident("crate") {
                    return Err(option.error("`#[byte_key(crate = path)]` is the only option"));
                }
                library = Some(option.value()?.call(Path::parse_mod_style)?);
                Ok(())
            })?;
        }
    }
    Ok(library)
}

/// The type of the discriminants in `#[repr(...)]`.
fn repr(attributes: &[Attribute]) -> Result<Option<Ident>, Error> {
    let mut repr = None;
    for attribute in attributes {
        if attribute.path().is_ident("repr") {
            attribute.parse_nested_meta(|option| {
                if option.path.is_ident("packed") {
                    let refusal = "`ByteKey` cannot be derived for a packed type, because its \
                                   fields cannot be borrowed: implement it by hand";
                    return Err(option.error(refusal));
                }
                if option.input.peek(syn::token::Paren) {
                    let alignment;
                    syn::parenthesized!(alignment in option.input);
                    alignment.parse::<proc_macro2::TokenStream>()?;
                } else if !option.path.is_ident("C") && !option.path.is_ident("transparent") {
                    repr = option.path.get_ident().cloned();
                }
                Ok(())
            })?;
        }
    }
    Ok(repr)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Why an item is refused.
    fn refusal(item: &str) -> String {
        let item = syn::parse_str(item).expect("the item parses");
        Key::read(&item)
            .err()
            .expect("the item is refused")
            .to_string()
    }

    #[test]
    fn what_cannot_be_derived_is_refused_with_the_way_out() {
        let refused = [
            ("union U { a: u8 }", "use an enum"),
            ("struct S<'a>(&'a str);", "hold the data itself"),
            (
                "#[repr(C, packed(2))] struct S(u64);",
                "implement it by hand",
            ),
            ("#[byte_key(heads)] struct S;", "is the only option"),
            (
                "struct S { #[byte_key(crate = a)] a: u8 }",
                "belongs before the type",
            ),
            (
                "enum E { #[byte_key(crate = a)] A }",
                "belongs before the type",
            ),
        ];
        for (item, reason) in refused {
            let refusal = refusal(item);
            assert!(refusal.contains(reason), "{item}: {refusal}");
        }
    }

    #[test]
    fn too_many_variants_are_refused_by_number() {
        let variants = |count| {
            (0..count)
                .map(|number| format!("V{number},"))
                .collect::<String>()
        };
        let item = format!("enum E {{ {} }}", variants(65_537));
        assert!(refusal(&item).contains("`E` has 65537 variants, more than 65536"));
        let item = format!("enum E {{ First = 3, {} }}", variants(256));
        let refusal = refusal(&item);
        assert!(
            refusal.contains("`E` has 257 variants with discriminants"),
            "{refusal}"
        );
    }

    #[test]
    fn representations_and_the_library_are_read() {
        let read = |item: &str| {
            let key = Key::read(&syn::parse_str(item).expect("the item parses"));
            key.unwrap_or_else(|refusal| panic!("{item}: {refusal}"))
        };
        assert_eq!(read("enum E { A }").repr, "isize");
        assert_eq!(read("#[repr(u8)] enum E { A }").repr, "u8");
        assert_eq!(read("#[repr(C, align(8), i64)] enum E { A }").repr, "i64");
        assert!(read("struct S;").library.is_none());
        assert!(
            read("#[byte_key(crate = crate::store)] struct S;")
                .library
                .is_some()
        );
    }
}
