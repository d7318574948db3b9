//! RECORD: the members of a wheel with their digests.
//!
//! A row is `path,algorithm=digest,size`, in CSV as Python's `csv` module writes it: a field with a comma, a
//! quotation mark or a line break is quoted, and quotation marks inside it are doubled.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use derive_more::Display;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use crate::ar::plain_number;
use rockpack_core::error::{Error, Result};

const WHAT: &str = "RECORD";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The rows by path, each once.
    pub rows: BTreeMap<String, RecordRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordRow {
    /// The digest; `None` if RECORD gives none.
    pub digest: Option<RecordDigest>,
    /// Size in bytes; `None` if RECORD gives none.
    pub size: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordDigest {
    pub hash: HashName,
    pub bytes: Vec<u8>,
}

/// A hash function that RECORD may use: SHA-256 or a stronger one that `hashlib` always has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
#[display(rename_all = "lowercase")]
pub enum HashName {
    Sha256,
    Sha384,
    Sha512,
}

impl HashName {
    const ALL: [Self; 3] = [Self::Sha256, Self::Sha384, Self::Sha512];

    pub fn hasher(self) -> RecordHasher {
        match self {
            Self::Sha256 => Box::new(Sha256::new()),
            Self::Sha384 => Box::new(Sha384::new()),
            Self::Sha512 => Box::new(Sha512::new()),
        }
    }
}

/// A hasher of a member, for the function in RECORD.
pub type RecordHasher = Box<dyn sha2::digest::DynDigest>;

impl Record {
    /// Parses RECORD. A path twice is refused.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            Error::malformed("is not UTF-8").structure(WHAT).offset(error.valid_up_to() as u64)
        })?;
        let mut rows = BTreeMap::new();
        let mut rest = text;
        while !rest.is_empty() {
            let at = (text.len() - rest.len()) as u64;
            let (fields, after) = csv_row(rest).map_err(|why| fault_at(at, why))?;
            rest = after;
            let (path, row) = row(&fields).map_err(|why| fault_at(at, why))?;
            if let Some(path) = rows.insert(path.clone(), row).map(|_| path) {
                return Err(fault_at(at, format!("has {path} twice")));
            }
        }
        Ok(Self { rows })
    }
}

impl RecordRow {
    /// A row with the SHA-256 of a member.
    pub fn of(sha256: &[u8; 32], size: u64) -> Self {
        let digest = RecordDigest { hash: HashName::Sha256, bytes: sha256.to_vec() };
        Self { digest: Some(digest), size: Some(size) }
    }

    /// The line of the member at `path`.
    pub fn line(&self, path: &str) -> String {
        let text = |it: &RecordDigest| format!("{}={}", it.hash, URL_SAFE_NO_PAD.encode(&it.bytes));
        let digest = self.digest.as_ref().map(text);
        let size = self.size.map(|size| size.to_string());
        let path = if path.contains([',', '"', '\r', '\n']) {
            format!("\"{}\"", path.replace('"', "\"\""))
        } else {
            path.to_owned()
        };
        format!("{path},{},{}\n", digest.unwrap_or_default(), size.unwrap_or_default())
    }
}

fn fault_at(at: u64, why: impl Into<String>) -> Error {
    Error::malformed(why).structure(WHAT).offset(at)
}

fn row(fields: &[String]) -> std::result::Result<(String, RecordRow), String> {
    let [path, digest, size] = fields else {
        return Err(format!("has a row of {} fields, and rows have three", fields.len()));
    };
    if path.is_empty() {
        return Err("has a row without a path".to_owned());
    }
    let digest = match digest.as_str() {
        "" => None,
        digest => Some(record_digest(digest).map_err(|why| format!("has for {path} {why}"))?),
    };
    let stated = plain_number(size);
    if stated.is_none() && !size.is_empty() {
        return Err(format!("has a size for {path} that is not a number"));
    }
    Ok((path.clone(), RecordRow { digest, size: stated }))
}

fn record_digest(text: &str) -> std::result::Result<RecordDigest, String> {
    let (name, digest) =
        text.split_once('=').ok_or("a digest without the name of its hash function")?;
    let hash =
        HashName::ALL.into_iter().find(|hash| hash.to_string() == name).ok_or_else(|| {
            format!(
                "a digest by {name}; sha256, sha384 and sha512 are the ones that wheels may have"
            )
        })?;
    let len = hash.hasher().output_size();
    let decoded = URL_SAFE_NO_PAD.decode(digest).ok().filter(|bytes| bytes.len() == len);
    let bytes = decoded.ok_or_else(|| {
        let is_hex = digest.len() == 2 * len && digest.bytes().all(|b| b.is_ascii_hexdigit());
        let form = if is_hex { "in hexadecimal, not" } else { "that is not" };
        format!("a {hash} {form} url-safe base64 without padding")
    })?;
    Ok(RecordDigest { hash, bytes })
}

const FIELDS: usize = 3;

/// The fields of the first row of a text, and what follows it.
fn csv_row(text: &str) -> std::result::Result<(Vec<String>, &str), &'static str> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted)?,
            None => {
                let end = rest.find([',', '\r', '\n']).unwrap_or(rest.len());
                let (field, after) = rest.split_at(end);
                (field.to_owned(), after)
            }
        };
        fields.push(field);
        if fields.len() > FIELDS {
            return Err("has more than a path, a digest and a size");
        }
        let Some(next) = after.strip_prefix(',') else {
            let line_end = after.strip_prefix('\r').unwrap_or(after);
            let next_row = line_end.strip_prefix('\n').unwrap_or(line_end);
            let is_end = next_row.len() < after.len() || after.is_empty();
            return is_end.then_some((fields, next_row)).ok_or("has bytes after a quoted field");
        };
        rest = next;
    }
}

/// A field without its opening quotation mark, and the text after its closing one.
fn quoted_field(text: &str) -> std::result::Result<(String, &str), &'static str> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('"').ok_or("has a quoted field without an end")?;
        field.push_str(part);
        let Some(next) = after.strip_prefix('"') else { return Ok((field, after)) };
        field.push('"');
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";

    #[test]
    fn rows_round_trip() {
        for path in ["a/b.py", "a,b", "a\"b\".py", "a\nb", "ü"] {
            let row = RecordRow::of(&[7; 32], 12);
            let text = row.line(path);
            let record = Record::parse(text.as_bytes()).unwrap();
            assert_eq!(record.rows.get(path), Some(&row), "{text}");
        }
        let bare = RecordRow::default().line("x.dist-info/RECORD");
        assert_eq!(bare, "x.dist-info/RECORD,,\n");
        assert_eq!(Record::parse(bare.as_bytes()).unwrap().rows.len(), 1);
    }

    #[test]
    fn forms_of_other_writers_are_read() {
        let text = format!("a,{EMPTY},0\r\n\"b\",,\r\nc,,7");
        let record = Record::parse(text.as_bytes()).unwrap();
        let digest = record.rows["a"].digest.clone().unwrap();
        assert_eq!(digest.bytes, HashName::Sha256.hasher().finalize().into_vec());
        assert_eq!(record.rows["b"], RecordRow::default());
        assert_eq!(record.rows["c"].size, Some(7));
    }

    #[test]
    fn invalid_rows_are_refused() {
        let hex = format!("a,sha256={},0\n", "0".repeat(64));
        assert!(Record::parse(hex.as_bytes()).unwrap_err().full_text().contains("in hexadecimal"));
        for text in [
            "a,b\n",
            "a,,0,x\n",
            ",,0\n",
            "a,,0\n\nb,,0\n",
            "a,md5=x,0\n",
            "a,sha256,0\n",
            "a,sha256=x,0\n",
            "a,,-1\n",
            "a,,1x\n",
            "\"a,,0\n",
            "\"a\"b,,0\n",
            "a,,0\na,,0\n",
        ] {
            assert!(Record::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Record::parse(b"\xff,,0\n").is_err());
    }
}
