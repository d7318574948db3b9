//! The file `Release`: what the suite is, until when it is valid, and the digests of its indexes.
//!
//! Dates are RFC 5322's in UTC, as in `Fri, 21 Nov 2025 12:00:00 UTC`. Paths are relative to the
//! folder of the file. Refused when writing: values with line breaks.

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;

use crate::error::{Error, Kind, Result};
use crate::formats::deb::parse_fields;

/// An index file as `Release` lists it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexFile {
    /// Relative to the folder of `Release`.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// SHA-256 in hex.
    pub sha256: String,
    /// SHA-512 in hex.
    pub sha512: String,
}

/// The file `Release`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Release {
    /// Fields in their order, without those of digests.
    pub fields: Vec<(String, String)>,
    /// The indexes in the order of their paths.
    pub files: Vec<IndexFile>,
}

const DATE_FORMAT: &str = "%a, %d %b %Y %H:%M:%S UTC";

/// A time in seconds since 1970 as `Release` writes it.
pub fn format_date(seconds: i64) -> Result<String> {
    let time = Timestamp::from_second(seconds).map_err(|error| {
        Error::new(Kind::Limit, format!("{seconds} is no time that can be written")).cause(error)
    })?;
    Ok(time.to_zoned(TimeZone::UTC).strftime(DATE_FORMAT).to_string())
}

/// The seconds since 1970 of a date of `Release`.
pub fn parse_date(text: &str) -> Result<i64> {
    // `UTC` and `GMT` are the names that apt knows, beside `+0000`.
    let zone = [" UTC", " GMT", " +0000"].iter().find_map(|zone| text.strip_suffix(zone));
    let parsed = zone.and_then(|rest| {
        let time = strtime::parse("%a, %d %b %Y %H:%M:%S", rest).ok()?;
        time.to_datetime().ok()?.to_zoned(TimeZone::UTC).ok()
    });
    let zoned = parsed.ok_or_else(|| fault(format!("`{}` is no date", text.escape_debug())))?;
    Ok(zoned.timestamp().as_second())
}

impl Release {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// The text of the file.
    pub fn render(&self) -> Result<String> {
        let mut text = String::new();
        for (name, value) in &self.fields {
            if value.trim().is_empty() || value.contains(char::is_control) {
                return Err(fault(format!("{name} is empty or has control characters")));
            }
            text.push_str(&format!("{name}: {value}\n"));
        }
        type Digest = fn(&IndexFile) -> &String;
        let digests: [(&str, Digest); 2] = [("SHA256", |f| &f.sha256), ("SHA512", |f| &f.sha512)];
        for (name, digest) in digests {
            text.push_str(&format!("{name}:\n"));
            for file in &self.files {
                text.push_str(&format!(" {} {:>8} {}\n", digest(file), file.size, file.path));
            }
        }
        Ok(text)
    }

    /// Reads the file; both digests must list the same files.
    pub fn parse(text: &str) -> Result<Self> {
        let mut release = Self::default();
        let fields = parse_fields(text)?;
        let rows = |name: &str| -> Result<Vec<(String, u64, String)>> {
            let list = fields.get(name).map(String::as_str).unwrap_or_default();
            list.lines().filter(|line| !line.trim().is_empty()).map(row).collect()
        };
        let (short, long) = (rows("SHA256")?, rows("SHA512")?);
        if short.len() != long.len() {
            return Err(fault("lists different files under SHA256 and SHA512".to_owned()));
        }
        for ((path, size, sha256), (other, other_size, sha512)) in short.into_iter().zip(long) {
            if (&path, size) != (&other, other_size) {
                return Err(fault(format!("lists {path} and {other} in one place")));
            }
            release.files.push(IndexFile { path, size, sha256, sha512 });
        }
        let rest = fields.into_iter().filter(|(name, _)| name != "SHA256" && name != "SHA512");
        release.fields = rest.collect();
        Ok(release)
    }
}

fn row(line: &str) -> Result<(String, u64, String)> {
    let mut words = line.split_whitespace();
    let row = (words.next(), words.next().and_then(|size| size.parse().ok()), words.next());
    match (row, words.next()) {
        ((Some(digest), Some(size), Some(path)), None) => {
            Ok((path.to_owned(), size, digest.to_owned()))
        }
        _ => Err(fault(format!("`{}` is no digest, size and path", line.escape_debug()))),
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
            sha512: "bb".into(),
        };
        let fields = vec![("Date".to_owned(), format_date(1_700_000_000).unwrap())];
        let release = Release { fields, files: vec![file] };
        let text = release.render().unwrap();
        assert!(text.starts_with("Date: Tue, 14 Nov 2023 22:13:20 UTC\nSHA256:\n aa "), "{text}");
        assert_eq!(Release::parse(&text).unwrap(), release);
        assert_eq!(parse_date(release.field("Date").unwrap()).unwrap(), 1_700_000_000);
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in ["", "yesterday", "Tue, 14 Nov 2023 22:13:20 CET", "2023-11-14 UTC"] {
            assert!(parse_date(text).is_err(), "{text}");
        }
        assert!(format_date(i64::MAX).is_err());
    }
}
