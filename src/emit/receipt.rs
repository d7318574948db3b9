//! Makes the receipt of a written set.

use std::collections::HashMap;

use rockpack_base::content::hex;
use rockpack_base::error::{Error, Result};

use super::emitted::{Emitted, EmittedMember};
use crate::package::{MemberKind, Package, Role, Version};
use crate::receipt::{
    CodeObjectRecord, FindingRecord, KeptRecord, MemberRecord, PackageRecord, PartRecord, Receipt,
    RelationRecord, SCHEMA, UpdateRecord,
};
use crate::report::Findings;

/// A package that was written, without its content.
#[derive(Debug)]
pub struct WrittenPackage {
    /// Role of the package.
    pub role: Role,
    /// Number of distinct code objects in its archives.
    pub distinct: u64,
    /// Every code object of the input that is in its archives and files.
    pub code_objects: Vec<CodeObjectRecord>,
    /// Files of the package, one per format.
    pub emitted: Vec<Emitted>,
}

/// The facts about a whole set for its receipt. `F` is the type of a planned package's file.
pub struct WholeSet<'a, F> {
    /// Version of all packages.
    pub version: &'a Version,
    /// The install prefix, absolute.
    pub prefix: String,
    /// Seconds since 1970 that every packed file carries.
    pub content_date: u32,
    /// Planned packages, at least those that were written.
    pub packages: &'a [Package<F>],
    /// Packages of earlier builds that the set keeps.
    pub kept: Option<KeptRecord>,
    /// Absolute install paths of the input that are in no package.
    pub left_out: Vec<String>,
}

/// The receipt for the packages `written` of `set`; they may be one part of it.
pub fn receipt<F>(
    set: WholeSet<'_, F>,
    written: Vec<WrittenPackage>,
    part: Option<PartRecord>,
    findings: &Findings,
) -> Result<Receipt> {
    let (mut packages, mut code_objects) = (Vec::new(), Vec::new());
    let planned = set.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    // Each package's record is freed at once: both copies of many files would be large.
    for mut written in written {
        code_objects.append(&mut written.code_objects);
        packages.extend(package_records(&planned, written)?);
    }
    packages.sort_by(|a: &PackageRecord, b| a.file_name.cmp(&b.file_name));
    code_objects.sort_by(|a, b| (&a.place, &a.target).cmp(&(&b.place, &b.target)));
    Ok(Receipt {
        schema: SCHEMA,
        generator: env!("CARGO_PKG_VERSION").to_owned(),
        version: set.version.upstream().to_owned(),
        release: set.version.release().to_owned(),
        prefix: set.prefix,
        content_date: i64::from(set.content_date),
        part,
        packages,
        code_objects,
        kept: set.kept,
        left_out: set.left_out,
        findings: FindingRecord::of(findings),
    })
}

/// Planned packages by id.
type PlannedPackages<'a, F> = HashMap<&'a str, &'a Package<F>>;

fn package_records<F>(
    planned: &PlannedPackages<'_, F>,
    written: WrittenPackage,
) -> Result<Vec<PackageRecord>> {
    let WrittenPackage { role, distinct, emitted, .. } = written;
    emitted.into_iter().map(|emitted| package_record(emitted, planned, &role, distinct)).collect()
}

fn package_record<F>(
    emitted: Emitted,
    planned: &PlannedPackages<'_, F>,
    role: &Role,
    distinct: u64,
) -> Result<PackageRecord> {
    let planned = planned.get(emitted.package.as_str());
    let version = planned.and_then(|package| package.full_version(emitted.format));
    let relations = planned.and_then(|p| RelationRecord::of_package(p, emitted.format));
    let control_sha256 =
        planned.and_then(|package| package.identity.control(emitted.format).cloned());
    let update = planned.and_then(|it| UpdateRecord::of_package(it, emitted.format));
    let (Some(version), Some(relations)) = (version, relations) else {
        let message = format!("{} was written and is not planned", emitted.file_name);
        return Err(Error::bug(message));
    };
    Ok(PackageRecord {
        version,
        control_sha256,
        update,
        imports: planned.map(|it| it.identity.imports.clone()).unwrap_or_default(),
        relations,
        id: emitted.package,
        format: emitted.format,
        file_name: emitted.file_name,
        size: emitted.size,
        installed_size: emitted.installed_size,
        sha256: hex(&emitted.sha256),
        role: role.kind(),
        group: role.group().map(str::to_owned),
        archs: role.archs().to_vec(),
        vendor: planned.and_then(|package| package.vendor(emitted.format)),
        code_objects: distinct,
        members: emitted.members.into_iter().map(member_record).collect(),
    })
}

fn member_record(member: EmittedMember) -> MemberRecord {
    MemberRecord {
        path: member.path,
        kind: member.kind,
        mode: member.mode,
        size: (member.kind == MemberKind::File).then_some(member.size),
        sha256: member.sha256.map(|digest| hex(&digest)),
        target: member.target,
    }
}
