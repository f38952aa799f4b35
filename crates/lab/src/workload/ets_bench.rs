//! The operations of `ets_bench`: functions of ETS one by one, on a table of rows.

use super::Rows;
use crate::{LabError, measure::Span};
use std::str::FromStr;

/// How many rows an [`EtsOperation::InsertList`] inserts.
pub const LIST_LENGTH: usize = 100;

/// How many keys share a prefix in [`EtsOperation::MatchPrefix`].
pub const GROUP: u32 = 100;

/// How many calls of a select or match make a round.
pub const SEARCHES: usize = 20;

/// What is in the table when a round begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Empty,
    /// All rows.
    Full,
}

/// An operation that is timed by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtsOperation {
    /// `insert` of a key that is not there.
    InsertAbsent,
    /// `insert` of a key that is there.
    InsertPresent,
    /// `insert_new` of a key that is not there.
    InsertNew,
    /// `insert` of a list of [`LIST_LENGTH`] rows that are not there.
    InsertList,
    /// `lookup` of a key that is there.
    LookupHit,
    /// `lookup` of a key that is not there.
    LookupMiss,
    /// `member` of a key that is there.
    Member,
    /// `lookup_element` of the last element.
    LookupElement,
    /// `update_counter` by one.
    UpdateCounter,
    /// `update_element` of one element.
    UpdateElement,
    /// `delete` of a key that is there.
    Delete,
    /// `take` of a key that is there.
    Take,
    /// `next` from key to key.
    Next,
    /// `prev` from key to key.
    Prev,
    /// `select` of this many rows by a range of their keys.
    Select(u32),
    /// `select` with a guard that fails for each row.
    SelectNothing,
    /// `match` of [`GROUP`] rows by the prefix of their keys.
    MatchPrefix,
    /// `match_object` with a key.
    MatchObject,
    /// `foldl`.
    Foldl,
    /// `tab2list`.
    Tab2list,
    /// `delete_all_objects`.
    DeleteAllObjects,
}

impl EtsOperation {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 23] = [
        Self::InsertAbsent,
        Self::InsertPresent,
        Self::InsertNew,
        Self::InsertList,
        Self::LookupHit,
        Self::LookupMiss,
        Self::Member,
        Self::LookupElement,
        Self::UpdateCounter,
        Self::UpdateElement,
        Self::Delete,
        Self::Take,
        Self::Next,
        Self::Prev,
        Self::Select(1),
        Self::Select(100),
        Self::Select(1000),
        Self::SelectNothing,
        Self::MatchPrefix,
        Self::MatchObject,
        Self::Foldl,
        Self::Tab2list,
        Self::DeleteAllObjects,
    ];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InsertAbsent => "insert_absent",
            Self::InsertPresent => "insert_present",
            Self::InsertNew => "insert_new",
            Self::InsertList => "insert_list_100",
            Self::LookupHit => "lookup_hit",
            Self::LookupMiss => "lookup_miss",
            Self::Member => "member",
            Self::LookupElement => "lookup_element",
            Self::UpdateCounter => "update_counter",
            Self::UpdateElement => "update_element",
            Self::Delete => "delete",
            Self::Take => "take",
            Self::Next => "next",
            Self::Prev => "prev",
            Self::Select(1) => "select_1",
            Self::Select(100) => "select_100",
            Self::Select(_) => "select_1000",
            Self::SelectNothing => "select_nothing",
            Self::MatchPrefix => "match_prefix",
            Self::MatchObject => "match_object",
            Self::Foldl => "foldl",
            Self::Tab2list => "tab2list",
            Self::DeleteAllObjects => "delete_all_objects",
        }
    }

    /// The state of the table that it needs.
    #[must_use]
    pub const fn begins_with(self) -> State {
        match self {
            Self::InsertAbsent | Self::InsertNew | Self::InsertList => State::Empty,
            _ => State::Full,
        }
    }

    /// Whether rows end with an additional integer.
    #[must_use]
    pub const fn needs_counter(self) -> bool {
        matches!(self, Self::UpdateCounter | Self::UpdateElement)
    }
}

impl FromStr for EtsOperation {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.name() == name)
            .ok_or_else(|| LabError::UnknownMix {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

/// One operation, repeated.
#[derive(Clone, Debug)]
pub struct EtsBenchJob {
    /// What is timed.
    pub operation: EtsOperation,
    /// What the rows are.
    pub rows: Rows,
    /// The integers below their number, in the order of use. The keys of rows are twice as large,
    /// so that there are absent keys between them.
    pub keys: Vec<u32>,
    /// How long the operation warms up, and how long it counts.
    pub span: Span,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_names_of_their_own() {
        for operation in EtsOperation::ALL {
            assert_eq!(operation.name().parse::<EtsOperation>().unwrap(), operation);
        }
        let error = "select_2".parse::<EtsOperation>().unwrap_err().to_string();
        assert!(error.contains("select_2") && error.contains("tab2list"));
    }
}
