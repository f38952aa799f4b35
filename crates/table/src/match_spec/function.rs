//! The functions that guards and bodies may call.

/// A comparison. Programs have operations of their own for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Identical,
    NotIdentical,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    /// The comparison with its sides swapped.
    pub(super) const fn swapped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::AtMost => Self::AtLeast,
            Self::Greater => Self::Less,
            Self::AtLeast => Self::AtMost,
            same => same,
        }
    }
}

/// A function that makes its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compute {
    IsAtom,
    IsBinary,
    IsBitstring,
    IsBoolean,
    IsFloat,
    IsFunction,
    IsInteger,
    IsList,
    IsMap,
    IsMapKey,
    IsNumber,
    IsPid,
    IsPort,
    IsRecord,
    IsReference,
    IsTuple,
    And,
    Or,
    Not,
    Xor,
    Plus,
    Negate,
    Add,
    Subtract,
    Multiply,
    Divide,
    Div,
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    BitNot,
    ShiftLeft,
    ShiftRight,
    Abs,
    BinaryPart,
    BitSize,
    ByteSize,
    Ceil,
    Float,
    Floor,
    Length,
    MapSize,
    Max,
    Min,
    NodeOf,
    Round,
    Size,
    Tail,
    Trunc,
    TupleSize,
}

/// A function whose value is a part of its last argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Project {
    Element,
    Head,
    MapGet,
}

/// The meaning of a name in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Compare(Comparison),
    Compute(Compute),
    Project(Project),
    /// `andalso` or `orelse`, with the value that decides.
    Branch(bool),
    Const,
    Myself,
    Node,
}

/// Every function: its name, the least and the greatest number of arguments, and its meaning.
const FUNCTIONS: &[(&str, usize, usize, Function)] = {
    use self::Comparison as C;
    use self::Compute as F;
    use self::Project as P;
    use Function::{Branch, Compare, Compute, Const, Myself, Node, Project};
    const MANY: usize = usize::MAX;
    &[
        ("==", 2, 2, Compare(C::Equal)),
        ("/=", 2, 2, Compare(C::NotEqual)),
        ("=:=", 2, 2, Compare(C::Identical)),
        ("=/=", 2, 2, Compare(C::NotIdentical)),
        ("<", 2, 2, Compare(C::Less)),
        ("=<", 2, 2, Compare(C::AtMost)),
        (">", 2, 2, Compare(C::Greater)),
        (">=", 2, 2, Compare(C::AtLeast)),
        ("andalso", 1, MANY, Branch(false)),
        ("andthen", 1, MANY, Branch(false)),
        ("orelse", 1, MANY, Branch(true)),
        ("and", 1, MANY, Compute(F::And)),
        ("or", 1, MANY, Compute(F::Or)),
        ("not", 1, 1, Compute(F::Not)),
        ("xor", 2, 2, Compute(F::Xor)),
        ("is_atom", 1, 1, Compute(F::IsAtom)),
        ("is_binary", 1, 1, Compute(F::IsBinary)),
        ("is_bitstring", 1, 1, Compute(F::IsBitstring)),
        ("is_boolean", 1, 1, Compute(F::IsBoolean)),
        ("is_float", 1, 1, Compute(F::IsFloat)),
        ("is_function", 1, 1, Compute(F::IsFunction)),
        ("is_integer", 1, 1, Compute(F::IsInteger)),
        ("is_list", 1, 1, Compute(F::IsList)),
        ("is_map", 1, 1, Compute(F::IsMap)),
        ("is_map_key", 2, 2, Compute(F::IsMapKey)),
        ("is_number", 1, 1, Compute(F::IsNumber)),
        ("is_pid", 1, 1, Compute(F::IsPid)),
        ("is_port", 1, 1, Compute(F::IsPort)),
        ("is_record", 3, 3, Compute(F::IsRecord)),
        ("is_reference", 1, 1, Compute(F::IsReference)),
        ("is_tuple", 1, 1, Compute(F::IsTuple)),
        ("+", 1, 1, Compute(F::Plus)),
        ("+", 2, 2, Compute(F::Add)),
        ("-", 1, 1, Compute(F::Negate)),
        ("-", 2, 2, Compute(F::Subtract)),
        ("*", 2, 2, Compute(F::Multiply)),
        ("/", 2, 2, Compute(F::Divide)),
        ("div", 2, 2, Compute(F::Div)),
        ("rem", 2, 2, Compute(F::Rem)),
        ("band", 2, 2, Compute(F::BitAnd)),
        ("bor", 2, 2, Compute(F::BitOr)),
        ("bxor", 2, 2, Compute(F::BitXor)),
        ("bnot", 1, 1, Compute(F::BitNot)),
        ("bsl", 2, 2, Compute(F::ShiftLeft)),
        ("bsr", 2, 2, Compute(F::ShiftRight)),
        ("abs", 1, 1, Compute(F::Abs)),
        ("binary_part", 2, 3, Compute(F::BinaryPart)),
        ("bit_size", 1, 1, Compute(F::BitSize)),
        ("byte_size", 1, 1, Compute(F::ByteSize)),
        ("ceil", 1, 1, Compute(F::Ceil)),
        ("element", 2, 2, Project(P::Element)),
        ("float", 1, 1, Compute(F::Float)),
        ("floor", 1, 1, Compute(F::Floor)),
        ("hd", 1, 1, Project(P::Head)),
        ("length", 1, 1, Compute(F::Length)),
        ("map_get", 2, 2, Project(P::MapGet)),
        ("map_size", 1, 1, Compute(F::MapSize)),
        ("max", 2, 2, Compute(F::Max)),
        ("min", 2, 2, Compute(F::Min)),
        ("node", 0, 0, Node),
        ("node", 1, 1, Compute(F::NodeOf)),
        ("round", 1, 1, Compute(F::Round)),
        ("self", 0, 0, Myself),
        ("size", 1, 1, Compute(F::Size)),
        ("tl", 1, 1, Compute(F::Tail)),
        ("trunc", 1, 1, Compute(F::Trunc)),
        ("tuple_size", 1, 1, Compute(F::TupleSize)),
        ("const", 1, 1, Const),
    ]
};

/// The name of every function, and the least number of its arguments.
#[cfg(any(test, fuzzing))]
pub(crate) fn every_function() -> impl Iterator<Item = (&'static str, usize)> {
    FUNCTIONS.iter().map(|entry| (entry.0, entry.1))
}

/// The result of looking a function up.
pub(super) enum Lookup {
    Found(Function),
    /// A function of this name exists, but takes this many arguments.
    Takes(&'static str),
    Unknown,
}

/// Finds the function of this name that takes `arity` arguments.
pub(super) fn lookup(name: &str, arity: usize) -> Lookup {
    let mut takes = None;
    for &(_, least, most, function) in FUNCTIONS.iter().filter(|entry| entry.0 == name) {
        if (least..=most).contains(&arity) {
            return Lookup::Found(function);
        }
        takes = Some(match (takes, least, most) {
            (None, 0, 0) => "no arguments",
            (None, 1, 1) => "one argument",
            (None, 2, 2) => "two arguments",
            (None, 3, 3) => "three arguments",
            (None, 2, 3) => "two or three arguments",
            (Some("no arguments"), ..) => "none or one argument",
            (Some(_), ..) => "one or two arguments",
            (None, ..) => "one argument or more",
        });
    }
    takes.map_or(Lookup::Unknown, Lookup::Takes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_arity_says_what_is_right() {
        let takes = |name, arity| match lookup(name, arity) {
            Lookup::Takes(words) => words,
            _ => panic!("{name}/{arity}"),
        };
        assert_eq!(takes("node", 2), "none or one argument");
        assert_eq!(takes("-", 3), "one or two arguments");
        assert_eq!(takes("binary_part", 1), "two or three arguments");
        assert_eq!(takes("and", 0), "one argument or more");
        assert_eq!(takes("self", 1), "no arguments");
        assert_eq!(takes("is_record", 2), "three arguments");
        assert!(matches!(lookup("lenght", 1), Lookup::Unknown));
    }
}
