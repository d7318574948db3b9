//! METADATA: the description of a wheel's distribution.

use super::headers::Headers;
use super::name::normalized;
use super::requirement::name;
use rockpack_core::error::{Error, Result};

/// The name of the file in messages.
const WHAT: &str = "METADATA";

/// The metadata of a distribution, kept unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    headers: Headers,
    version: (u32, u32),
}

impl Metadata {
    /// Reads METADATA, whose version must be a known one.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let headers = Headers::parse(bytes, WHAT)?;
        let text = headers.one("Metadata-Version", WHAT)?;
        let numbers = text.split_once('.');
        let version = numbers.and_then(|(one, two)| Some((one.parse().ok()?, two.parse().ok()?)));
        let known = version.filter(|(major, _)| (1..=2).contains(major));
        let version = known.ok_or_else(|| {
            let message = format!("has the Metadata-Version {text}, and 1.x and 2.x are known");
            Error::unsupported(message).structure(WHAT)
        })?;
        if headers.one("Version", WHAT)?.contains('\n') {
            return Err(Error::malformed("has a Version of several lines").structure(WHAT));
        }
        let (own, lines) = (headers.one("Name", WHAT)?, headers.lines("Name"));
        // Installers take blanks behind a name for a part of it.
        let line = lines.trim_end_matches(['\r', '\n']).rsplit([':', ' ', '\t']).next();
        if line != Some(own) || name(own).is_none_or(|(_, rest)| !rest.is_empty()) {
            let message = format!("has the Name `{}`, which installers refuse", own.escape_debug());
            return Err(Error::malformed(message).structure(WHAT));
        }
        Ok(Self { headers, version })
    }

    /// The name of the distribution.
    pub fn name(&self) -> &str {
        self.headers.get("Name").unwrap_or_default()
    }

    /// The version of the distribution.
    pub fn version(&self) -> &str {
        self.headers.get("Version").unwrap_or_default()
    }

    /// The metadata version: 2 and 4 for `2.4`.
    pub fn form(&self) -> (u32, u32) {
        self.version
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        self.headers.text()
    }

    /// The first value of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    /// All values of a field.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.headers.all(name)
    }

    /// The lines of a field, unchanged, each with its line feed.
    pub fn lines(&self, name: &str) -> String {
        self.headers.lines(name)
    }

    /// The extras that the distribution offers, by their normalized names.
    pub fn extras(&self) -> impl Iterator<Item = String> {
        self.all("Provides-Extra").map(normalized)
    }

    /// The text with `added`, lines of fields, behind its last field. The metadata version is raised to 2.1,
    /// the first with extras, if it is lower.
    pub fn with(&self, added: &str) -> String {
        if self.version >= (2, 1) {
            return self.headers.changed(&[], added);
        }
        let text = self.headers.changed(&["Metadata-Version"], added);
        format!("Metadata-Version: 2.1\n{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_and_added_to() {
        let text = "Metadata-Version: 2.1\nName: Two.Pkg\nVersion: 1.0\nProvides-Extra: A_b\n\nx\n";
        let metadata = Metadata::parse(text.as_bytes()).unwrap();
        assert_eq!(
            (metadata.name(), metadata.version(), metadata.form()),
            ("Two.Pkg", "1.0", (2, 1))
        );
        assert_eq!(metadata.extras().collect::<Vec<_>>(), ["a-b"]);
        let expected = text.replace("\n\nx", "\nProvides-Extra: device-gfx942\n\nx");
        assert_eq!(metadata.with("Provides-Extra: device-gfx942\n"), expected);
        let old = Metadata::parse(b"Name: a\nMetadata-Version: 2.0\nVersion: 1\n").unwrap();
        assert_eq!(old.with(""), "Metadata-Version: 2.1\nName: a\nVersion: 1\n");
    }

    #[test]
    fn what_says_too_little_or_too_much_is_refused() {
        for text in [
            "Name: a\nVersion: 1\n",
            "Metadata-Version: 2.1\nVersion: 1\n",
            "Metadata-Version: 2.1\nName: a\n",
            "Metadata-Version: 2.1\nName: a\nName: b\nVersion: 1\n",
            "Metadata-Version: 2.1\nName: a \nVersion: 1\n",
            "Metadata-Version: 2.1\nName: a\u{a0}\nVersion: 1\n",
            "Metadata-Version: 2.1\nName:\n a\nVersion: 1\n",
            "Metadata-Version: 2.1\nName: a_\nVersion: 1\n",
            "Metadata-Version: 2.1\nName: a\nVersion: 1\n .0\n",
            "Metadata-Version: 3.0\nName: a\nVersion: 1\n",
            "Metadata-Version: two\nName: a\nVersion: 1\n",
        ] {
            assert!(Metadata::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
