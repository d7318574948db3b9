//! WHEEL: the description of a wheel file.

use std::collections::BTreeSet;

use super::headers::Headers;
use super::name::WheelName;
use super::tag::Tag;
use rockpack_core::error::{Error, Result};

/// The name of the file in messages.
const WHAT: &str = "WHEEL";

/// The parsed file WHEEL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelFile {
    headers: Headers,
    is_purelib: bool,
}

impl WheelFile {
    /// Parses WHEEL, version 1.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let headers = Headers::parse(bytes, WHAT)?;
        let version = headers.one("Wheel-Version", WHAT)?;
        let minor = version.strip_prefix("1.").unwrap_or_default();
        if !minor.starts_with(|c: char| c.is_ascii_digit()) {
            let message = format!("has the Wheel-Version {version}, and 1.0 is known");
            return Err(Error::unsupported(message).structure(WHAT));
        }
        let purelib = headers.one("Root-Is-Purelib", WHAT)?;
        let is_purelib = match purelib.to_ascii_lowercase().as_str() {
            "true" => true,
            "false" => false,
            _ => {
                let message = format!("has the Root-Is-Purelib {purelib}, which is no truth value");
                return Err(Error::malformed(message).structure(WHAT));
            }
        };
        Ok(Self { headers, is_purelib })
    }

    /// Whether the files at the wheel's root are installed where files for all platforms are.
    pub fn is_purelib(&self) -> bool {
        self.is_purelib
    }

    /// The build number.
    pub fn build(&self) -> Option<&str> {
        self.headers.get("Build")
    }

    /// The tags, in order.
    pub fn tags(&self) -> Vec<String> {
        self.headers.all("Tag").map(str::to_owned).collect()
    }

    /// The tags of a file name, in order.
    pub fn tags_of(name: &WheelName) -> Vec<String> {
        name.tags().iter().map(Tag::to_string).collect()
    }

    /// Whether it states the tags, in any order, and the build number of a file name.
    pub fn agrees_with(&self, name: &WheelName) -> bool {
        let set = |tags: Vec<String>| tags.into_iter().collect::<BTreeSet<_>>();
        set(self.tags()) == set(Self::tags_of(name)) && self.build() == name.build.as_deref()
    }

    /// The text of WHEEL for a wheel called `name` that `generator` makes; its root files are installed like
    /// those of this wheel.
    pub fn of(&self, name: &WheelName, generator: &str) -> String {
        let purelib = if self.is_purelib { "true" } else { "false" };
        let mut text =
            format!("Wheel-Version: 1.0\nGenerator: {generator}\nRoot-Is-Purelib: {purelib}\n");
        for tag in Self::tags_of(name) {
            text.push_str(&format!("Tag: {tag}\n"));
        }
        if let Some(build) = &name.build {
            text.push_str(&format!("Build: {build}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheel_file_is_made_anew_by_the_name() {
        let text = b"Wheel-Version: 1.0\nRoot-Is-Purelib: TRUE\nTag: x\n";
        let file = WheelFile::parse(text).unwrap();
        assert!(file.is_purelib());
        let name = "a-1-2b-py2.py3-none-any.whl".parse().unwrap();
        let made = file.of(&name, "rockpack 1");
        let expected = "Wheel-Version: 1.0\nGenerator: rockpack 1\nRoot-Is-Purelib: true\nTag: \
                        py2-none-any\nTag: py3-none-any\nBuild: 2b\n";
        assert_eq!(made, expected);
        assert!(!file.agrees_with(&name));
        let other_order = made.replace("py2-", "p-").replace("py3-", "py2-").replace("p-", "py3-");
        for made in [made, other_order] {
            assert!(WheelFile::parse(made.as_bytes()).unwrap().agrees_with(&name), "{made}");
        }
    }

    #[test]
    fn other_versions_and_words_are_refused() {
        for text in [
            "Wheel-Version: 2.0\nRoot-Is-Purelib: true\n",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: yes\n",
            "Wheel-Version: 1.0\n",
            "Root-Is-Purelib: true\n",
        ] {
            assert!(WheelFile::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
