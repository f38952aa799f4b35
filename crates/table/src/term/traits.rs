//! Implementations that several types share.

/// Converts types into the variants of `Term` with their names.
macro_rules! variants {
    ($($kind:ident),*) => {
        $(impl From<$kind> for Term {
            fn from(value: $kind) -> Self {
                Self::$kind(value)
            }
        })*
    };
}

/// Derives the other comparisons from `Ord`.
macro_rules! compared {
    ($($kind:ident),*) => {
        $(impl PartialOrd for $kind {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl PartialEq for $kind {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }

        impl Eq for $kind {})*
    };
}

/// Makes the debug form of types the same as their text.
macro_rules! debug_as_text {
    ($($kind:ident),*) => {
        $(impl std::fmt::Debug for $kind {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, formatter)
            }
        })*
    };
}

/// Makes the text of types the same as that of the terms that they are.
macro_rules! text_as_term {
    ($($kind:ident),*) => {
        $(impl std::fmt::Display for $kind {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&Term::$kind(self.clone()), formatter)
            }
        })*
        debug_as_text!($($kind),*);
    };
}

pub(crate) use compared;
