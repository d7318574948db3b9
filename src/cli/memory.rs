//! How much memory a command takes.

use clap::Args;

use crate::error::Result;
use crate::run::{Budget, shares, threads};

/// The budget of commands that write artifacts.
#[derive(Debug, Default, Args)]
pub(super) struct MemoryArguments {
    /// Memory to keep to, e.g. 4G; the artifacts do not depend on it. With less there are fewer
    /// threads, and more in nameless files beside the output [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
}

impl MemoryArguments {
    /// Does `work` within the budget, with its threads.
    pub fn within<T: Send>(&self, work: impl FnOnce(Budget) -> Result<T> + Send) -> Result<T> {
        let budget = Budget::new(shares::of_reader(self.memory, threads::count())?);
        threads::with(budget.threads(), || work(budget))
    }
}

/// The budget of commands without an option for it.
pub(super) fn by_default() -> Budget {
    Budget::new(shares::by_default())
}

/// The number of bytes that `text` says: digits, or with K, M, G or T for powers of 1024.
pub(super) fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let (digits, shift) = match text.bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        Some(b'T' | b't') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| "is no number of bytes; 20G is one".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            [parse_size("7"), parse_size("2k"), parse_size("4G")],
            [Ok(7), Ok(2048), Ok(4 << 30)]
        );
        assert!(
            ["", "G", "-1", "1.5G", "99999999999T", "é"]
                .iter()
                .all(|text| parse_size(text).is_err())
        );
    }
}
