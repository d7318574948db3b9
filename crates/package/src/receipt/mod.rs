//! The receipt `packages.json`: the packages that a build wrote, and where every code object of its input
//! went.
//!
//! A build writes the receipt last, so a folder with a receipt holds a whole set. A reader who trusts its
//! signature can trust every package whose digest it states; without one, it proves nothing.

pub mod difference;
mod file_name;
mod finding;
mod folders;
mod lines;
pub mod listing;
mod part;
mod place;
mod refusals;
mod relation;
mod standing;
mod update;
pub mod wheels;

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use file_name::package_of_file;
pub use finding::{AcceptedFinding, FindingRecord, UnreadFinding};
pub use part::{
    DifferentParts, JoinFault, PartRecord, PlanBreach, SIGNATURE_ENDING, SetPart, file_name, join,
    part_of_file, part_of_sbom, sbom_name, signature_name, signature_path,
};
pub use place::CodeObjectPlace;
pub use relation::RelationRecord;
pub use standing::{KeptRecord, Standing};
pub use update::UpdateRecord;

use refusals::{refuse_prefix, require_name};
use rockpack_core::error::{Error, Kind, Result};

use crate::{Format, Import, MemberKind, RoleKind};
use rockpack_report::Findings;

/// File name of the receipt inside the output folder.
pub const FILE_NAME: &str = "packages.json";

/// Version of the receipt's schema; raised when a field changes its meaning. Receipts of later versions are
/// refused.
pub const SCHEMA: u32 = 4;

/// The oldest schema that is read. Its fields have other names, which are aliases here, and it lists paths in
/// another form.
const OLDEST_SCHEMA: u32 = 3;

/// A finished package set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The version of the schema: [`SCHEMA`].
    pub schema: u32,
    /// Version of rockpack that wrote the set.
    #[serde(alias = "generator")]
    pub rockpack_version: String,
    /// The upstream version of the set, with `~` before a pre-release: `7.1.0~rc1`.
    pub version: String,
    /// Release of the set.
    pub release: String,
    /// The install prefix, absolute.
    pub prefix: String,
    /// Time of every payload entry, in seconds since the epoch.
    pub content_date: i64,
    /// The part of the set that this receipt covers, and a description of the whole. Absent for a whole set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartRecord>,
    /// The packages, sorted by file name.
    pub packages: Vec<PackageRecord>,
    /// Every code object of the input that a package holds, sorted by place.
    pub code_objects: Vec<CodeObjectRecord>,
    /// Packages of earlier builds of the same version that the set keeps because they did not change. Their
    /// files are where those builds wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptRecord>,
    /// The SPDX document beside the receipt. For joined parts, those of all parts, sorted by file name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spdx: Vec<SpdxRecord>,
    /// Absolute install paths of the input that no package has because the set was limited to other
    /// components (`--only`), sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Every finding. Findings that the configuration accepts have the reason in `accepted`.
    pub findings: Vec<FindingRecord>,
}

/// One package file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageRecord {
    /// Format-independent name, e.g. `rocm-blas-gfx110x`; equal for a package's `.deb` and `.rpm`.
    pub id: String,
    /// The package format.
    pub format: Format,
    /// File name inside the output folder.
    pub file_name: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Installed size in bytes, as the package states it: a deb's Installed-Size (whole KiB per entry,
    /// folders and documents included) × 1024, an rpm's SIZE.
    pub installed_size: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// The role of the package in the set.
    pub role: RoleKind,
    /// The architecture group of a kernel package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The base archs in a kernel package.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archs: Vec<String>,
    /// The vendor of an `.rpm`, empty for none. Absent for a `.deb`, and in receipts of earlier versions of
    /// rockpack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// Full version, with the epoch if there is one.
    pub version: String,
    /// SHA-256, in hex, of the package's metadata without its version and the relations that an earlier set
    /// makes necessary. A later build compares it to find out whether the package changed.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "control_sha256")]
    pub metadata_sha256: Option<String>,
    /// Relations and path changes that clients of earlier sets need for the update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<UpdateRecord>,
    /// The libraries of other packages of the set that its files or those of its earlier releases need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<Import>,
    /// The relations that the package states, sorted, without the ones to itself.
    pub relations: Vec<RelationRecord>,
    /// The installed paths, sorted.
    #[serde(rename = "folders", alias = "members", with = "folders")]
    pub members: Vec<MemberRecord>,
}

/// An SPDX document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpdxRecord {
    /// File name inside the output folder.
    pub file_name: String,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
}

/// One installed path. Most are files with the mode 0644, for which receipts state neither.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// Absolute path.
    #[serde(default, skip_serializing)]
    pub path: String,
    /// The kind of entry at the path.
    #[serde(default = "file", skip_serializing_if = "is_file")]
    pub kind: MemberKind,
    /// Permission bits.
    #[serde(default = "readable", skip_serializing_if = "is_readable")]
    pub mode: u32,
    /// The size of a file in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The SHA-256 of a file, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The target of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

fn file() -> MemberKind {
    MemberKind::File
}

fn is_file(kind: &MemberKind) -> bool {
    *kind == file()
}

fn readable() -> u32 {
    0o644
}

fn is_readable(mode: &u32) -> bool {
    *mode == readable()
}

/// One code object of the input that a package holds. Findings name the code objects that no package holds,
/// and say why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodeObjectRecord {
    /// SHA-256 of the code object, in hex.
    pub sha256: String,
    /// Size in bytes.
    pub size: u64,
    /// The target ID.
    pub target: String,
    /// The shard it came from; absent for a file that serves all shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// The package that holds it, by its format-independent name.
    pub package: String,
    /// The place in the package: either `binary`, `archive` and `key`, or `file` and `entry`.
    #[serde(flatten)]
    pub place: CodeObjectPlace,
}

/// The field that says which schema the rest of a receipt has.
#[derive(Deserialize)]
struct Version {
    schema: u32,
}

impl Receipt {
    /// Returns the content of the receipt's file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write(&mut bytes)
            .map_err(|error| Error::bug("the receipt cannot be written").cause(error))?;
        Ok(bytes)
    }

    /// Writes the receipt as JSON.
    pub fn write(&self, sink: &mut dyn Write) -> io::Result<()> {
        lines::write(self, sink)
    }

    /// Parses a receipt, which has the current schema then. Fails on an unknown schema, and on contents that
    /// no build writes.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        // The schema first: a receipt of another schema may lack any other field.
        let Version { schema } = serde_json::from_slice(bytes).map_err(no_receipt)?;
        if !(OLDEST_SCHEMA..=SCHEMA).contains(&schema) {
            let message = format!("receipt schema {schema} is unknown, expected {SCHEMA}");
            let hint = "use the version of rockpack that wrote it, or build the set again";
            return Err(Error::new(Kind::Unsupported, message).structure("receipt").hint(hint));
        }
        let read: Self = serde_json::from_slice(bytes).map_err(no_receipt)?;
        let receipt = Self { schema: SCHEMA, ..read };
        receipt.refuse_odd().map(|()| receipt)
    }

    /// Parses a receipt of any schema from the oldest on. Of later ones it takes the fields that all schemas have,
    /// and the findings that it can read; the rest is empty.
    pub fn parse_any(bytes: &[u8]) -> Result<Self> {
        let Version { schema } = serde_json::from_slice(bytes).map_err(no_receipt)?;
        if schema <= SCHEMA {
            return Self::parse(bytes);
        }
        let read: Value = serde_json::from_slice(bytes).map_err(no_receipt)?;
        if !read["packages"].is_array() {
            return Err(Error::malformed("is no receipt of rockpack").structure("receipt"));
        }
        let packages = |read: &Value| read.as_array().into_iter().flatten().map(promised).collect();
        let (own, kept): (Vec<Value>, Vec<Value>) =
            (packages(&read["packages"]), packages(&read["kept"]["packages"]));
        let known = json!({
            "schema": schema, "rockpack_version": "", "version": "", "release": "", "prefix": "",
            "content_date": 0, "packages": own, "code_objects": [], "findings": [],
            "kept": { "packages": kept, "code_objects": [] },
        });
        let receipt: Self = serde_json::from_value(known).map_err(no_receipt)?;
        receipt.all_packages().try_for_each(|record| require_name(&record.file_name))?;
        let findings = serde_json::from_value(read["findings"].clone()).unwrap_or_default();
        let kept = receipt.kept.filter(|kept| !kept.is_empty());
        Ok(Self { findings, kept, ..receipt })
    }

    /// Whether it is of a later schema, and says nothing but the digests of packages.
    pub fn is_later(&self) -> bool {
        self.schema > SCHEMA
    }

    /// The full version: `{version}-{release}`.
    pub fn release(&self) -> String {
        format!("{}-{}", self.version, self.release)
    }

    /// The packages of the whole set: those of this build and those kept from earlier ones.
    pub fn all_packages(&self) -> impl Iterator<Item = &PackageRecord> {
        self.packages.iter().chain(self.kept.iter().flat_map(|kept| &kept.packages))
    }

    /// The code objects of the whole set, including kept packages.
    pub fn all_code_objects(&self) -> impl Iterator<Item = &CodeObjectRecord> {
        self.code_objects.iter().chain(self.kept.iter().flat_map(|kept| &kept.code_objects))
    }

    /// The findings with their acceptances, without those of later versions of rockpack.
    pub fn known_findings(&self) -> Findings {
        let mut findings = Findings::default();
        for record in &self.findings {
            match (record.known().cloned(), record.accepted()) {
                (Some(finding), Some(reason)) => findings.add_accepted(finding, reason),
                (Some(finding), None) => findings.add(finding),
                (None, _) => {}
            }
        }
        findings
    }
}

/// The record of a package of a later schema, by the fields that all schemas have.
fn promised(package: &Value) -> Value {
    let format = package["file_name"].as_str().and_then(|name| name.rsplit_once('.'));
    json!({
        "id": package["file_name"], "format": format.map(|(_, format)| format), "role": "host",
        "file_name": package["file_name"], "size": package["size"], "sha256": package["sha256"],
        "installed_size": 0, "version": "", "relations": [], "folders": {},
    })
}

fn no_receipt(error: serde_json::Error) -> Error {
    Error::malformed("is no receipt of rockpack").structure("receipt").cause(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_of_another_schema_is_refused_by_its_number() {
        let text = r#"{"schema":9,"rockpack_version":"","version":"1","release":"1","prefix":"/x",
            "content_date":0,"packages":[],"code_objects":[],"findings":[]}"#;
        for other in [text, r#"{"schema":9,"packages":"of another shape"}"#] {
            let error = Receipt::parse(other.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), Kind::Unsupported);
            let expected = format!("receipt schema 9 is unknown, expected {SCHEMA}");
            assert!(error.in_full().contains(&expected), "{error:?}");
        }
        let known = text.replace('9', &SCHEMA.to_string());
        let receipt = Receipt::parse(known.as_bytes()).unwrap();
        assert_eq!(Receipt::parse(&receipt.to_bytes().unwrap()).unwrap(), receipt);
    }

    #[test]
    fn of_a_later_schema_the_fields_that_stay_are_read() {
        let text = r#"{"schema":9,"packages":[{"file_name":"a_1_all.deb","size":1,"sha256":"x","role":"new"}],
            "kept":{"packages":[{"file_name":"b-1-1.noarch.rpm","size":2,"sha256":"y"}]},"findings":"new"}"#;
        let receipt = Receipt::parse_any(text.as_bytes()).unwrap();
        let names: Vec<&str> = receipt.all_packages().map(|it| it.file_name.as_str()).collect();
        assert!(receipt.is_later() && names == ["a_1_all.deb", "b-1-1.noarch.rpm"], "{names:?}");
        for (part, other) in [("a_1_", "../a_1_"), ("\"size\":1,", ""), ("packages", "others")] {
            assert!(
                Receipt::parse_any(text.replacen(part, other, 1).as_bytes()).is_err(),
                "{other}"
            );
        }
    }

    /// Other tools read receipts: no name in them may change with the types behind it.
    #[test]
    fn names_in_a_receipt_are_pinned() {
        let kinds = [
            "pre-depends",
            "depends",
            "recommends",
            "suggests",
            "enhances",
            "supplements",
            "provides",
            "conflicts",
            "breaks",
            "replaces",
            "obsoletes",
        ];
        let relations = kinds.map(|kind| format!(r#"{{"kind":"{kind}","name":"a"}}"#));
        let signs = ["<", "<=", "=", ">=", ">"].map(|sign| {
            format!(r#"{{"kind":"depends","name":"a","comparison":"{sign}","version":"1"}}"#)
        });
        let entries = ["directory", "link"]
            .map(|kind| format!(r#""a-{kind}":{{"kind":"{kind}","mode":493}}"#));
        let folders = format!(r#""/":{{{}}},"/x/":{{"a":{{"size":1}}}}"#, entries.join(","));
        let packages = ["host", "kernels", "kernels-common", "support", "meta"].map(|role| {
            let format = if role == "host" { "deb" } else { "rpm" };
            format!(
                r#"{{"id":"{role}","format":"{format}","file_name":"{role}","size":1,"installed_size":2,"sha256":"","role":"{role}","version":"1-1","metadata_sha256":"","relations":[{},{}],"folders":{{{folders}}}}}"#,
                relations.join(","), signs.join(",")
            )
        });
        let fields: [&str; 4] = [
            &format!(r#"{{"schema":{SCHEMA},"rockpack_version":"","version":"1""#),
            r#""release":"1","prefix":"/x","content_date":0"#,
            &format!(r#""packages":[{}]"#, packages.join(",")),
            r#""code_objects":[],"spdx":[{"file_name":"x","sha256":""}],"findings":[]}"#,
        ];
        let text = fields.join(",");
        let receipt = Receipt::parse(text.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&receipt).unwrap(), text);
        for known in ["\"deb\"", "\"meta\"", "\"replaces\"", "\">=\"", "\"link\""] {
            assert!(
                Receipt::parse(text.replace(known, "\"other\"").as_bytes()).is_err(),
                "{known}"
            );
        }
    }

    #[test]
    fn receipts_of_the_schema_before_are_read() {
        let part = r#""part":{"index":1,"of":1,"plan":"p","packages":{}}"#;
        let package = r#"{"id":"a","format":"deb","file_name":"a_1_all.deb","size":1,
            "installed_size":2,"sha256":"","role":"host","code_objects":0,"version":"1",
            "control_sha256":"c","relations":[],"members":[
            {"path":"/b","kind":"file","mode":420,"size":1,"sha256":""},
            {"path":"/a","kind":"link","mode":511,"target":"b"}]}"#;
        let text = format!(
            r#"{{"schema":3,"generator":"0","version":"1","release":"1","prefix":"/x",
            "content_date":0,{part},"packages":[{package}],"code_objects":[],"findings":[]}}"#
        );
        let receipt = Receipt::parse(text.as_bytes()).unwrap();
        assert_eq!((receipt.schema, &*receipt.rockpack_version), (SCHEMA, "0"));
        assert_eq!(receipt.part.as_ref().unwrap().plan_sha256, "p");
        let PackageRecord { metadata_sha256, members, .. } = &receipt.packages[0];
        assert_eq!(metadata_sha256.as_deref(), Some("c"));
        let paths: Vec<&str> = members.iter().map(|member| &*member.path).collect();
        assert_eq!((paths, members[0].kind), (vec!["/a", "/b"], MemberKind::Link));
        let now = receipt.to_bytes().unwrap();
        assert_eq!(Receipt::parse(&now).unwrap(), receipt);
        let wheels = |schema: u32| {
            let text = format!(
                r#"{{"schema":{schema},"generator":"0","time":1,"wheels":[],"code_objects":[],
                "findings":[]}}"#
            );
            wheels::WheelReceipt::parse(text.as_bytes())
        };
        let read = wheels(1).unwrap();
        assert_eq!((read.schema, read.content_date), (wheels::SCHEMA, 1));
        wheels(wheels::SCHEMA + 1).unwrap_err();
    }

    /// Many entries of one long folder would take far more memory than the receipt.
    #[test]
    fn paths_take_no_more_than_their_receipt_allows() {
        parsed_folder(4096).unwrap();
        let error = parsed_folder(6000).unwrap_err().in_full();
        assert!(error.contains("the paths are too long for their number"), "{error}");
    }

    /// Parses a receipt with 1,000 links in a folder whose path has `length` bytes.
    fn parsed_folder(length: usize) -> Result<Receipt> {
        let link = r#"{"kind":"link","mode":511,"target":"a"}"#;
        let entries: Vec<String> = (1000..2000).map(|name| format!(r#""{name}":{link}"#)).collect();
        let package = format!(
            r#"{{"id":"a","format":"deb","file_name":"a_1_all.deb","size":1,"installed_size":2,
            "sha256":"","role":"host","version":"1","relations":[],
            "folders":{{"/{}/":{{{}}}}}}}"#,
            "x".repeat(length - 2),
            entries.join(",")
        );
        let text = format!(
            r#"{{"schema":{SCHEMA},"rockpack_version":"0","version":"1","release":"1",
            "prefix":"/x","content_date":0,"packages":[{package}],"code_objects":[],
            "findings":[]}}"#
        );
        Receipt::parse(text.as_bytes())
    }

    #[test]
    fn a_part_says_once_where_a_package_belongs() {
        parsed_part(r#""a.deb":1,"b.deb":2"#).unwrap();
        let error = parsed_part(r#""a.deb":1,"b.deb":2,"a.deb":2"#).unwrap_err();
        assert!(error.in_full().contains("`a.deb` is given twice"), "{error:?}");
        assert!(parsed_part(r#""a.deb":1},"index":2,"more":{"a.deb":2"#).is_err());
    }

    fn parsed_part(packages: &str) -> Result<Receipt> {
        let part = format!(r#"{{"index":1,"of":2,"plan_sha256":"","packages":{{{packages}}}}}"#);
        let text = format!(
            r#"{{"schema":{SCHEMA},"rockpack_version":"","version":"1","release":"1","prefix":"/x",
            "content_date":0,"part":{part},"packages":[],"code_objects":[],"findings":[]}}"#
        );
        Receipt::parse(text.as_bytes())
    }
}
