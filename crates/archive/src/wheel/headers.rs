//! METADATA and WHEEL of wheels: header fields as in e-mails, and a body.
//!
//! ```text
//! Name: value
//!         a continued value, after blanks
//! (a blank line, and the body)
//! ```

use std::collections::BTreeSet;
use std::ops::Range;

use derive_more::Deref;

use super::name::{Tag, WheelName, normalized};
use super::requirement::name;
use rockpack_core::error::{Error, Kind, Result};

/// A text of header fields and a body, kept unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    text: String,
    fields: Vec<Field>,
    /// The end of the fields: after the last line feed of the last field.
    end: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    value: String,
    /// The lines of the field in the text.
    lines: Range<usize>,
}

/// Most fields of a text: METADATA of the largest projects has some hundred.
const FIELDS_MAX: usize = 1 << 16;

impl Headers {
    /// Reads a text that is called `what` in messages.
    fn parse(bytes: &[u8], what: &str) -> Result<Self> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let at = error.valid_up_to() as u64;
            Error::malformed("is not UTF-8").structure(what).offset(at)
        })?;
        let mut fields: Vec<Field> = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let (start, end) = (at, at + line.len());
            let plain = line.strip_suffix('\n').unwrap_or(line);
            let plain = plain.strip_suffix('\r').unwrap_or(plain);
            // Some readers treat a lone carriage return as the end of a line.
            if plain.contains('\r') {
                let message = "has a carriage return that no line feed follows";
                return Err(Error::malformed(message).structure(what).offset(at as u64));
            }
            if plain.is_empty() {
                break;
            }
            at = end;
            if fields.len() == FIELDS_MAX {
                let message = format!("has more than {FIELDS_MAX} header fields");
                return Err(Error::new(Kind::Limit, message).structure(what));
            }
            match (plain.starts_with([' ', '\t']), fields.last_mut()) {
                (true, Some(field)) => {
                    // Blank continuation lines are dropped.
                    if !plain.trim().is_empty() {
                        field.value.push('\n');
                        field.value.push_str(plain.trim());
                    }
                    field.lines.end = end;
                }
                _ => fields.push(field(plain, start..end).ok_or_else(|| {
                    Error::malformed("has a line that is not a header field")
                        .structure(what)
                        .offset(start as u64)
                        .hint("fields are `Name: value`, with a blank line after the last one")
                })?),
            }
        }
        Ok(Self { text: text.to_owned(), fields, end: at })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        let own = self.fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
        own.map(|field| field.value.as_str())
    }

    /// The value of a field that must occur exactly once.
    fn one(&self, name: &str, what: &str) -> Result<&str> {
        let mut all = self.all(name);
        match (all.next(), all.next()) {
            (Some(value), None) => Ok(value),
            (None, _) => Err(Error::malformed(format!("has no {name}")).structure(what)),
            (Some(_), Some(_)) => {
                Err(Error::malformed(format!("has {name} more than once")).structure(what))
            }
        }
    }

    /// The lines of a field, unchanged, each with its line feed.
    pub fn lines(&self, name: &str) -> String {
        self.lines_of(|own| own.eq_ignore_ascii_case(name))
    }

    /// The lines of the fields whose names are wanted, each with its line feed.
    fn lines_of(&self, is_wanted: impl Fn(&str) -> bool) -> String {
        let own = self.fields.iter().filter(|field| is_wanted(&field.name));
        let lines = own.filter_map(|field| self.text.get(field.lines.clone()));
        lines.flat_map(|it| [it, if it.ends_with('\n') { "" } else { "\n" }]).collect()
    }

    /// The text without all fields called `without`, and with `added` after the last remaining one.
    fn changed(&self, without: &[&str], added: &str) -> String {
        let fields =
            self.lines_of(|own| !without.iter().any(|name| own.eq_ignore_ascii_case(name)));
        format!("{fields}{added}{}", self.text.get(self.end..).unwrap_or_default())
    }
}

fn field(line: &str, lines: Range<usize>) -> Option<Field> {
    let (name, value) = line.split_once(':')?;
    let is_field =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    is_field.then(|| Field { name: name.to_owned(), value: value.trim().to_owned(), lines })
}

/// The name of the file with a distribution's metadata, in messages.
const METADATA: &str = "METADATA";

/// The metadata of a distribution, kept unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Deref)]
pub struct Metadata {
    #[deref]
    headers: Headers,
    version: (u32, u32),
}

impl Metadata {
    /// Reads METADATA, whose version must be a known one.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let headers = Headers::parse(bytes, METADATA)?;
        let text = headers.one("Metadata-Version", METADATA)?;
        let numbers = text.split_once('.');
        let version = numbers.and_then(|(one, two)| Some((one.parse().ok()?, two.parse().ok()?)));
        let known = version.filter(|(major, _)| (1..=2).contains(major));
        let version = known.ok_or_else(|| {
            let message = format!("has the Metadata-Version {text}, and 1.x and 2.x are known");
            Error::unsupported(message).structure(METADATA)
        })?;
        if headers.one("Version", METADATA)?.contains('\n') {
            return Err(Error::malformed("has a Version of several lines").structure(METADATA));
        }
        let (own, lines) = (headers.one("Name", METADATA)?, headers.lines("Name"));
        // Installers treat blanks after a name as part of it.
        let line = lines.trim_end_matches(['\r', '\n']).rsplit([':', ' ', '\t']).next();
        if line != Some(own) || name(own).is_none_or(|(_, rest)| !rest.is_empty()) {
            let message = format!("has the Name `{}`, which installers refuse", own.escape_debug());
            return Err(Error::malformed(message).structure(METADATA));
        }
        Ok(Self { headers, version })
    }

    pub fn name(&self) -> &str {
        self.get("Name").unwrap_or_default()
    }

    pub fn version(&self) -> &str {
        self.get("Version").unwrap_or_default()
    }

    /// The extras that the distribution offers, by their normalized names.
    pub fn extras(&self) -> impl Iterator<Item = String> {
        self.all("Provides-Extra").map(normalized)
    }

    /// The text with `added`, lines of fields, after its last field. The metadata version is raised to 2.1,
    /// the first with extras, if it is lower.
    pub fn with(&self, added: &str) -> String {
        if self.version >= (2, 1) {
            return self.changed(&[], added);
        }
        let text = self.changed(&["Metadata-Version"], added);
        format!("Metadata-Version: 2.1\n{text}")
    }
}

/// The name of the file that describes a wheel file, in messages.
const WHEEL: &str = "WHEEL";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelFile {
    headers: Headers,
    /// Whether the files at the wheel's root are installed where files for all platforms are.
    pub is_purelib: bool,
}

impl WheelFile {
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let headers = Headers::parse(bytes, WHEEL)?;
        let version = headers.one("Wheel-Version", WHEEL)?;
        let minor = version.strip_prefix("1.").unwrap_or_default();
        if !minor.starts_with(|c: char| c.is_ascii_digit()) {
            let message = format!("has the Wheel-Version {version}, and 1.0 is known");
            return Err(Error::unsupported(message).structure(WHEEL));
        }
        let purelib = headers.one("Root-Is-Purelib", WHEEL)?;
        let is_purelib = purelib.to_ascii_lowercase().parse::<bool>().map_err(|_| {
            let message = format!("has the Root-Is-Purelib {purelib}, which is not true or false");
            Error::malformed(message).structure(WHEEL)
        })?;
        Ok(Self { headers, is_purelib })
    }

    pub fn build(&self) -> Option<&str> {
        self.headers.get("Build")
    }

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

    /// The text of WHEEL for the wheel `name` by `generator`; its root files are installed like this wheel's.
    pub fn of(&self, name: &WheelName, generator: &str) -> String {
        let purelib = self.is_purelib;
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
    fn fields_are_found_and_everything_else_is_kept() {
        let text = "Name: a\nlicense: one\n   two\nTag: x\nTag: y\n\nName: body\n";
        let headers = Headers::parse(text.as_bytes(), "METADATA").unwrap();
        assert_eq!(headers.get("name"), Some("a"));
        assert_eq!(headers.get("License"), Some("one\ntwo"));
        assert_eq!(headers.all("Tag").collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(headers.lines("License"), "license: one\n   two\n");
        assert!(headers.one("Tag", "WHEEL").is_err());
        assert!(headers.one("Version", "WHEEL").is_err());
        assert_eq!(headers.changed(&[], ""), text);
        let changed = headers.changed(&["tag"], "Tag: z\n");
        assert_eq!(changed, "Name: a\nlicense: one\n   two\nTag: z\n\nName: body\n");
    }

    #[test]
    fn a_last_line_may_have_no_end() {
        let headers = Headers::parse(b"Name: a\r\nTag: x", "WHEEL").unwrap();
        assert_eq!(headers.changed(&[], "Tag: y\n"), "Name: a\r\nTag: x\nTag: y\n");
        assert_eq!(headers.get("Name"), Some("a"));
    }

    #[test]
    fn what_is_no_field_is_named_with_its_offset() {
        for text in ["Name: a\nno field\n", " Name: a\n", ": x\n", "Na me: a\n"] {
            assert!(Headers::parse(text.as_bytes(), "METADATA").is_err(), "{text}");
        }
        assert!(Headers::parse(b"Name: \xff\n", "METADATA").is_err());
    }

    #[test]
    fn metadata_is_read_and_added_to() {
        let text = "Metadata-Version: 2.1\nName: Two.Pkg\nVersion: 1.0\nProvides-Extra: A_b\n\nx\n";
        let metadata = Metadata::parse(text.as_bytes()).unwrap();
        assert_eq!((metadata.name(), metadata.version()), ("Two.Pkg", "1.0"));
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

    #[test]
    fn a_wheel_file_is_made_anew_by_the_name() {
        let text = b"Wheel-Version: 1.0\nRoot-Is-Purelib: TRUE\nTag: x\n";
        let file = WheelFile::parse(text).unwrap();
        assert!(file.is_purelib);
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
