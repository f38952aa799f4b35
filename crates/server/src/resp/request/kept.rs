//! Requests that wait.

use super::{Arguments, Span};

/// Requests that are kept in order, in few allocations.
#[derive(Default)]
pub(crate) struct KeptRequests {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// Where the bytes of each begin, and where its spans do.
    begins: Vec<(usize, usize)>,
}

/// What a request takes besides its bytes and those of its spans.
const HEAD: usize = size_of::<(usize, usize)>();

impl KeptRequests {
    /// Keeps a request.
    pub(crate) fn push<'a>(&mut self, arguments: impl IntoIterator<Item = &'a [u8]>) {
        let begin = self.bytes.len();
        self.begins.push((begin, self.spans.len()));
        for argument in arguments {
            let start = self.bytes.len() - begin;
            self.bytes.extend_from_slice(argument);
            let end = self.bytes.len() - begin;
            self.spans.push(Span { start, end });
        }
    }

    /// The request with this number.
    pub(crate) fn get(&self, number: usize) -> Arguments<'_> {
        let (begin, first) = self.begins[number];
        let next = self.begins.get(number + 1);
        let behind = next.map_or(self.spans.len(), |(_, first)| *first);
        Arguments {
            bytes: &self.bytes[begin..],
            spans: &self.spans[first..behind],
        }
    }

    /// The bytes that their arguments have.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes that one more request would take.
    pub(crate) fn size_of(arguments: Arguments<'_>) -> usize {
        let bytes: usize = arguments.skip(0).map(<[u8]>::len).sum();
        bytes + arguments.len() * size_of::<Span>() + HEAD
    }

    /// The bytes that are allocated.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
            + self.spans.capacity() * size_of::<Span>()
            + self.begins.capacity() * HEAD
    }
}
