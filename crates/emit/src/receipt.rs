//! Makes the receipt of a written set.

use std::collections::HashMap;

use rockpack_core::content::hex;
use rockpack_core::error::{Error, Result};

use super::emitted::{Emitted, EmittedMember};
use rockpack_package::receipt::{
    CodeObjectRecord, FindingRecord, KeptRecord, MemberRecord, PackageRecord, PartRecord, Receipt,
    RelationRecord, SCHEMA, SpdxRecord, UpdateRecord,
};
use rockpack_package::{MemberKind, Package, Role, Version};
use rockpack_report::Findings;

/// A package that was written, without its content.
#[derive(Debug)]
pub struct WrittenPackage {
    /// Role of the package.
    pub role: Role,
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
    /// The SPDX document.
    pub spdx: Option<SpdxRecord>,
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
    for WrittenPackage { role, code_objects: own, emitted } in written {
        code_objects.extend(own);
        for emitted in emitted {
            packages.push(package_record(emitted, &planned, &role)?);
        }
    }
    packages.sort_by(|a: &PackageRecord, b| a.file_name.cmp(&b.file_name));
    code_objects.sort_by(|a, b| (&a.place, &a.target).cmp(&(&b.place, &b.target)));
    Ok(Receipt {
        schema: SCHEMA,
        rockpack_version: env!("CARGO_PKG_VERSION").to_owned(),
        version: set.version.upstream().to_owned(),
        release: set.version.release().to_owned(),
        prefix: set.prefix,
        content_date: i64::from(set.content_date),
        part,
        packages,
        code_objects,
        kept: set.kept,
        spdx: Vec::from_iter(set.spdx),
        left_out: set.left_out,
        findings: FindingRecord::of(findings),
    })
}

/// Planned packages by id.
type PlannedPackages<'a, F> = HashMap<&'a str, &'a Package<F>>;

fn package_record<F>(
    emitted: Emitted,
    planned: &PlannedPackages<'_, F>,
    role: &Role,
) -> Result<PackageRecord> {
    let format = emitted.format;
    let found = planned.get(emitted.package.as_str()).and_then(|package| {
        let relations = RelationRecord::of_package(package, format)?;
        Some((package, package.full_version(format)?, relations))
    });
    let Some((planned, version, relations)) = found else {
        let message = format!("{} was written and is not planned", emitted.file_name);
        return Err(Error::bug(message));
    };
    Ok(PackageRecord {
        version,
        metadata_sha256: planned.identity.control(format).cloned(),
        update: UpdateRecord::of_package(planned, format),
        imports: planned.identity.imports.clone(),
        relations,
        id: emitted.package,
        format,
        file_name: emitted.file_name,
        size: emitted.size,
        installed_size: emitted.installed_size,
        sha256: hex(&emitted.sha256),
        role: role.kind(),
        group: role.group().map(str::to_owned),
        archs: role.archs().to_vec(),
        vendor: planned.vendor(format),
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
