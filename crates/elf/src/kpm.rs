//! The manifest of a component's kernel archives (`.kpm`), part of its host package.
//!
//! ```text
//! MessagePack map {
//!   "format_version": 1,
//!   "component_name": str,         e.g. "blas_lib"
//!   "prefix": str,                 install-relative directory above that of the archives, e.g. "lib";
//!                                  "." for the prefix itself
//!   "kpack_files": { "<base arch>": {
//!     "architecture": str,         the base arch again
//!     "file": str,                 e.g. "blas_lib_gfx1100.kpack"; read by loaders
//!     "filename": str,             the same; the name that is documented
//!     "size": bytes,
//!     "kernel_count": n } } }
//! ```
//!
//! Source: AMD's `rocm_kpack`. For a short period, loaders read `file`; the documentation says `filename`.
//! rockpack reads either and writes both.

use std::collections::BTreeMap;
use std::io::{self, BufReader};

use rmpv::Value;
use serde::Serialize;

use crate::message_pack::{MapFields, decode, encode, map};
use crate::message_pack_stream::{Skip, Token, TokenReader};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Place, Result};

const VERSION: u64 = 1;
/// Largest manifest in bytes: room for thousands of archs, where a few hundred bytes are usual.
const MANIFEST_LIMIT: u64 = 1 << 20;
const STRUCTURE: &str = "kpm manifest";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// The component, e.g. `blas_lib`.
    pub component_name: String,
    /// Install-relative directory that holds `.kpack/`.
    pub prefix: String,
    pub archives: BTreeMap<String, ManifestArchive>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestArchive {
    /// File name, without a directory.
    pub file: String,
    pub size: u64,
    /// Number of code objects that wrappers refer to in the archive.
    pub kernel_count: u64,
}

impl Manifest {
    /// The archives, sorted by generation of their arch: gfx942 before gfx1100.
    pub fn by_generation(&self) -> Vec<(&str, &ManifestArchive)> {
        let mut archives: Vec<_> = self.archives.iter().map(|(k, v)| (k.as_str(), v)).collect();
        archives.sort_by_key(|(arch, _)| {
            let processor = arch.split('-').next().unwrap_or_default();
            (processor.len(), *arch)
        });
        archives
    }

    pub fn to_content(&self) -> Result<Content> {
        let files = self
            .by_generation()
            .into_iter()
            .map(|(arch, archive)| (arch.into(), archive.to_value(arch)));
        let bytes = encode(&map([
            ("format_version", VERSION.into()),
            ("component_name", self.component_name.as_str().into()),
            ("prefix", self.prefix.as_str().into()),
            ("kpack_files", Value::Map(files.collect())),
        ]))?;
        Ok(Content::of_bytes(bytes))
    }

    /// Whether `content` is a manifest: a MessagePack value with a key that only manifests have. Damage
    /// after that key does not matter.
    pub fn is_manifest(content: &Content) -> Result<bool> {
        if content.len() > MANIFEST_LIMIT {
            return Ok(false);
        }
        let mut tokens = TokenReader::new(BufReader::new(content.reader()));
        has_own_key(&mut tokens).or_else(|fault| match Error::from_io(fault) {
            Ok(error) => Err(error.at(&content.place(0))),
            Err(_) => Ok(false),
        })
    }

    pub fn parse(content: &Content) -> Result<Self> {
        let place = content.place(0);
        let value = decode(content, MANIFEST_LIMIT, STRUCTURE)?;
        let fields = MapFields::of(&value, STRUCTURE, &place)?;
        let version = fields.number("format_version")?;
        if version != VERSION {
            let message = format!("format_version {version} is not known, only {VERSION} is");
            return Err(Error::unsupported(message).structure(STRUCTURE).at(&place));
        }
        let files = MapFields::of(fields.required("kpack_files")?, STRUCTURE, &place)?;
        let archives = files.iter().map(|(arch, value)| {
            Ok((arch.to_owned(), ManifestArchive::of_value(arch, value, &place)?))
        });
        Ok(Self {
            component_name: fields.text("component_name")?.to_owned(),
            prefix: fields.text("prefix")?.to_owned(),
            archives: archives.collect::<Result<_>>()?,
        })
    }
}

/// Keys of manifests that no other kind of file has.
const OWN_KEYS: [&[u8]; 2] = [b"kpack_files", b"component_name"];

fn has_own_key(tokens: &mut TokenReader<impl Skip>) -> io::Result<bool> {
    let Token::Map(len) = tokens.token()? else {
        return Ok(false);
    };
    for _ in 0..len {
        // Manifests have text keys.
        let Token::Text(len) = tokens.token()? else {
            return Ok(false);
        };
        if u64::from(len) > MANIFEST_LIMIT {
            return Ok(false);
        }
        let mut key = vec![0; len as usize];
        tokens.read(&mut key)?;
        if OWN_KEYS.contains(&key.as_slice()) {
            return Ok(true);
        }
        tokens.skip_value()?;
    }
    Ok(false)
}

impl ManifestArchive {
    fn to_value(&self, arch: &str) -> Value {
        map([
            ("architecture", arch.into()),
            ("file", self.file.as_str().into()),
            ("filename", self.file.as_str().into()),
            ("size", self.size.into()),
            ("kernel_count", self.kernel_count.into()),
        ])
    }

    fn of_value(arch: &str, value: &Value, place: &Place) -> Result<Self> {
        let fields = MapFields::of(value, &format!("{STRUCTURE}, {arch}"), place)?;
        let named = fields.text("architecture")?;
        if named != arch {
            return Err(fields.fault(format!("has the field `architecture` {named}")));
        }
        let file = match (fields.optional("file"), fields.optional("filename")) {
            (Some(file), Some(name)) if file != name => {
                return Err(fields.fault(format!("names both {file} and {name}")));
            }
            (Some(_), _) => fields.text("file")?,
            (None, _) => fields.text("filename")?,
        };
        Ok(Self {
            file: file.to_owned(),
            size: fields.number("size")?,
            kernel_count: fields.number("kernel_count")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let rows = [
            ("gfx1100", "blas_lib_gfx1100.kpack", 3_890_000),
            ("gfx942", "blas_lib_gfx942.kpack", 3_940_000),
        ];
        let archives = rows.map(|(arch, file, size)| {
            (arch.to_owned(), ManifestArchive { file: file.to_owned(), size, kernel_count: 4 })
        });
        Manifest {
            component_name: "blas_lib".to_owned(),
            prefix: "lib".to_owned(),
            archives: archives.into(),
        }
    }

    fn bytes(content: &Content) -> Vec<u8> {
        content.read_vec(0..content.len(), 1 << 20, "test").unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let written = manifest().to_content().unwrap();
        assert_eq!(Manifest::parse(&written).unwrap(), manifest());
    }

    #[test]
    fn a_manifest_cut_anywhere_is_refused() {
        let whole = bytes(&manifest().to_content().unwrap());
        for len in 0..whole.len() {
            let cut = Content::of_bytes(&whole[..len]);
            assert!(Manifest::parse(&cut).is_err(), "{len}");
        }
        let longer = Content::of_bytes([whole, vec![0]].concat());
        assert!(Manifest::parse(&longer).is_err());
    }

    #[test]
    fn a_manifest_is_told_by_its_keys() {
        let whole = bytes(&manifest().to_content().unwrap());
        let names = whole.windows(14).position(|window| window == b"component_name").unwrap() + 14;
        for len in 0..whole.len() {
            assert_eq!(is_manifest(&Content::of_bytes(&whole[..len])), len >= names, "{len}");
        }
        assert!(is_manifest(&Content::of_bytes(whole)));
        assert!(is_manifest(&content_with_key("kpack_files".into())));
        for key in ["solutions_blob".into(), "kpack_filesx".into(), 7.into()] {
            assert!(!is_manifest(&content_with_key(key)));
        }
        let inside = Value::Map(vec![("x".into(), map([("kpack_files", Value::Nil)]))]);
        assert!(!is_manifest(&Content::of_bytes(encode(&inside).unwrap())));
        assert!(!is_manifest(&Content::of_bytes(*b"\xdf\xff\xff\xff\xff\xdb\xff\xff\xff\xff")));
    }

    fn is_manifest(content: &Content) -> bool {
        Manifest::is_manifest(content).unwrap()
    }

    fn content_with_key(key: Value) -> Content {
        let fields = vec![("format_version".into(), 2.into()), (key, Value::Nil)];
        Content::of_bytes(encode(&Value::Map(fields)).unwrap())
    }

    #[test]
    fn either_name_of_the_file_is_enough_and_two_must_agree() {
        assert_eq!(archive_with(&[("file", "a".into())]).unwrap().file, "a");
        assert_eq!(archive_with(&[("filename", "b".into())]).unwrap().file, "b");
        assert!(archive_with(&[("file", "a".into()), ("filename", "b".into())]).is_err());
        assert!(archive_with(&[]).is_err());
    }

    fn archive_with(fields: &[(&'static str, Value)]) -> Result<ManifestArchive> {
        let mut all = vec![("architecture", "gfx942".into())];
        all.extend(fields.iter().cloned());
        all.extend([("size", 1.into()), ("kernel_count", 1.into())]);
        ManifestArchive::of_value("gfx942", &map(all), &Place::default())
    }
}
