//! What a change of a mailbox is in the log.
//!
//! | kind | then |
//! |---|---|
//! | 6, made | number of the mailbox, mode, capacity or 0, two words of its owner, name |
//! | 7, dropped | number of the mailbox |
//! | 8, sent | number of the mailbox, number of the message, message |
//! | 9, received | number of the mailbox, number of the first message that is left |
//!
//! The messages of a mailbox are numbered in the order in which they are received.

use super::fields::{BadRecord, Fields, write_number};
use crate::Value;
use tremula_mailbox::Mode;
use tremula_table::term::{Atom, Pid};

pub(super) const MADE: u8 = 6;
const DROPPED: u8 = 7;
const SENT: u8 = 8;
pub(super) const RECEIVED: u8 = 9;

/// A change of the mailbox with this number.
#[derive(Clone, Debug)]
pub(crate) struct Mail {
    pub(crate) mailbox: u64,
    pub(crate) what: MailChange,
}

#[derive(Clone, Debug)]
pub(crate) enum MailChange {
    Made(Made),
    Dropped,
    /// It has this message behind all others.
    Sent(u64, Value),
    /// The messages before this one are gone.
    Received(u64),
}

/// A mailbox, without its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) name: Box<[u8]>,
    pub(crate) mode: Mode,
    pub(crate) capacity: Option<usize>,
    /// The mailbox as an owner of tables.
    pub(crate) owner: Pid,
}

impl Mail {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut begin = |kind| {
            out.push(kind);
            write_number(self.mailbox, out);
        };
        match &self.what {
            MailChange::Made(made) => {
                begin(MADE);
                out.push(
                    Mode::ALL
                        .iter()
                        .position(|mode| *mode == made.mode)
                        .unwrap_or(0) as u8,
                );
                write_number(made.capacity.unwrap_or(0) as u64, out);
                write_number(made.owner.id().into(), out);
                write_number(made.owner.serial().into(), out);
                out.extend_from_slice(&made.name);
            }
            MailChange::Dropped => begin(DROPPED),
            MailChange::Sent(number, message) => {
                begin(SENT);
                write_number(*number, out);
                out.extend_from_slice(message);
            }
            MailChange::Received(number) => {
                begin(RECEIVED);
                write_number(*number, out);
            }
        }
    }

    /// The number of the mailbox that a record is about. O(1).
    pub(crate) fn mailbox_of(record: &[u8]) -> Result<u64, BadRecord> {
        Fields(record.get(1..).unwrap_or_default()).number()
    }

    /// Reads a record of a mailbox, with its kind.
    pub(crate) fn read(record: &[u8]) -> Result<Self, BadRecord> {
        let (kind, rest) = record.split_first().unwrap_or((&0, &[]));
        let mut fields = Fields(rest);
        let mailbox = fields.number()?;
        let what = match *kind {
            MADE => {
                let mode = usize::from(fields.byte()?);
                let mode = Mode::ALL.get(mode).copied();
                let mode = mode.ok_or_else(|| BadRecord::new("a mailbox of an unknown mode"))?;
                let capacity = small(fields.number()?)?;
                let (id, serial) = (word(fields.number()?)?, word(fields.number()?)?);
                MailChange::Made(Made {
                    mode,
                    capacity: (capacity > 0).then_some(capacity),
                    owner: Pid::new(Atom::NO_NODE, id, serial, 0),
                    name: fields.rest().into(),
                })
            }
            DROPPED => MailChange::Dropped,
            SENT => MailChange::Sent(fields.number()?, Value::from(fields.rest())),
            RECEIVED => MailChange::Received(fields.number()?),
            other => return Err(BadRecord::new(format!("kind {other}"))),
        };
        match fields.rest().len() {
            0 => Ok(Self { mailbox, what }),
            behind => Err(BadRecord::new(format!(
                "{behind} bytes behind a change of a mailbox"
            ))),
        }
    }
}

fn small(number: u64) -> Result<usize, BadRecord> {
    usize::try_from(number).map_err(|_| BadRecord::new(format!("a capacity of {number}")))
}

fn word(number: u64) -> Result<u32, BadRecord> {
    u32::try_from(number).map_err(|_| BadRecord::new(format!("an owner with {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn again(what: &MailChange) -> MailChange {
        let mail = Mail {
            mailbox: 300,
            what: what.clone(),
        };
        let mut record = Vec::new();
        mail.write(&mut record);
        assert_eq!(Mail::mailbox_of(&record), Ok(300));
        let read = Mail::read(&record).expect("what was written");
        assert_eq!(read.mailbox, 300);
        read.what
    }

    #[test]
    fn what_is_written_is_read_back() {
        for mode in Mode::ALL {
            for capacity in [None, Some(1), Some(usize::MAX)] {
                let made = Made {
                    name: b"name"[..].into(),
                    mode,
                    capacity,
                    owner: Pid::new(Atom::NO_NODE, 7, u32::MAX, 0),
                };
                match again(&MailChange::Made(made.clone())) {
                    MailChange::Made(read) => assert_eq!(read, made),
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(matches!(again(&MailChange::Dropped), MailChange::Dropped));
        let sent = MailChange::Sent(u64::MAX, Value::from(&b"text"[..]));
        match again(&sent) {
            MailChange::Sent(u64::MAX, text) => assert_eq!(text[..], b"text"[..]),
            other => panic!("{other:?}"),
        }
        let received = again(&MailChange::Received(128));
        assert!(matches!(received, MailChange::Received(128)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_change_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Mail::read(&bytes);
        }
    }
}
