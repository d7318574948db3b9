//! The passphrase of a key, from a file or an environment variable. It is never an option, because every user
//! of a machine can read those in its list of processes.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use rockpack_core::error::{Error, Kind, Result, ResultExt};

/// The environment variable with the passphrase of the signing key, which no other program gets.
pub const PASSPHRASE_VARIABLE: &str = "ROCKPACK_SIGN_PASSPHRASE";

/// Longest file of a passphrase in bytes.
const LIMIT: u64 = 4096;

/// A passphrase, which is never shown.
#[derive(Clone, Default)]
pub struct Passphrase(Vec<u8>);

impl Passphrase {
    /// A passphrase without a line break.
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        Self(text.into())
    }

    /// Reads the first line of a file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = beginning(path).context(|| "reading the passphrase".to_owned())?;
        if bytes.len() as u64 > LIMIT {
            let message = format!("has more than {LIMIT} bytes and is no passphrase");
            return Err(Error::new(Kind::Usage, message).file(path));
        }
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Ok(Self(line.strip_suffix(b"\r").unwrap_or(line).to_vec()))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The first [`LIMIT`] bytes of a file, and one more that shows whether it is longer.
fn beginning(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(|e| Error::io(path, "read", e))?;
    Ok(bytes)
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("passphrase");
        for (text, expected) in [("a b\n", "a b"), ("a b", "a b"), ("x\r\ny\n", "x"), ("", "")] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Passphrase::read(&path).unwrap().bytes(), expected.as_bytes());
        }
        std::fs::write(&path, "x".repeat(5000)).unwrap();
        assert!(Passphrase::read(&path).is_err());
        assert!(!format!("{:?}", Passphrase::new("secret")).contains("secret"));
    }
}
