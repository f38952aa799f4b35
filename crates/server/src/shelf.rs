//! Buffers for input that clients at rest leave with their thread for a short while.
//!
//! A client that sends one command after another would otherwise free its buffer after each, and
//! let it grow again for the next. As in Redis, a buffer that is not used goes after two to three
//! seconds. A buffer stays only while those of the thread take no more than [`ROOM`] together, and
//! while memory is not short: so clients that come seldom cost nothing, however many there are.
//!
//! A connection has its buffer here and not in its own fields, so that no connection has to be
//! woken to free it: the thread looks through its own shelf once a second.

use crate::clients::Clients;
use std::cell::RefCell;

/// Bytes of the buffers that the clients of one thread leave: 64 of one read.
pub(crate) const ROOM: usize = 1 << 20;

/// Looks that a buffer stays for, one a second.
const LOOKS: u64 = 3;

thread_local! {
    static SHELF: RefCell<Shelf> = RefCell::default();
}

#[derive(Default)]
struct Shelf {
    places: Vec<Place>,
    /// The places that are empty.
    empty: Vec<usize>,
    bytes: usize,
    looks: u64,
}

#[derive(Default)]
struct Place {
    left: Option<Left>,
    /// How often the place has been used, so that a client takes no other one's buffer.
    uses: u64,
}

struct Left {
    buffer: Vec<u8>,
    client: u64,
    /// The look before which it came.
    look: u64,
}

/// What a connection needs to get its buffer back.
pub(crate) struct Ticket {
    place: usize,
    uses: u64,
    /// The bytes of the buffer.
    pub(crate) bytes: usize,
}

/// Leaves the empty buffer of a client.
///
/// # Errors
///
/// The buffer, if there is no room for it.
pub(crate) fn leave(client: u64, buffer: Vec<u8>) -> Result<Ticket, Vec<u8>> {
    SHELF.with_borrow_mut(|shelf| shelf.leave(client, buffer))
}

/// Takes a buffer back, if it is still there. Only the thread that it was left with may do so.
pub(crate) fn take(ticket: &Ticket) -> Option<Vec<u8>> {
    SHELF.with_borrow_mut(|shelf| shelf.take(ticket))
}

/// Frees the buffers that have not been used for some looks. The thread calls this once a second.
pub(crate) fn look(clients: &Clients) {
    SHELF.with_borrow_mut(|shelf| {
        shelf.looks += 1;
        shelf.free(LOOKS, |client| clients.has_freed(client));
    });
}

/// Frees all buffers. Returns whether there were any.
pub(crate) fn clear(clients: &Clients) -> bool {
    SHELF.with_borrow_mut(|shelf| {
        let had_any = shelf.bytes > 0;
        shelf.free(0, |client| clients.has_freed(client));
        had_any
    })
}

impl Shelf {
    fn leave(&mut self, client: u64, mut buffer: Vec<u8>) -> Result<Ticket, Vec<u8>> {
        let bytes = buffer.capacity();
        if bytes == 0 || bytes > ROOM - self.bytes {
            return Err(buffer);
        }
        buffer.clear();
        let place = self.empty.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            self.places.len() - 1
        });
        let look = self.looks;
        self.bytes += bytes;
        let at = &mut self.places[place];
        at.uses += 1;
        at.left = Some(Left {
            buffer,
            client,
            look,
        });
        let uses = at.uses;
        Ok(Ticket { place, uses, bytes })
    }

    fn take(&mut self, ticket: &Ticket) -> Option<Vec<u8>> {
        let place = self.places.get_mut(ticket.place)?;
        if place.uses != ticket.uses {
            return None;
        }
        let left = place.left.take()?;
        self.bytes -= left.buffer.capacity();
        self.empty.push(ticket.place);
        Some(left.buffer)
    }

    /// Frees the buffers that have been here for `looks` looks, and calls `freed` with the client
    /// of each.
    fn free(&mut self, looks: u64, mut freed: impl FnMut(u64)) {
        for (number, place) in self.places.iter_mut().enumerate() {
            let is_old = |left: &mut Left| self.looks - left.look >= looks;
            if let Some(left) = place.left.take_if(is_old) {
                self.bytes -= left.buffer.capacity();
                self.empty.push(number);
                freed(left.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer() -> Vec<u8> {
        Vec::with_capacity(ROOM / 4)
    }

    #[test]
    fn a_client_gets_its_own_buffer_back_and_no_other() {
        let mut shelf = Shelf::default();
        let mut first = buffer();
        first.extend_from_slice(b"secret");
        let bytes = first.capacity();
        let ticket = shelf.leave(1, first).expect("room");
        assert_eq!((ticket.bytes, shelf.bytes), (bytes, bytes));
        let back = shelf.take(&ticket).expect("the buffer");
        assert_eq!((back.capacity(), &back[..]), (bytes, &b""[..]));
        assert_eq!(shelf.bytes, 0);
        assert!(shelf.take(&ticket).is_none(), "once");
        let other = shelf.leave(2, back).expect("room");
        assert_eq!(other.place, ticket.place);
        assert!(shelf.take(&ticket).is_none(), "it is another client's");
        assert!(shelf.take(&other).is_some());
    }

    #[test]
    fn all_buffers_together_are_bounded() {
        let mut shelf = Shelf::default();
        assert!(shelf.leave(1, Vec::new()).is_err(), "nothing to keep");
        assert!(shelf.leave(1, Vec::with_capacity(ROOM + 1)).is_err());
        let tickets: Vec<_> = (0..4).map(|client| shelf.leave(client, buffer())).collect();
        assert!(tickets.iter().all(Result::is_ok));
        assert!(shelf.leave(5, buffer()).is_err(), "full");
        let first = tickets[0].as_ref().expect("a ticket");
        assert!(shelf.take(first).is_some());
        assert!(shelf.leave(5, buffer()).is_ok(), "there is room again");
        assert_eq!(shelf.places.len(), 4);
    }

    #[test]
    fn a_buffer_goes_after_some_looks() {
        let mut shelf = Shelf::default();
        let mut seen = Vec::new();
        let early = shelf.leave(1, buffer()).expect("room");
        for look in 1..=LOOKS {
            if look == LOOKS {
                shelf.leave(2, buffer()).expect("room");
            }
            shelf.looks += 1;
            shelf.free(LOOKS, |client| seen.push((look, client)));
        }
        assert_eq!(seen, [(LOOKS, 1)]);
        assert!(shelf.take(&early).is_none());
        shelf.free(0, |client| seen.push((0, client)));
        assert_eq!(seen.last(), Some(&(0, 2)), "all");
        assert_eq!((shelf.bytes, shelf.empty.len()), (0, 2));
    }
}
