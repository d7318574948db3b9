//! Numbers for people.

use rockpack_package::receipt::listing::Size;

/// A byte count with a decimal unit: `3.94 MB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    for (size, unit) in UNITS {
        if count >= size {
            // Hundredths in integers: the same text on every machine.
            let hundredths = count / (size / 100);
            return format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100);
        }
    }
    format!("{count} B")
}

/// A byte count, with `~` before an estimate.
pub fn size(size: Size) -> String {
    if size.estimated { format!("~{}", bytes(size.bytes)) } else { bytes(size.bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_decimal() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_000), "1.00 kB");
        assert_eq!(bytes(3_940_000), "3.94 MB");
        assert_eq!(bytes(12_345_678_901), "12.34 GB");
    }
}
