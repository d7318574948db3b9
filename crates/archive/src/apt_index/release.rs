//! The file `Release`: the description of the suite, the end of its validity, and the digests of its indexes.
//!
//! Dates are RFC 5322's in UTC, as in `Fri, 21 Nov 2025 12:00:00 UTC`. Paths are relative to the
//! folder of the file. Refused when writing: values with line breaks.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::deb::{ControlFields, excerpt, parse_fields};
use rockpack_core::error::{Error, Kind, Result};

/// An index file in `Release`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IndexFile {
    /// Path, relative to the folder of `Release`.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 in hex.
    pub sha256: String,
    /// SHA-512 in hex; `None` if `Release` does not list SHA-512.
    pub sha512: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Release {
    /// The fields in order, without those that list digests.
    pub fields: Vec<(String, String)>,
    /// The indexes, sorted by path.
    pub files: Vec<IndexFile>,
}

/// The field with the fingerprints of several keys that clients get; apt ignores it.
pub const KEYRING_KEYS: &str = "X-Keyring-Keys";

/// The fields that list files. Nobody trusts MD5 and SHA-1.
const DIGESTS: [&str; 4] = ["MD5Sum", "SHA1", "SHA256", "SHA512"];

/// Maximum number of files that are listed: more than ten times as many as in the largest distributions.
const FILES_MAX: usize = 100_000;

/// Formats a time in seconds since 1970 as `Release` does.
pub fn format_date(seconds: i64) -> Result<String> {
    let time = Timestamp::from_second(seconds).map_err(|error| {
        Error::new(Kind::Limit, format!("{seconds} is not a valid time")).cause(error)
    })?;
    Ok(time.to_zoned_datetime(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S UTC").to_string())
}

/// Parses a date of `Release` into seconds since 1970.
pub fn parse_date(text: &str) -> Result<i64> {
    // apt accepts the names `UTC` and `GMT`, and `+0000`.
    let zone = [" UTC", " GMT", " +0000"].iter().find_map(|zone| text.strip_suffix(zone));
    let parsed = zone.and_then(|rest| {
        let time = strtime::parse("%a, %d %b %Y %H:%M:%S", rest).ok()?;
        time.to_datetime().ok()?.to_zoned_datetime(TimeZone::UTC).ok()
    });
    let zoned = parsed.ok_or_else(|| fault(format!("`{}` is not a date", text.escape_debug())))?;
    Ok(zoned.timestamp().as_second())
}

impl Release {
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn render(&self) -> Result<String> {
        let mut text = String::new();
        for (name, value) in &self.fields {
            // Clients leave out blanks at the ends of lines when they check a signature.
            let is_open = value.is_empty() || value.trim_end() != value;
            if is_open || value.contains(char::is_control) {
                return Err(fault(format!(
                    "{name} is empty, ends blank or has control characters"
                )));
            }
            text.push_str(&format!("{name}: {value}\n"));
        }
        type Digest = fn(&IndexFile) -> Option<&String>;
        let digests: [(&str, Digest); 2] =
            [("SHA256", |f| Some(&f.sha256)), ("SHA512", |f| f.sha512.as_ref())];
        for (name, digest) in digests {
            let files = self.files.iter().filter_map(|file| Some((digest(file)?, file)));
            text.push_str(&format!("{name}:\n"));
            for (digest, file) in files {
                text.push_str(&format!(" {digest} {:>8} {}\n", file.size, file.path));
            }
        }
        Ok(text)
    }

    /// Parses the file. It must list SHA-256, and SHA-512 for no other files. Weaker digests are ignored.
    pub fn parse(text: &str) -> Result<Self> {
        let mut release = Self::default();
        let fields = parse_fields(text)?;
        if fields.get("SHA256").is_none() {
            return Err(fault("lists no SHA-256".to_owned()));
        }
        let mut long = rows(&fields, "SHA512")?;
        for (path, (size, sha256)) in rows(&fields, "SHA256")? {
            let sha512 = match long.remove(&path) {
                Some((other, _)) if other != size => {
                    let message = format!("lists `{}` in two sizes", path.escape_debug());
                    return Err(fault(message));
                }
                found => found.map(|(_, sha512)| sha512),
            };
            release.files.push(IndexFile { path, size, sha256, sha512 });
        }
        if let Some((path, _)) = long.first_key_value() {
            let message = format!("lists `{}` without SHA-256", path.escape_debug());
            return Err(fault(message));
        }
        let is_digest = |name: &str| DIGESTS.iter().any(|list| list.eq_ignore_ascii_case(name));
        release.fields = Vec::from_iter(fields.to_map());
        release.fields.retain(|(name, _)| !is_digest(name));
        Ok(release)
    }
}

/// Size and digest of every path in the field `name`. Clients read one row of a path and ignore the others, so
/// duplicates must not differ.
fn rows(fields: &ControlFields, name: &str) -> Result<BTreeMap<String, (u64, String)>> {
    let list = fields.get(name).map_or("", String::as_str);
    let mut rows = BTreeMap::new();
    for line in list.lines().filter(|line| !line.trim().is_empty()) {
        if rows.len() == FILES_MAX {
            let message = format!("lists more than {FILES_MAX} files");
            let hint = "no distribution has as many: publish the suite again";
            return Err(Error::new(Kind::Limit, message).structure("Release").hint(hint));
        }
        let (path, row) = row(line)?;
        if rows.insert(path.clone(), row.clone()).is_some_and(|other| other != row) {
            return Err(fault(format!(
                "lists `{}` in two sizes or with two digests",
                path.escape_debug()
            )));
        }
    }
    Ok(rows)
}

fn row(line: &str) -> Result<(String, (u64, String))> {
    let mut words = line.split_whitespace();
    let row = (words.next(), words.next().and_then(|size| size.parse().ok()), words.next());
    match (row, words.next()) {
        ((Some(digest), Some(size), Some(path)), None) => {
            Ok((path.to_owned(), (size, digest.to_owned())))
        }
        _ => Err(fault(format!("`{}` is not a digest, a size and a path", excerpt(line)))),
    }
}

fn fault(message: String) -> Error {
    Error::malformed(message).structure("Release")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_goes_out_and_comes_back() {
        let file = IndexFile {
            path: "main/binary-amd64/Packages".into(),
            size: 12,
            sha256: "aa".into(),
            sha512: Some("bb".into()),
        };
        let fields = vec![("Date".to_owned(), format_date(1_700_000_000).unwrap())];
        let release = Release { fields, files: vec![file] };
        let text = release.render().unwrap();
        assert!(text.starts_with("Date: Tue, 14 Nov 2023 22:13:20 UTC\nSHA256:\n aa "), "{text}");
        assert_eq!(Release::parse(&text).unwrap(), release);
        assert_eq!(parse_date(release.field("Date").unwrap()).unwrap(), 1_700_000_000);
    }

    #[test]
    fn an_index_is_listed_once_or_twice_the_same() {
        let (zeros, ones) = (" 00 12 main/Packages\n", " 11 12 main/Packages\n");
        let longer = " 00 13 main/Packages\n";
        let twice = parse_lists(&[zeros, zeros], &[ones, ones]).unwrap();
        assert_eq!(twice, parse_lists(&[zeros], &[ones]).unwrap());
        for (short, long) in [
            (&[zeros][..], &[zeros, ones][..]),
            (&[zeros, ones], &[zeros]),
            (&[zeros], &[zeros, longer]),
            (&[zeros, longer], &[]),
        ] {
            let error = parse_lists(short, long).unwrap_err().to_string();
            assert!(error.contains("in two sizes or with two digests"), "{error}");
        }
        let error = parse_lists(&[zeros], &[longer]).unwrap_err().to_string();
        assert!(error.contains("lists `main/Packages` in two sizes"), "{error}");
    }

    fn parse_lists(short: &[&str], long: &[&str]) -> Result<Release> {
        Release::parse(&format!("SHA256:\n{}SHA512:\n{}", short.concat(), long.concat()))
    }

    #[test]
    fn a_release_lists_no_endless_files() {
        assert_eq!(parse_many(FILES_MAX).unwrap().files.len(), FILES_MAX);
        let error = parse_many(FILES_MAX + 1).unwrap_err();
        assert_eq!(error.kind(), Kind::Limit);
        assert!(error.hint_text().is_some());
    }

    fn parse_many(count: usize) -> Result<Release> {
        let rows: String = (0..count).map(|at| format!(" aa 1 {at}\n")).collect();
        Release::parse(&format!("SHA256:\n{rows}"))
    }

    #[test]
    fn names_of_lists_and_fields_have_no_case() {
        let release = Release::parse("date: x\nsha256:\n aa 12 a\nSha512:\n bb 12 a\n").unwrap();
        assert_eq!(release.field("Date"), Some("x"));
        assert_eq!(release.fields.len(), 1);
        assert_eq!(release.files[0].sha512.as_deref(), Some("bb"));
        assert!(Release::parse("SHA256:\n aa 12 a\nSHA512:\n bb 12 a\nsha512:\n").is_err());
    }

    #[test]
    fn invalid_dates_are_refused() {
        for text in ["", "yesterday", "Tue, 14 Nov 2023 22:13:20 CET", "2023-11-14 UTC"] {
            assert!(parse_date(text).is_err(), "{text}");
        }
        assert!(format_date(i64::MAX).is_err());
    }
}
