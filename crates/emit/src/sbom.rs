//! The SPDX document of a set: every package file, every file in it, their digests, and the source artifacts.
//!
//! ```text
//! document ─ DESCRIBES ─► package file ─ CONTAINS ─► file
//!                                      └ GENERATED_FROM ─► artifact
//! ```
//!
//! A file that is identical in the `.deb` and the `.rpm` of a package is one element. Licence, copyright and
//! vendor are those of the packages; nothing is concluded from content. The document depends only on the set
//! and its stamp, so it is reproducible.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use jiff::Timestamp;
use rockpack_archive::spdx::{self, Document, File, NO_ASSERTION, SpdxChecksum, VerificationCode};
use rockpack_core::content::{Content, hex};
use rockpack_core::error::{Error, Kind, Result};
use sha2::{Digest as _, Sha256};

use crate::pack::Sources;
use crate::{EmittedPackage, WrittenPackage};
use rockpack_package::Package;
use rockpack_package::receipt::SetPart;
use rockpack_plan::recombine::Recombined;
use rockpack_plan::{FileSource, Plan};
use rockpack_split::input::artifact::{Artifact, Scan};

const TOOL: &str = concat!(env!("CARGO_PKG_NAME"), "-", env!("CARGO_PKG_VERSION"));

/// The document of the packages `written` for a plan, which may be one part of a set. `stamp` is the stated
/// time of creation, in seconds since 1970.
pub fn document(
    scan: &Scan,
    recombined: &Recombined,
    plan: &Plan,
    written: &[WrittenPackage],
    stamp: i64,
    part: Option<SetPart>,
) -> Result<Document> {
    let version = format!("{}-{}", plan.version.set_upstream(), plan.version.set_release());
    let part = part.map(|part| format!(", part {part}")).unwrap_or_default();
    let created = Timestamp::from_second(stamp).map_err(|error| {
        Error::new(Kind::Limit, format!("{stamp} is not a valid time for a document")).cause(error)
    })?;
    let name = format!("packages of version {version}{part}");
    let mut maker = DocumentMaker {
        document: Document::new(name, created.to_string(), TOOL),
        ids: BTreeSet::new(),
        files: BTreeMap::new(),
        artifacts: BTreeMap::new(),
    };
    let origins = Origins::new(scan, recombined, plan);
    let mut emitted: Vec<&EmittedPackage> =
        written.iter().flat_map(|package| &package.emitted).collect();
    emitted.sort_by(|a, b| a.file_name.cmp(&b.file_name));
    let planned: HashMap<&str, &Package<FileSource>> =
        plan.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    // The formats of a package have the same origins.
    let mut known: BTreeMap<&str, Vec<&Artifact>> = BTreeMap::new();
    for emitted in emitted {
        let planned = planned
            .get(emitted.package.as_str())
            .ok_or_else(|| Error::bug("a package was written without a plan"))?;
        let id = maker.package(emitted, planned)?;
        let artifacts = match known.entry(&planned.id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(origins.of(planned)?),
        };
        for artifact in artifacts {
            let artifact = maker.artifact(artifact);
            maker.document.relate(&id, "GENERATED_FROM", &artifact);
        }
    }
    let DocumentMaker { mut document, files, artifacts, .. } = maker;
    document.packages.extend(artifacts.into_values());
    document.files = files.into_values().collect();
    document
        .name_space()
        .map_err(|error| Error::bug("a document cannot be digested").cause(error))?;
    Ok(document)
}

struct DocumentMaker<'a> {
    document: Document,
    ids: BTreeSet<String>,
    files: BTreeMap<(&'a str, [u8; 32]), File>,
    artifacts: BTreeMap<(&'a str, String), spdx::SpdxPackage>,
}

impl<'a> DocumentMaker<'a> {
    /// Adds a package with its files; returns its id.
    fn package<F>(&mut self, emitted: &'a EmittedPackage, planned: &Package<F>) -> Result<String> {
        let id = spdx::new_id("Package", &emitted.file_name, &mut self.ids);
        self.document.relate(spdx::DOCUMENT, "DESCRIBES", &id);
        let mut digests = Vec::new();
        for member in &emitted.members {
            let Some(sha256) = member.sha256 else { continue };
            let sha1 = member.sha1.ok_or_else(|| {
                Error::bug("a file of an SPDX document was written without a SHA-1")
            })?;
            digests.push(sha1);
            let file = self.files.entry((&member.path, sha256)).or_insert_with(|| {
                let digest = Sha256::new().chain_update(&member.path).chain_update([0]);
                let digest = hex(&digest.chain_update(sha256).finalize());
                File {
                    file_name: format!(".{}", member.path),
                    // 128 bits of the hash of path and content.
                    id: format!("SPDXRef-File-{}", &digest[..32]),
                    checksums: vec![SpdxChecksum::sha1(&sha1), SpdxChecksum::sha256(&sha256)],
                }
            });
            self.document.relate(&id, "CONTAINS", &file.id);
        }
        self.document.packages.push(spdx::SpdxPackage {
            id: id.clone(),
            files_analyzed: !digests.is_empty(),
            package_verification_code: (!digests.is_empty()).then(|| VerificationCode::of(digests)),
            ..package_element(emitted, planned)
        });
        Ok(id)
    }

    /// The id of an artifact, which is added if it is new.
    fn artifact(&mut self, artifact: &'a Artifact) -> String {
        let Artifact { shard, name, .. } = artifact;
        let ids = &mut self.ids;
        let element = self.artifacts.entry((shard.as_str(), name.to_string()));
        element.or_insert_with(|| artifact_element(artifact, ids)).id.clone()
    }
}

/// The SPDX element of a package file: the texts of the package, and the name and digest of the file.
fn package_element<F>(emitted: &EmittedPackage, planned: &Package<F>) -> spdx::SpdxPackage {
    let format = emitted.format;
    let rights = &planned.rights;
    let known = spdx::is_known_license(&rights.license);
    let vendor = rights.vendor.as_ref().map(|vendor| format!("Organization: {vendor}"));
    spdx::SpdxPackage {
        name: planned.name(format).unwrap_or(&planned.id).to_owned(),
        version_info: planned.full_version(format),
        package_file_name: Some(emitted.file_name.clone()),
        primary_package_purpose: Some("INSTALL".to_owned()),
        supplier: Some(vendor.unwrap_or_else(no_assertion)),
        download_location: no_assertion(),
        checksums: vec![SpdxChecksum::sha256(&emitted.sha256)],
        homepage: planned.homepage.clone(),
        license_concluded: no_assertion(),
        license_declared: if known { rights.license.clone() } else { no_assertion() },
        license_comments: (!known).then(|| format!("The package says: {}", rights.license)),
        copyright_text: rights.copyright.clone().unwrap_or_else(no_assertion),
        summary: Some(planned.summary.clone()),
        ..spdx::SpdxPackage::default()
    }
}

fn no_assertion() -> String {
    NO_ASSERTION.to_owned()
}

/// The SPDX element of an artifact: its name and shard, not its path, which differs between machines.
fn artifact_element(artifact: &Artifact, ids: &mut BTreeSet<String>) -> spdx::SpdxPackage {
    let Artifact { shard, name, .. } = artifact;
    let packed = artifact.sha256;
    let file_name = artifact.root.file_name().map(|name| name.to_string_lossy().into_owned());
    spdx::SpdxPackage {
        id: spdx::new_id("Artifact", &format!("{shard}-{name}"), ids),
        name: name.to_string(),
        package_file_name: packed.and(file_name),
        primary_package_purpose: Some(
            if packed.is_some() { "ARCHIVE" } else { "OTHER" }.to_owned(),
        ),
        download_location: no_assertion(),
        checksums: packed.iter().map(SpdxChecksum::sha256).collect(),
        license_concluded: no_assertion(),
        license_declared: no_assertion(),
        copyright_text: no_assertion(),
        comment: Some(format!("Build artifact of the shard {shard}")),
        ..spdx::SpdxPackage::default()
    }
}

/// The artifacts of a scan, by path, to find those that the bytes of a package come from.
struct Origins<'a> {
    sources: Sources<'a>,
    artifacts: Vec<&'a Artifact>,
    /// Id of a component → the indexes of its artifacts by path. Those of one install tree have the same path.
    by_component: BTreeMap<String, BTreeMap<&'a [u8], usize>>,
}

impl<'a> Origins<'a> {
    fn new(scan: &'a Scan, recombined: &'a Recombined, plan: &'a Plan) -> Self {
        let artifacts: Vec<_> = scan.shards.iter().flat_map(|shard| &shard.artifacts).collect();
        let mut by_component: BTreeMap<String, BTreeMap<&[u8], usize>> = BTreeMap::new();
        for (at, artifact) in artifacts.iter().enumerate() {
            let of_component = by_component.entry(artifact.name.component()).or_default();
            of_component.insert(bytes_of(&artifact.root), at);
        }
        Self { sources: Sources::new(recombined, plan), artifacts, by_component }
    }

    /// The artifacts that bytes of `package` come from, in the order of shards and names. Texts and
    /// manifests that the run makes come from none.
    fn of(&self, package: &Package<FileSource>) -> Result<Vec<&'a Artifact>> {
        let mut found = BTreeSet::new();
        for source in package.entries.iter().filter_map(|entry| entry.node.data()) {
            self.add(source, &mut found)?;
        }
        Ok(found.into_iter().filter_map(|at| self.artifacts.get(at).copied()).collect())
    }

    fn add(&self, source: &FileSource, found: &mut BTreeSet<usize>) -> Result<()> {
        match source {
            FileSource::Host { component, .. }
            | FileSource::Fat { component, .. }
            | FileSource::Database { component, .. } => {
                let content = self.sources.original(source)?.unwrap_or_default();
                self.add_content(&content, component, None, found);
            }
            FileSource::Archive { archives, arch } => {
                let set = self.sources.archive_set(archives)?;
                let components: BTreeSet<&String> = set.binaries.iter().map(|(id, _)| id).collect();
                for kernel in self.sources.kernels(set).filter(|k| k.target.base() == arch) {
                    for component in &components {
                        self.add_content(&kernel.content, component, Some(&kernel.shard), found);
                    }
                }
            }
            FileSource::Manifest { .. } | FileSource::Text(_) | FileSource::Changelog(_) => {}
        }
        Ok(())
    }

    /// Adds the artifacts of the files that `content` comes from. Content without a source file, because it was
    /// assembled, adds all artifacts of its component, limited to one shard if that is known.
    fn add_content(
        &self,
        content: &Content,
        component: &str,
        shard: Option<&str>,
        found: &mut BTreeSet<usize>,
    ) {
        let known: BTreeSet<usize> =
            content.files().filter_map(|file| self.artifact_with(&file, component)).collect();
        if !known.is_empty() {
            return found.extend(known);
        }
        let of_component =
            self.by_component.get(component).into_iter().flatten().map(|(_, at)| *at);
        found.extend(of_component.filter(|at| {
            let artifact = self.artifacts.get(*at);
            shard.is_none_or(|shard| artifact.is_some_and(|artifact| artifact.shard == shard))
        }));
    }

    /// The artifact that `file` of `component` is in: below its folder, or a member of its archive, which is called
    /// `archive(member)`.
    fn artifact_with(&self, file: &Path, component: &str) -> Option<usize> {
        let (path, by_root) = (bytes_of(file), self.by_component.get(component)?);
        let ends = (0..path.len()).rev().filter(|at| matches!(path[*at], b'/' | b'('));
        let mut roots = ends.map(|at| &path[..at]).chain([path]);
        roots.find_map(|root| by_root.get(root)).copied()
    }
}

fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}
