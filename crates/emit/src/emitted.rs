//! Written packages and their members, the last step of writing them (sync and digests), and the receipt of a set.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufReader, Read, Seek, SeekFrom};

use rockpack_archive::payload::Finished;
use rockpack_core::content::{Content, WINDOW, hex, unhex};
use rockpack_core::error::{Error, Result, ResultExt};

use super::reuse::cached_facts;
use super::{EmitOptions, Staging};
use rockpack_files::cache::Key;
use rockpack_package::indexed::IndexedPackage;
use rockpack_package::receipt::{
    CodeObjectRecord, MemberRecord, PackageRecord, PartRecord, Receipt, RelationRecord, SCHEMA,
    SpdxRecord, UpdateRecord,
};
use rockpack_package::{Format, MemberKind, Package, Role};
use rockpack_plan::{FileSource, Plan};
use rockpack_report::{Findings, Stage};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmittedPackage {
    /// [`Package::id`](rockpack_package::Package::id).
    pub package: String,
    pub format: Format,
    pub file_name: String,
    pub size: u64,
    /// Installed size that the package states, in bytes: a deb's Installed-Size × 1024, an rpm's SIZE.
    pub installed_size: u64,
    pub sha256: [u8; 32],
    /// Members of the package, in path order.
    pub members: Vec<EmittedMember>,
    /// The package's entry in a repository index; `None` if it will not be published.
    pub indexed: Option<IndexedPackage>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmittedMember {
    /// The absolute install path.
    pub path: String,
    pub kind: MemberKind,
    pub mode: u32,
    /// Size of the content in bytes; 0 unless it is a file.
    pub size: u64,
    pub sha256: Option<[u8; 32]>,
    /// SHA-1 of a file's content, if [`EmitOptions::sha1`](super::EmitOptions::sha1) asked for it.
    pub sha1: Option<[u8; 20]>,
    pub target: Option<String>,
}

/// The SHA-256 of every file in `emitted`, by absolute install path.
pub fn file_digests(emitted: &[EmittedPackage]) -> BTreeMap<&str, &[u8; 32]> {
    let members = emitted.iter().flat_map(|package| &package.members);
    members.filter_map(|member| Some((member.path.as_str(), member.sha256.as_ref()?))).collect()
}

/// A package whose files are written, but not yet synced and digested.
#[derive(Debug)]
pub struct UnsyncedPackage {
    pub(super) package: String,
    pub(super) files: Vec<UnsyncedFile>,
}

#[derive(Debug)]
pub(super) struct UnsyncedFile {
    pub format: Format,
    pub file_name: String,
    pub installed_size: u64,
    pub members: Vec<EmittedMember>,
    /// The payload and its cache key; `None` if it is not to be cached.
    pub keep: Option<(Key, Finished)>,
    pub sha256: Option<[u8; 32]>,
}

impl UnsyncedPackage {
    /// Syncs the files, computes sizes and digests, and puts new payloads into the cache.
    pub fn seal(self, staging: &Staging, options: &EmitOptions<'_>) -> Result<Vec<EmittedPackage>> {
        let Self { package, files } = self;
        let emitted: Result<Vec<_>> =
            files.into_iter().map(|file| file.seal(&package, staging, options)).collect();
        emitted.context(|| format!("writing package {package}"))
    }
}

impl UnsyncedFile {
    fn seal(
        self,
        package: &str,
        staging: &Staging,
        options: &EmitOptions<'_>,
    ) -> Result<EmittedPackage> {
        let EmitOptions { cache, progress, .. } = *options;
        let Self { format, file_name, installed_size, members, keep, sha256 } = self;
        if let (Some(cache), Some((key, Finished { payload, facts }))) = (cache, &keep) {
            let facts = cached_facts(members.iter().filter_map(|member| member.sha256), facts);
            let mut file = staging.open(&file_name)?;
            let start = file.seek(SeekFrom::Start(payload.start));
            start.map_err(|e| Error::io_without_path("read the package", e))?;
            let len = payload.end - payload.start;
            cache.keep(key, &facts, len, &mut BufReader::with_capacity(WINDOW, file).take(len));
        }
        progress.begin(Stage::Seal);
        let content = staging.seal(&file_name, &options.budget)?;
        let size = content.len();
        let digested = digest_and_index(&content, &members, sha256, options);
        progress.end(Stage::Seal);
        let (sha256, indexed) = digested?;
        progress.advance(Stage::Seal, size);
        progress.package(&file_name, size);
        let package = package.to_owned();
        Ok(EmittedPackage {
            package,
            format,
            file_name,
            size,
            installed_size,
            sha256,
            members,
            indexed,
        })
    }
}

/// Reads a package once, and returns its SHA-256, and its index entry if it will be published.
fn digest_and_index(
    content: &Content,
    members: &[EmittedMember],
    known: Option<[u8; 32]>,
    options: &EmitOptions<'_>,
) -> Result<([u8; 32], Option<IndexedPackage>)> {
    if !options.indexed {
        return Ok((known.map_or_else(|| content.sha256(), Ok)?, None));
    }
    let owned = members.iter().filter(|member| member.kind != MemberKind::Directory);
    let indexed = IndexedPackage::of_built(content, owned.map(|member| member.path.as_str()))?;
    let sha256 = unhex(&indexed.sha256).ok_or_else(|| Error::bug("a digest is not a SHA-256"))?;
    Ok((sha256, Some(indexed)))
}

/// A written package in each of its formats.
#[derive(Debug)]
pub struct WrittenPackage {
    pub role: Role,
    /// Every code object of the input that the package contains.
    pub code_objects: Vec<CodeObjectRecord>,
    pub emitted: Vec<EmittedPackage>,
}

/// Makes the receipt of the packages `written` of `plan`, which are the whole set or its part `part`.
pub fn receipt(
    plan: &Plan,
    written: Vec<WrittenPackage>,
    spdx: Option<SpdxRecord>,
    part: Option<PartRecord>,
    findings: &Findings,
) -> Result<Receipt> {
    let (mut packages, mut code_objects) = (Vec::new(), Vec::new());
    let planned = plan.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    // Consumes `written`: a second copy of all members would be large.
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
        version: plan.version.set_upstream().to_owned(),
        release: plan.version.set_release().to_owned(),
        prefix: plan.prefix.absolute(),
        content_date: i64::from(plan.content_date),
        part,
        distributions: plan.distributions.clone(),
        packages,
        code_objects,
        kept: Some(plan.kept.clone()).filter(|kept| !kept.is_empty()),
        spdx: Vec::from_iter(spdx),
        left_out: plan.left_out_paths(),
        findings: findings.clone(),
    })
}

fn package_record(
    emitted: EmittedPackage,
    planned: &HashMap<&str, &Package<FileSource>>,
    role: &Role,
) -> Result<PackageRecord> {
    let format = emitted.format;
    let found = planned.get(emitted.package.as_str()).and_then(|package| {
        let relations = RelationRecord::of_package(package, format)?;
        Some((package, package.full_version(format)?, relations))
    });
    let Some((planned, version, relations)) = found else {
        let message = format!("{} was written but is not planned", emitted.file_name);
        return Err(Error::bug(message));
    };
    let members = emitted.members.into_iter().map(|member| MemberRecord {
        path: member.path,
        kind: member.kind,
        mode: member.mode,
        size: (member.kind == MemberKind::File).then_some(member.size),
        sha256: member.sha256.map(|digest| hex(&digest)),
        target: member.target,
    });
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
        members: members.collect(),
        shared_folders: Vec::new(),
    })
}
