//! A walk over all rows of an archive that loads each code object once.

use std::collections::TryReserveError;
use std::ffi::CStr;

use rockpack_kpack::Code;
use rockpack_kpack::archive::{BLOB_LIMIT, Row};

use crate::archive::{OpenArchive, RowName};
use crate::report;

/// The answers about code objects, each under one ordinal of its place.
struct Known<T> {
    /// The first ordinal with the same place, for each ordinal.
    first: Vec<u32>,
    /// The loaded size and the answer, for each ordinal.
    answers: Vec<Option<(u64, T)>>,
}

impl<T: Copy> Known<T> {
    fn new(archive: &OpenArchive) -> Result<Self, Code> {
        let count = archive.count();
        let (mut first, mut answers) = (Vec::new(), Vec::new());
        first.try_reserve_exact(count).map_err(no_memory_for_list)?;
        first.extend((0..).take(count));
        answers.try_reserve_exact(count).map_err(no_memory_for_list)?;
        answers.resize(count, None);
        let mut known = Self { first, answers };
        known.join(archive)?;
        Ok(known)
    }

    /// Makes ordinals of one place share an answer. Overlapping places, and more than a blob may have in all,
    /// are refused: a small or sparse file could have many large code objects.
    fn join(&mut self, archive: &OpenArchive) -> Result<(), Code> {
        let mut places = Vec::new();
        places.try_reserve_exact(self.first.len()).map_err(no_memory_for_list)?;
        places.extend(self.first.iter().filter_map(|ordinal| {
            let place = archive.stored(*ordinal).filter(|place| place.size > 0)?;
            Some((place.offset, place.size, *ordinal))
        }));
        places.sort_unstable();
        let mut last: Option<(u64, u64, u32)> = None;
        let mut total = 0_u64;
        for (offset, size, ordinal) in places {
            match last {
                Some((before, len, first)) if (before, len) == (offset, size) => {
                    let index = usize::try_from(ordinal).unwrap_or(usize::MAX);
                    self.first.get_mut(index).into_iter().for_each(|slot| *slot = first);
                }
                Some((before, len, other)) if offset < before.saturating_add(len) => {
                    let path = archive.path();
                    let why = format_args!("{path}: code objects {other} and {ordinal} overlap");
                    return Err(report::fail_with_hint(
                        Code::InvalidFormat,
                        why,
                        "; install it again",
                    ));
                }
                _ => (last, total) = (Some((offset, size, ordinal)), total.saturating_add(size)),
            }
        }
        if total > BLOB_LIMIT {
            let path = archive.path();
            let why = format_args!("{path}: its code objects have {total} bytes, above 4 GiB");
            return Err(report::fail(Code::InvalidFormat, why));
        }
        Ok(())
    }

    fn answer(&mut self, ordinal: u32) -> Option<&mut Option<(u64, T)>> {
        let first = *self.first.get(usize::try_from(ordinal).ok()?)?;
        self.answers.get_mut(usize::try_from(first).ok()?)
    }
}

fn no_memory_for_list(_: TryReserveError) -> Code {
    report::refused("a list of code objects")
}

/// Passes each row to `visit`, with the answer of `look` about its code object, until `visit` returns false.
/// Rows of one code object share the answer. Fails at the first row that cannot be loaded.
pub fn each<T: Copy>(
    archive: &OpenArchive,
    look: impl Fn(&[u8], &RowName<'_>) -> Result<T, Code>,
    mut visit: impl FnMut(&CStr, &CStr, T) -> bool,
) -> Result<(), Code> {
    let mut known = Known::new(archive)?;
    let keys = archive.keys();
    for index in 0..keys.len() {
        let Some((key, shown)) = keys.get(index).zip(keys.get_c(index)) else { continue };
        for (target, row) in archive.rows_of(key) {
            let name = RowName { key, target: target.to_bytes() };
            let answer = one(archive, row, &name, &mut known, &look)?;
            if !visit(shown, target, answer) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The answer of `look` about a row's code object, from now or from before.
fn one<T: Copy>(
    archive: &OpenArchive,
    row: Row,
    name: &RowName<'_>,
    known: &mut Known<T>,
    look: impl Fn(&[u8], &RowName<'_>) -> Result<T, Code>,
) -> Result<T, Code> {
    let size = archive.size_of(row, name)?;
    let slot = known.answer(row.ordinal);
    if let Some(Some((known, answer))) = slot.as_deref()
        && *known == size
    {
        return Ok(*answer);
    }
    let answer = look(archive.load_of(row, name)?.bytes(), name)?;
    if let Some(slot) = slot {
        *slot = Some((size, answer));
    }
    Ok(answer)
}
