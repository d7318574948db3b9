//! `repomd.xml`: the one file that makes the lists valid.

use quick_xml::events::BytesText;
use serde::{Deserialize, Serialize};

use super::xml::{Xml, root, text};
use rockpack_core::error::Result;

/// A list as `repomd.xml` names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// `primary`, `filelists` or `other`.
    pub kind: String,
    /// Path relative to the folder that holds `repodata`.
    pub path: String,
    /// SHA-256 of the file in hex.
    pub sha256: String,
    /// Bytes of the file.
    pub size: u64,
    /// SHA-256 of the uncompressed content, in hex.
    pub open_sha256: String,
    /// Bytes of the uncompressed content.
    pub open_size: u64,
}

/// The prefix of a key's fingerprint in a tag of the repository: a key that clients get.
const KEYRING_KEY: &str = "keyring-key:";

/// The file `repomd.xml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repomd {
    /// Time in seconds since 1970; clients prefer the newer one.
    pub revision: i64,
    /// Fingerprints of the keys that clients get; empty to name none.
    pub keys: Vec<String>,
    /// The lists.
    pub data: Vec<DataFile>,
}

impl Repomd {
    /// The bytes of the file.
    pub fn render(&self) -> Result<Vec<u8>> {
        let spaces = [
            ("xmlns", "http://linux.duke.edu/metadata/repo"),
            ("xmlns:rpm", "http://linux.duke.edu/metadata/rpm"),
        ];
        let revision = self.revision.to_string();
        root("repomd", spaces.into_iter(), |xml| {
            text(xml, "revision", &revision)?;
            if !self.keys.is_empty() {
                xml.create_element("tags").write_inner_content(|xml| {
                    let mut keys = self.keys.iter().map(|key| format!("{KEYRING_KEY}{key}"));
                    keys.try_for_each(|key| text(xml, "repo", &key))
                })?;
            }
            self.data.iter().try_for_each(|file| data(xml, file, &revision))
        })
    }
}

fn data(xml: &mut Xml, file: &DataFile, revision: &str) -> std::io::Result<()> {
    let element = xml.create_element("data").with_attribute(("type", file.kind.as_str()));
    element.write_inner_content(|xml| properties(xml, file, revision)).map(drop)
}

fn properties(xml: &mut Xml, file: &DataFile, revision: &str) -> std::io::Result<()> {
    for (name, digest) in [("checksum", &file.sha256), ("open-checksum", &file.open_sha256)] {
        xml.create_element(name)
            .with_attribute(("type", "sha256"))
            .write_text_content(BytesText::new(digest))?;
    }
    xml.create_element("location").with_attribute(("href", file.path.as_str())).write_empty()?;
    text(xml, "timestamp", revision)?;
    text(xml, "size", &file.size.to_string())?;
    text(xml, "open-size", &file.open_size.to_string())
}
