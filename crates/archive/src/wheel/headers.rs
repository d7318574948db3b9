//! Header fields as in e-mails, and a body.
//!
//! ```text
//! Name: value
//!         a continued value, behind blanks
//! (a blank line, and the body)
//! ```

use std::ops::Range;

use rockpack_core::error::{Error, Kind, Result};

/// A text of header fields and a body, kept unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Headers {
    text: String,
    fields: Vec<Field>,
    /// The end of the fields: behind the last line feed of the last field.
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
    pub fn parse(bytes: &[u8], what: &str) -> Result<Self> {
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
            // Some readers take a lone carriage return for the end of a line.
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
                    Error::malformed("has a line that is no header field")
                        .structure(what)
                        .offset(start as u64)
                        .hint("fields are `Name: value`, with a blank line behind the last one")
                })?),
            }
        }
        Ok(Self { text: text.to_owned(), fields, end: at })
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The first value of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a field.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        let own = self.fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
        own.map(|field| field.value.as_str())
    }

    /// The value of a field that must occur exactly once.
    pub fn one(&self, name: &str, what: &str) -> Result<&str> {
        let mut all = self.all(name);
        match (all.next(), all.next()) {
            (Some(value), None) => Ok(value),
            (None, _) => Err(Error::malformed(format!("has no {name}")).structure(what)),
            (Some(_), Some(_)) => {
                Err(Error::malformed(format!("has {name} more than once")).structure(what))
            }
        }
    }

    /// The lines of a field, unchanged.
    pub fn lines(&self, name: &str) -> String {
        let own = self.fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        own.filter_map(|field| self.text.get(field.lines.clone())).map(with_end).collect()
    }

    /// The text without all fields called `without`, and with `added` behind the last remaining one.
    pub fn changed(&self, without: &[&str], added: &str) -> String {
        let fields = self
            .fields
            .iter()
            .filter(|field| !without.iter().any(|name| field.name.eq_ignore_ascii_case(name)));
        let mut text: String =
            fields.filter_map(|field| self.text.get(field.lines.clone())).map(with_end).collect();
        text.push_str(added);
        text.push_str(self.text.get(self.end..).unwrap_or_default());
        text
    }
}

/// Adds a line feed at the end of `lines`, unless there is one.
fn with_end(lines: &str) -> String {
    if lines.ends_with('\n') { lines.to_owned() } else { format!("{lines}\n") }
}

fn field(line: &str, lines: Range<usize>) -> Option<Field> {
    let (name, value) = line.split_once(':')?;
    let is_field =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    is_field.then(|| Field { name: name.to_owned(), value: value.trim().to_owned(), lines })
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
}
