//! The receipt `packages.json`: the packages of a build, and where every code object of its input went.
//!
//! A build writes the receipt last, so a folder with a receipt holds a whole set. A reader who trusts its
//! signature can trust every package whose digest it states; without one, it proves nothing.

mod current;
pub mod difference;
mod folders;
pub mod listing;
mod part;
mod records;
#[cfg(test)]
mod tests;
pub mod wheels;

use std::io::{self, Write};

use rockpack_archive::spelling::{is_name, is_rpm_part, is_version};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::TreePath;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Serializer;
use serde_json::ser::Formatter;

pub use current::{CurrentPackages, KeptRecord};
use folders::{read_packages, write_packages};
pub use part::{
    DifferentParts, JoinFault, PartRecord, PlanBreach, SIGNATURE_ENDING, SetPart, file_name, join,
    part_of_file, part_of_sbom, sbom_name, signature_name, signature_path,
};
pub use records::{
    CodeObjectPlace, CodeObjectRecord, DistributionRecord, MemberRecord, PackageRecord,
    RelationRecord, SpdxRecord, UpdateRecord, package_of_file,
};

use crate::{Comparison, Format, PathChange, RelationKind};
use rockpack_report::Findings;

/// File name of the receipt inside the output folder.
pub const FILE_NAME: &str = "packages.json";

/// Longest receipt or plan that is read, in bytes. Those of the largest sets are far smaller.
pub const LIMIT: u64 = 2 << 30;

/// Version of the receipt's schema. Other versions are refused.
pub const SCHEMA: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub schema: u32,
    pub rockpack_version: String,
    /// The upstream version of the set, with `~` before a pre-release: `7.1.0~rc1`. If the formats differ,
    /// this is the version of its `.deb` packages, and so is the release; each package has its own.
    pub version: String,
    pub release: String,
    /// The install prefix, absolute.
    pub prefix: String,
    /// Time of every payload entry, in seconds since the epoch.
    pub content_date: i64,
    /// The part of the set that this receipt covers, and a description of the whole. Absent for a whole set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartRecord>,
    /// The distributions that the packages are for, one for each format.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distributions: Vec<DistributionRecord>,
    /// The packages, sorted by file name.
    #[serde(serialize_with = "write_packages", deserialize_with = "read_packages")]
    pub packages: Vec<PackageRecord>,
    /// Every code object of the input that a package holds, sorted by place.
    pub code_objects: Vec<CodeObjectRecord>,
    /// Packages of earlier builds of the same version that the set keeps because they did not change. Their
    /// files are where those builds wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptRecord>,
    /// The SPDX document next to the receipt. For joined parts, those of all parts, sorted by file name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spdx: Vec<SpdxRecord>,
    /// Absolute install paths of the input that no package has because the set was limited to other
    /// components (`--only`), sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Every finding. Findings that the configuration accepts have the reason in `accepted`.
    pub findings: Findings,
}

/// The field that says which schema the rest of a receipt has, and those that only other files have.
#[derive(Deserialize)]
struct Version {
    schema: u32,
    kind: Option<IgnoredAny>,
    wheels: Option<IgnoredAny>,
}

impl Receipt {
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        write_lines(self, &mut bytes)
            .map_err(|error| Error::bug("the receipt cannot be written").cause(error))?;
        Ok(bytes)
    }

    /// Parses a receipt. Refuses other schemas, and what no build writes.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        // The schema first: a receipt of another schema may lack any other field.
        let Version { schema, kind, wheels } =
            serde_json::from_slice(bytes).map_err(not_a_receipt)?;
        if kind.is_some() || wheels.is_some() {
            let message = "is a plan or a receipt of wheels, not a receipt of packages";
            return Err(Error::malformed(message).structure("receipt"));
        }
        if schema != SCHEMA {
            let message = format!("receipt schema {schema} is unknown, expected {SCHEMA}");
            let hint = "use the version of rockpack that wrote it, or build the set again";
            return Err(Error::new(Kind::Unsupported, message).structure("receipt").hint(hint));
        }
        let receipt: Self = serde_json::from_slice(bytes).map_err(not_a_receipt)?;
        receipt.refuse_invalid().map(|()| receipt)
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
}

fn not_a_receipt(error: serde_json::Error) -> Error {
    Error::malformed("is not a rockpack receipt").structure("receipt").cause(error)
}

/// Writes a receipt as JSON, in lines: `grep` and `diff` show single packages, relations, paths and code objects.
pub fn write_lines(receipt: &impl Serialize, mut sink: &mut dyn Write) -> io::Result<()> {
    receipt.serialize(&mut Serializer::with_formatter(&mut sink, LineFormatter(0)))?;
    sink.write_all(b"\n")
}

/// The number of open objects: 1 in the receipt, 2 in a package, a code object or `kept`, 4 in a folder.
struct LineFormatter(usize);

impl Formatter for LineFormatter {
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0 += 1;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0 -= 1;
        writer.write_all(b"}")
    }

    fn begin_array_value<W>(&mut self, writer: &mut W, first: bool) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        separate(writer, first, self.0 <= 2)
    }

    fn begin_object_key<W>(&mut self, writer: &mut W, first: bool) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        separate(writer, first, [1, 4].contains(&self.0))
    }
}

fn separate<W: ?Sized + Write>(writer: &mut W, first: bool, is_line: bool) -> io::Result<()> {
    writer.write_all(if first { b"" } else { b"," })?;
    writer.write_all(if is_line { b"\n" } else { b"" })
}

/// The kinds of relations to packages that had paths.
const UPDATE_RELATIONS: [RelationKind; 4] = [
    RelationKind::Breaks,
    RelationKind::Replaces,
    RelationKind::Conflicts,
    RelationKind::Obsoletes,
];

impl Receipt {
    /// Refuses a receipt with an invalid prefix, version, name or update record: these texts go into relations,
    /// scripts and messages of later packages.
    fn refuse_invalid(&self) -> Result<()> {
        refuse_prefix(&self.prefix)?;
        for text in [&self.version, &self.release] {
            require(is_rpm_part(text), text, "version")?;
        }
        for package in self.all_packages() {
            let PackageRecord { format, id, file_name, version, group, archs, .. } = package;
            require(is_version(*format, version), version, "version")?;
            let mut names = [id, file_name].into_iter().chain(group).chain(archs);
            names.try_for_each(|text| require_name(text))?;
            package.update.iter().try_for_each(|update| update.refuse_invalid(*format))?;
        }
        let of_part = self.part.iter().flat_map(|part| part.packages.keys());
        let documents = self.spdx.iter().map(|document| &document.file_name);
        let code_objects = self.all_code_objects().map(|record| &record.package);
        of_part.chain(documents).chain(code_objects).try_for_each(|text| require_name(text))
    }
}

impl UpdateRecord {
    fn refuse_invalid(&self, format: Format) -> Result<()> {
        for RelationRecord { kind, name, comparison, version } in &self.relations {
            let has_version = version.as_ref().is_some_and(|text| is_version(format, text));
            let is_bound = *comparison == Some(Comparison::Less) && UPDATE_RELATIONS.contains(kind);
            let is_good = is_bound && has_version && is_name(format, name);
            require(is_good, name, "relation to a package that had paths")?;
        }
        for PathChange { path, target, members, .. } in &self.paths {
            require(path.strip_prefix('/').is_some_and(is_tree_path), path, "path")?;
            members.iter().try_for_each(|text| require(is_tree_path(text), text, "path"))?;
            let mut target = target.iter();
            target.try_for_each(|text| require(!text.contains(char::is_control), text, "path"))?;
        }
        Ok(())
    }
}

fn is_tree_path(text: &str) -> bool {
    TreePath::new(text).is_ok()
}

/// Refuses a name unless it consists of letters, digits and `+-._~^`, and starts with a letter, a digit or `_`.
fn require_name(text: &str) -> Result<()> {
    let is_good = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-._~^".contains(c));
    require(is_good, text, "name")
}

/// Refuses a prefix that is not an absolute path in normal form, or has characters that tools could read
/// differently. Checks receipts and plans.
fn refuse_prefix(prefix: &str) -> Result<()> {
    let is_plain = prefix.chars().all(|c| c.is_ascii_alphanumeric() || "/._+~-".contains(c));
    let is_path = prefix.strip_prefix('/').is_some_and(is_tree_path);
    require(is_path && is_plain, prefix, "prefix")
}

/// Refuses `text`, a `what` of packages, unless it `is_good`.
fn require(is_good: bool, text: &str, what: &str) -> Result<()> {
    if is_good {
        return Ok(());
    }
    let message = format!("`{}` is not a valid {what}", text.escape_debug());
    let hint = "no build writes that: build the set again, or restore \
                its receipt";
    Err(Error::malformed(message).structure("receipt").hint(hint))
}
