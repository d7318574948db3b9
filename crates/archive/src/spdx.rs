//! SPDX documents: a software bill of materials for a set of packages.
//!
//! | key of the document | what it holds |
//! |---|---|
//! | `spdxVersion`, `dataLicense`, `SPDXID` | `SPDX-2.3`, `CC0-1.0`, `SPDXRef-DOCUMENT` |
//! | `name`, `documentNamespace` | free text; a URI that no other document has, here made of its digest |
//! | `creationInfo` | `created` as `YYYY-MM-DDThh:mm:ssZ`; `creators`, `Tool: name-version` |
//! | `packages` | [`SpdxPackage`]: what was made, and what it was made from |
//! | `files` | [`File`]: path below `./`, SHA-1 (which SPDX asks for) and SHA-256 |
//! | `relationships` | [`Relationship`]: `DESCRIBES`, `CONTAINS`, `GENERATED_FROM` |
//!
//! Source: SPDX specification 2.3 (JSON, Annex D.1), RFC 9562 for the UUID in the namespace. Optional keys
//! without information are left out. Only regular files are files to SPDX: links and folders are not.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::iter;

use serde::{Deserialize, Serialize};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use spdx::identifiers::LICENSES;

use rockpack_core::content::{DigestingWriter, hex};

/// The value for unknown information.
pub const NO_ASSERTION: &str = "NOASSERTION";

/// The element of the document itself.
pub const DOCUMENT: &str = "SPDXRef-DOCUMENT";

const TOOL: &str = "Tool: ";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    pub spdx_version: String,
    /// Licence of the document itself, always `CC0-1.0`.
    pub data_license: String,
    /// The id of the document, [`DOCUMENT`].
    #[serde(rename = "SPDXID")]
    pub id: String,
    pub name: String,
    /// A URI that no other document has.
    pub document_namespace: String,
    pub creation_info: CreationInfo,
    /// Packages by file name, then artifacts by shard and name.
    pub packages: Vec<SpdxPackage>,
    pub files: Vec<File>,
    pub relationships: Vec<Relationship>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreationInfo {
    /// The time, such as `2025-01-01T00:00:00Z`.
    pub created: String,
    /// The tools, such as `Tool: rockpack-0.1.0`.
    pub creators: Vec<String>,
}

/// A distributed package, or an artifact that packages were made from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpdxPackage {
    /// The id, `SPDXRef-…`.
    #[serde(rename = "SPDXID")]
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_info: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_file_name: Option<String>,
    /// The purpose: `INSTALL`, `ARCHIVE`, `OTHER`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_package_purpose: Option<String>,
    /// The supplier, `Organization: …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supplier: Option<String>,
    pub download_location: String,
    pub files_analyzed: bool,
    /// A digest over the files, if they are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_verification_code: Option<VerificationCode>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checksums: Vec<SpdxChecksum>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    /// The licence that the document's author found.
    pub license_concluded: String,
    /// The licence that the package states: an expression, or [`NO_ASSERTION`].
    pub license_declared: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license_comments: Option<String>,
    pub copyright_text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerificationCode {
    /// SHA-1 in hex.
    pub package_verification_code_value: String,
}

impl VerificationCode {
    /// The code of files with these SHA-1s: the SHA-1 of their hex forms, sorted and joined (SPDX 2.3, 7.9).
    pub fn of(mut files: Vec<[u8; 20]>) -> Self {
        files.sort_unstable();
        let joined: String = files.iter().map(|file| hex(file)).collect();
        Self { package_verification_code_value: hex(&Sha1::digest(joined)) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// The path, such as `./opt/rocm/lib/libx.so`.
    pub file_name: String,
    /// The id, `SPDXRef-…`.
    #[serde(rename = "SPDXID")]
    pub id: String,
    pub checksums: Vec<SpdxChecksum>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpdxChecksum {
    /// The algorithm, `SHA1` or `SHA256`.
    pub algorithm: String,
    pub checksum_value: String,
}

impl SpdxChecksum {
    pub fn sha1(digest: &[u8; 20]) -> Self {
        Self { algorithm: "SHA1".to_owned(), checksum_value: hex(digest) }
    }

    pub fn sha256(digest: &[u8; 32]) -> Self {
        Self { algorithm: "SHA256".to_owned(), checksum_value: hex(digest) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Relationship {
    pub spdx_element_id: String,
    /// The type: `DESCRIBES`, `CONTAINS` or `GENERATED_FROM`.
    pub relationship_type: String,
    pub related_spdx_element: String,
}

impl Document {
    pub fn new(name: String, created: String, tool: &str) -> Self {
        let creators = vec![format!("{TOOL}{tool}")];
        Self {
            spdx_version: "SPDX-2.3".to_owned(),
            data_license: "CC0-1.0".to_owned(),
            id: DOCUMENT.to_owned(),
            name,
            document_namespace: String::new(),
            creation_info: CreationInfo { created, creators },
            packages: Vec::new(),
            files: Vec::new(),
            relationships: Vec::new(),
        }
    }

    pub fn relate(&mut self, one: &str, relationship: &str, other: &str) {
        self.relationships.push(Relationship {
            spdx_element_id: one.to_owned(),
            relationship_type: relationship.to_owned(),
            related_spdx_element: other.to_owned(),
        });
    }

    /// Sets the namespace: a UUID (version 8) computed from the rest of the document. The same document has
    /// the same namespace everywhere, and no other document has it.
    pub fn name_space(&mut self) -> io::Result<()> {
        self.document_namespace.clear();
        let mut writer = DigestingWriter::<_, Sha256>::new(io::sink());
        self.write(&mut writer)?;
        self.document_namespace = format!("urn:uuid:{}", uuid(writer.digest.finalize().into()));
        Ok(())
    }

    /// Reads a document from JSON. Unknown keys are ignored.
    pub fn read(source: impl Read) -> serde_json::Result<Self> {
        serde_json::from_reader(source)
    }

    pub fn write(&self, mut sink: impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut sink, self)?;
        sink.write_all(b"\n")
    }
}

/// A UUID of the first 16 bytes of a digest, with the version and variant bits of RFC 9562 (5.8).
fn uuid(digest: [u8; 32]) -> String {
    let mut bytes: [u8; 16] = digest.first_chunk().copied().unwrap_or_default();
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex(&bytes);
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}

/// Makes an id of legal characters (letters, digits, `.` and `-`) that is not in `taken`, and adds it there.
pub fn new_id(kind: &str, name: &str, taken: &mut BTreeSet<String>) -> String {
    let legal = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' });
    let first: String = format!("SPDXRef-{kind}-").chars().chain(legal).collect();
    let numbered = (2_u64..).map(|number| format!("{first}-{number}"));
    let mut ids = iter::once(first.clone()).chain(numbered);
    ids.find(|id| taken.insert(id.clone())).unwrap_or_default()
}

/// Whether `text` is a licence expression and SPDX knows all its parts.
pub fn is_known_license(text: &str) -> bool {
    spdx::Expression::parse(text).is_ok_and(|expression| {
        expression.requirements().all(|required| required.req.license.id().is_some())
    })
}

/// Whether Python's tools take `text` as a licence expression: in any case, but for references.
pub fn is_python_license(text: &str) -> bool {
    let mode = spdx::ParseMode {
        allow_deprecated: true,
        allow_postfix_plus_on_gpl: true,
        ..spdx::ParseMode::STRICT
    };
    let words = text.split_inclusive([' ', '(', ')', '+']).map(|part| {
        let word = part.trim_end_matches([' ', '(', ')', '+']);
        let known = LICENSES.iter().find(|known| known.name.eq_ignore_ascii_case(word));
        known.map_or(part.to_owned(), |known| part.replace(word, known.name))
    });
    let text: String = words.collect();
    let others = ["DocumentRef-", "AdditionRef-", "NOASSERTION"];
    !others.iter().any(|it| text.contains(it)) && spdx::Expression::parse_mode(&text, mode).is_ok()
}

/// Whether `source` is a document that any version of `tool` made. Fails if `source` cannot be read.
pub fn is_made_by(tool: &str, source: impl Read) -> io::Result<bool> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        creation_info: CreationInfo,
    }
    match serde_json::from_reader::<_, Head>(source) {
        Ok(Head { creation_info }) => {
            let maker = format!("{TOOL}{tool}-");
            Ok(creation_info.creators.iter().any(|creator| creator.starts_with(&maker)))
        }
        Err(error) if error.is_io() => Err(error.into()),
        Err(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_legal_characters_and_are_all_different() {
        let mut taken = BTreeSet::new();
        assert_eq!(
            new_id("Package", "rocm-blas_7.1~rc1-1_amd64.deb", &mut taken),
            "SPDXRef-Package-rocm-blas-7.1-rc1-1-amd64.deb"
        );
        assert_eq!(
            new_id("Package", "rocm-blas_7.1+rc1-1_amd64.deb", &mut taken),
            "SPDXRef-Package-rocm-blas-7.1-rc1-1-amd64.deb-2"
        );
    }

    #[test]
    fn only_licences_that_spdx_knows_are_expressions() {
        for known in ["MIT", "MIT AND (Apache-2.0 WITH LLVM-exception OR NCSA)"] {
            assert!(is_known_license(known), "{known}");
        }
        for other in
            ["", "Proprietary", "MIT and more", "LicenseRef-Unstated", "MIT AND LicenseRef-x"]
        {
            assert!(!is_known_license(other), "{other}");
        }
    }

    #[test]
    fn the_namespace_follows_from_the_rest() {
        let (one, other) = (named_document("a"), named_document("b"));
        assert_eq!(one, named_document("a"));
        assert_ne!(one.document_namespace, other.document_namespace);
        // The version and variant of the UUID.
        let uuid = one.document_namespace.strip_prefix("urn:uuid:").unwrap();
        assert!(uuid.len() == 36 && &uuid[14..15] == "8", "{uuid}");
        assert!(matches!(&uuid[19..20], "8" | "9" | "a" | "b"), "{uuid}");
    }

    fn named_document(name: &str) -> Document {
        let mut document = Document::new(name.to_owned(), String::new(), "rockpack-0");
        document.name_space().unwrap();
        document
    }

    #[test]
    fn documents_of_others_are_told_apart() {
        let mut bytes = Vec::new();
        Document::new("x".to_owned(), String::new(), "rockpack-0.1.0").write(&mut bytes).unwrap();
        assert!(is_made_by("rockpack", &bytes[..]).unwrap());
        assert!(!is_made_by("rock", &bytes[..]).unwrap());
        for other in [&b"{}"[..], b"", b"[1, 2]", &bytes[..bytes.len() - 3]] {
            assert!(!is_made_by("rockpack", other).unwrap());
        }
    }
}
