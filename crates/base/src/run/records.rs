//! Memory for what a run remembers of each file and code object of its input, from the scan to the
//! receipt: paths, digests, rows of archives. It grows with their number and no spool helps against
//! it, so it is counted, and an input that needs more than its share is refused before it is taken
//! in. Structures that are read as a whole are refused by their length.

use std::sync::atomic::Ordering;

use super::budget::{ASIDE, Budget};
use super::pool::Lease;
use crate::error::{Error, Kind, Result};

/// Bytes that a file, folder or link takes in a build of both formats, without its path. Measured on
/// 50,000, 60,000 and 200,000 files: 4.1 KiB each with paths of 60 bytes, 6.4 KiB with 170.
const ENTRY: u64 = 2560;

/// How many copies of its path a run keeps, by the same measurement.
const PATHS: u64 = 22;

/// Bytes that a code object takes: its rows of the archive, the plan and the receipt. Reckoned from
/// the fields of these, not measured.
const CODE_OBJECT: u64 = 3 << 10;

/// Bytes of memory that a byte of a table can take once it is decoded into values.
const TABLE: u64 = 48;

impl Budget {
    /// Counts a file, folder or link of the input with a path of `path` bytes.
    pub fn charge_entry(&self, path: usize) -> Result<()> {
        self.charge(ENTRY + PATHS * path as u64)
    }

    /// Counts `bytes` more of paths, or of the targets of links.
    pub fn charge_paths(&self, bytes: usize) -> Result<()> {
        self.charge(PATHS * bytes as u64)
    }

    /// Counts a code object whose name and target have `names` bytes.
    pub fn charge_code_object(&self, names: usize) -> Result<()> {
        self.charge(CODE_OBJECT + names as u64)
    }

    /// Counts code objects again that another wrapper refers to as well.
    pub fn charge_code_objects_again(&self, count: usize) -> Result<()> {
        self.charge(CODE_OBJECT.saturating_mul(count as u64))
    }

    fn charge(&self, bytes: u64) -> Result<()> {
        let Some(handle) = &self.0 else { return Ok(()) };
        handle.charged.fetch_add(bytes, Ordering::AcqRel);
        let all = handle.parts.records.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes);
        let limit = handle.parts.limits.records;
        if all <= limit {
            return Ok(());
        }
        let message = format!(
            "the files and code objects of the input are too many to be remembered in {} MiB",
            limit >> 20
        );
        let hint =
            "give more with --memory, of which a part is for this, or fewer artifacts at a time";
        Err(Error::new(Kind::Limit, message).hint(hint))
    }

    /// Whether more was charged than there is room for, which was an error then.
    pub fn is_exhausted(&self) -> bool {
        self.parts().is_some_and(|parts| self.charged() > parts.limits.records)
    }

    /// Bytes charged beyond those that lie beside every budget.
    pub fn excess_records(&self) -> u64 {
        self.charged().saturating_sub(ASIDE)
    }

    fn charged(&self) -> u64 {
        self.parts().map_or(0, |parts| parts.records.load(Ordering::Acquire))
    }

    /// Refuses `what` of `len` bytes if it is too long to be read as a whole: every thread may do
    /// so at the same time.
    pub fn check_structure(&self, len: u64, what: &str) -> Result<()> {
        let Some(parts) = self.parts() else { return Ok(()) };
        let threads = u64::try_from(parts.limits.threads.max(1)).unwrap_or(u64::MAX);
        refuse_long(len, parts.limits.structures / threads, what)
    }

    /// Refuses `what` of `len` bytes if it is too long to be decoded as a whole into values. While
    /// the lease lives, other tables wait: one after the other, each may take the whole share.
    pub fn table(&self, len: u64, what: &str) -> Result<Lease> {
        let Some(parts) = self.parts() else { return Ok(Lease::default()) };
        refuse_long(len, parts.limits.structures / TABLE, what)?;
        Ok(parts.tables.draw(1))
    }
}

fn refuse_long(len: u64, limit: u64, what: &str) -> Result<()> {
    if len <= limit {
        return Ok(());
    }
    let message = format!("{what} of {len} bytes is more than the {limit} that the memory allows");
    Err(Error::new(Kind::Limit, message).hint("give more with --memory"))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::budget::Limits;
    use super::*;

    /// A budget for the records of `count` code objects.
    fn budget(count: u64) -> Budget {
        let records = (count * CODE_OBJECT).saturating_sub(ASIDE);
        Budget::new(Limits { records, structures: 0, threads: 2, ..Limits::default() })
    }

    const COUNT: u64 = ASIDE / CODE_OBJECT + 10;

    #[test]
    fn a_scope_gives_back_what_was_charged_inside() {
        let budget = budget(COUNT);
        budget.charge_code_objects_again(8).unwrap();
        let scope = budget.scope();
        thread::scope(|threads| {
            let inside = scope.clone();
            threads.spawn(move || inside.charge_code_objects_again(30_000));
            // What others charge meanwhile stays.
            threads.spawn(|| budget.charge_code_object(0).unwrap());
        });
        assert_eq!(budget.charged(), (8 + 1 + 30_000) * CODE_OBJECT);
        drop(scope);
        assert_eq!(budget.charged(), 9 * CODE_OBJECT);
    }

    #[test]
    fn too_many_are_an_error_of_their_own_budget_alone() {
        let (small, large) = (budget(COUNT), budget(COUNT * 2));
        let count = usize::try_from(COUNT).unwrap();
        for budget in [&small, &large, &Budget::default()] {
            budget.charge_code_objects_again(count).unwrap();
            assert!(!budget.is_exhausted());
        }
        assert_eq!(small.charge_code_object(0).unwrap_err().kind(), Kind::Limit);
        large.charge_code_object(0).unwrap();
        assert_eq!([&small, &large].map(Budget::is_exhausted), [true, false]);
        assert_eq!(small.excess_records(), small.charged() - ASIDE);
    }

    #[test]
    fn a_table_has_the_share_alone_and_a_structure_shares_it() {
        let budget = budget(1);
        let fits = |len| budget.check_structure(len, "x").is_ok();
        assert!(fits(ASIDE / 2) && !fits(ASIDE / 2 + 1));
        let table = budget.table(ASIDE / TABLE, "x").unwrap();
        assert!(budget.table(ASIDE / TABLE + 1, "x").is_err());
        assert!(budget.parts().unwrap().tables.try_draw(1).is_none());
        drop(table);
        assert!(budget.table(1, "x").is_ok());
    }
}
