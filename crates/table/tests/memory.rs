//! The memory that rows take.

use tremula_table::{Kind, Options, Tables, Term, WriteConcurrency};

/// Rows of a table.
const ROWS: i64 = 1_000_000;

/// The bytes that Erlang takes for a row `{Int}`.
const BYTES_A_ROW: usize = 56;

#[test]
fn a_row_of_an_integer_takes_at_most_what_it_takes_in_erlang() {
    for kind in [Kind::Set, Kind::OrderedSet] {
        for write in [WriteConcurrency::Off, WriteConcurrency::On] {
            for in_order in [true, false] {
                let options = Options::new().kind(kind).write_concurrency(write);
                let table = Tables::new().create("t", options).unwrap();
                for number in 0..ROWS {
                    // All numbers, in a scattered order.
                    let key = if in_order {
                        number
                    } else {
                        number * 7_368_787 % ROWS
                    };
                    table.insert(Term::tuple([Term::from(key)])).unwrap();
                }
                assert_eq!(table.size().unwrap(), ROWS as usize);
                let bytes = table.memory() / ROWS as usize;
                println!("{kind}, {write:?}, in order: {in_order}: {bytes} bytes a row");
                assert!(bytes <= BYTES_A_ROW, "{bytes} bytes a row");
            }
        }
    }
}
