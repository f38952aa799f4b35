//! Which columns hold the key and the value.

/// A column by number, from zero, or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Number(usize),
    Name(String),
}

impl Column {
    /// Digits are a number, counted from one; anything else is a name.
    fn parse(text: &str) -> Self {
        match text.parse::<usize>() {
            Ok(number @ 1..) => Self::Number(number - 1),
            _ => Self::Name(text.to_owned()),
        }
    }
}

/// The columns to load.
pub(crate) struct Columns {
    key: Option<Column>,
    /// `None` means all columns but the key's.
    value: Option<Column>,
    names: (Option<String>, Option<String>),
}

/// The columns found in a file with rows of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) key: usize,
    pub(super) value: Option<usize>,
}

impl Columns {
    pub(crate) fn new(key: Option<&str>, value: Option<&str>) -> Self {
        Self {
            key: key.map(Column::parse),
            value: value.map(Column::parse),
            names: (key.map(str::to_owned), value.map(str::to_owned)),
        }
    }

    /// Whether a column is given by name, so that the first line must hold the names.
    pub(super) fn are_named(&self) -> bool {
        [&self.key, &self.value]
            .iter()
            .any(|column| matches!(column, Some(Column::Name(_))))
    }

    /// The members of a JSON object that hold the key and the value. Digits are names here, too.
    pub(super) fn members(&self) -> (&str, Option<&str>) {
        let (key, value) = &self.names;
        (key.as_deref().unwrap_or("key"), value.as_deref())
    }

    /// Finds the columns in a first line with these names. The error says what is wrong.
    pub(super) fn find(&self, names: &[&[u8]]) -> Result<Fields, String> {
        let find = |column: &Column| match column {
            Column::Number(number) => Ok(*number),
            Column::Name(name) => names
                .iter()
                .position(|known| *known == name.as_bytes())
                .ok_or_else(|| {
                    let known: Vec<_> = names
                        .iter()
                        .map(|known| format!("'{}'", known.escape_ascii()))
                        .collect();
                    format!("no column '{name}'; there are {}", known.join(", "))
                }),
        };
        Ok(Fields {
            key: self.key.as_ref().map_or(Ok(0), find)?,
            value: self.value.as_ref().map(find).transpose()?,
        })
    }
}
