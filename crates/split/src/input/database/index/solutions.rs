//! The places of a library's solutions: the value of `solutions_index`.

use std::io;
use std::ops::Range;

use rockpack_core::run::Budget;
use rockpack_elf::message_pack_stream::{Skip, Token, TokenReader, fault};

/// The places of solutions, in the order of the list.
#[derive(Debug, Default)]
pub(super) struct LocatedSolutions(Vec<LocatedSolution>);

/// The place of one solution. Its bounds have 32 bits, because all solutions are within one MessagePack
/// value.
#[derive(Debug, Clone, Copy)]
struct LocatedSolution {
    number: u32,
    offset: u32,
    len: u32,
}

impl LocatedSolution {
    fn range(&self) -> Range<u64> {
        u64::from(self.offset)..u64::from(self.offset) + u64::from(self.len)
    }
}

impl LocatedSolutions {
    /// Reads an array of `len` integers: number, offset and length of each solution.
    pub(super) fn read(
        tokens: &mut TokenReader<impl Skip>,
        len: u32,
        budget: &Budget,
    ) -> io::Result<Self> {
        if !len.is_multiple_of(3) {
            return Err(fault(format!("solutions_index has {len} values, which are no triples")));
        }
        let mut places = Vec::new();
        for at in 0..len / 3 {
            let [number, offset, len] = [integer(tokens)?, integer(tokens)?, integer(tokens)?];
            let known = i32::try_from(number).ok().and_then(|number| u32::try_from(number).ok());
            let (Some(number), Ok(offset), Ok(len)) =
                (known, u32::try_from(offset), u32::try_from(len))
            else {
                return Err(fault(format!(
                    "entry {at} of solutions_index, solution {number} of {len} bytes at {offset}, \
                     has a value out of bounds"
                )));
            };
            if places.len() == places.capacity() {
                grow(&mut places, budget)?;
            }
            places.push(LocatedSolution { number, offset, len });
        }
        Ok(Self(places))
    }

    /// The number of solutions.
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The places in the order of their offsets in `len` bytes, deduplicated.
    pub(super) fn in_order(mut self, len: u32) -> io::Result<impl Iterator<Item = Range<u64>>> {
        self.check(len)?;
        self.0.sort_unstable_by_key(|place| (place.offset, place.len));
        self.0.dedup_by_key(|place| (place.offset, place.len));
        match self.0.windows(2).find(|pair| pair[1].range().start < pair[0].range().end) {
            None => Ok(self.0.into_iter().map(|place| place.range())),
            Some(pair) => Err(fault(format!(
                "the solutions at {} and {} of solutions_blob share bytes",
                pair[0].offset, pair[1].offset
            ))),
        }
    }

    /// Refuses, as libraries do, a place that ends outside of `len` bytes, and a number that occurs twice.
    fn check(&mut self, len: u32) -> io::Result<()> {
        if let Some(place) = self.0.iter().find(|place| place.range().end > len.into()) {
            let LocatedSolution { number, offset, len: own } = place;
            return Err(fault(format!(
                "solution {number}, of {own} bytes at {offset}, ends outside of the {len} bytes of \
                 solutions_blob"
            )));
        }
        self.0.sort_unstable_by_key(|place| place.number);
        match self.0.windows(2).find(|pair| pair[0].number == pair[1].number) {
            None => Ok(()),
            Some(pair) => {
                Err(fault(format!("solutions_index has solution {} twice", pair[0].number)))
            }
        }
    }
}

fn integer(tokens: &mut TokenReader<impl Skip>) -> io::Result<i128> {
    match tokens.token()? {
        Token::Integer(number) => Ok(number),
        _ => Err(fault("solutions_index holds more than integers")),
    }
}

/// Doubles the room, if the memory of the run allows it.
fn grow(places: &mut Vec<LocatedSolution>, budget: &Budget) -> io::Result<()> {
    let more = places.len().max(1 << 10);
    // While the list grows, old and new memory exist at once.
    let bytes = (places.len() + more) * size_of::<LocatedSolution>() * 2;
    budget.check_structure(bytes as u64, "the solutions_index of a kernel index")?;
    places.try_reserve_exact(more).map_err(|_| io::ErrorKind::OutOfMemory)?;
    Ok(())
}
