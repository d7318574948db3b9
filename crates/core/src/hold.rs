//! Stores a stream for later reads: in memory if the budget has room, in an anonymous temporary file otherwise.

use std::io::{self, Read};

pub use crate::compression::decoder_fault as fault;
use crate::content::{Content, HeldBytes, Spool, WINDOW};
use crate::error::{Error, Result};
use crate::run::Budget;

/// Reads all bytes of `reader`, which must be exactly `size`, and keeps them within `budget`.
pub fn hold(reader: &mut dyn Read, size: u64, budget: &Budget) -> Result<Content> {
    let mut announced = reader.take(size);
    let content = match HeldBytes::reserve_over_limit(size, budget) {
        Some(mut held) => {
            held.fill(&mut announced).map_err(fault)?;
            Content::of_held(held)
        }
        None => {
            let spool = Spool::create(&std::env::temp_dir())?;
            let (mut parts, mut window) = (Vec::new(), vec![0; WINDOW]);
            while let len @ 1.. = announced.read(&mut window).map_err(fault)? {
                parts.push(spool.append(&window[..len])?);
            }
            Content::concat(&parts)
        }
    };
    let rest = io::copy(&mut announced.into_inner().take(1), &mut io::sink()).map_err(fault)?;
    let len = content.len() + rest;
    if len == size {
        return Ok(content.within(budget));
    }
    let more = if rest > 0 { " or more" } else { "" };
    Err(Error::malformed(format!("holds {len} bytes{more} instead of the announced {size}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Limits, MemoryUse};

    #[test]
    fn a_stream_has_to_be_as_long_as_announced() {
        for budget in [&Budget::unlimited(), &room_for(2)] {
            assert_eq!(hold(&mut &b"abc"[..], 3, budget).unwrap().len(), 3);
            for size in [0, 2, 4, u64::MAX] {
                assert!(hold(&mut &b"abc"[..], size, budget).is_err(), "{size}");
            }
        }
    }

    #[test]
    fn memory_is_drawn_from_the_budget_and_what_does_not_fit_is_kept_outside() {
        let budget = room_for(5);
        let held = hold(&mut &b"abc"[..], 3, &budget).unwrap();
        assert!(budget.try_draw(MemoryUse::HeldBytes, 3).is_none());
        let outside = hold(&mut &b"abcd"[..], 4, &budget).unwrap();
        assert!(budget.try_draw(MemoryUse::HeldBytes, 2).is_some());
        assert_eq!([held, outside].map(|it| it.read_array(1).unwrap()), [*b"bc"; 2]);
        assert!(budget.try_draw(MemoryUse::HeldBytes, 5).is_some());
    }

    fn room_for(held: u64) -> Budget {
        Budget::new(Limits { held, ..Limits::default() })
    }
}
