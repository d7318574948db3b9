//! Compares a package with its entry in the index.

use std::collections::BTreeSet;

use rockpack_archive::rpm::{MissingDigest, RpmFront, missing_digest};
use rockpack_archive::rpm_md;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rpm::{IndexTag, PackageMetadata};

use super::lists::{RpmEntry, RpmFiles, paths_digest};
use crate::problem::Problem;
use rockpack_signing::Trust;

/// Of the required symbol versions of this library, createrepo_c keeps only the newest.
const LIBC: &str = "libc.so.6";

/// A result of the comparison.
pub(super) enum Observation {
    Fault(Problem),
    GoodSignature,
    /// The path of a package without a signature.
    Unsigned(String),
    /// The digest for rpm 6 that a package lacks, and its path.
    WithoutDigest(MissingDigest, String),
}

/// The properties of a package that differ from its entry; `files` are those in the index. Adds other observations to
/// `seen`.
pub(super) fn compare(
    content: &Content,
    package: &RpmEntry,
    files: Option<&RpmFiles>,
    trust: &Trust,
    seen: &mut Vec<Observation>,
) -> Result<Vec<&'static str>> {
    let front = RpmFront::read(content)?;
    let metadata = &front.metadata;
    let has_epoch = metadata.header.entry_is_present(IndexTag::RPMTAG_EPOCH);
    let epoch = if has_epoch { metadata.get_epoch().map_err(bad_tags)? } else { 0 };
    let version = metadata.get_version().map_err(bad_tags)?;
    let release = metadata.get_release().map_err(bad_tags)?;
    let range = [front.header.start, front.header.end].map(|at| at.to_string());
    let stated_range = package.header_range.as_ref();
    let is_source = metadata.is_source_package();
    let mut checks = vec![
        ("size", package.size == content.len().to_string()),
        ("checksum's type", package.checksum_type == "sha256"),
        ("checksum", package.checksum == front.digest(content)?.to_string()),
        ("name", package.name == metadata.get_name().map_err(bad_tags)?),
        ("arch", is_source || package.arch == metadata.get_arch().map_err(bad_tags)?),
        ("version", package.version == [&*epoch.to_string(), version, release]),
        ("header range", stated_range.is_none_or(|stated| *stated == range)),
    ];
    checks.extend(compare_dependencies(package, metadata)?);
    if let Some(files) = files {
        let paths = metadata.get_file_paths().map_err(bad_tags)?;
        let own: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
        let digest = paths_digest(own.iter().map(|path| &**path).collect());
        checks.push(("list of files", digest == files.digest));
    }
    seen.extend(signature(content, &package.path, &front, trust)?);
    let missing = missing_digest(metadata).into_iter();
    seen.extend(missing.map(|digest| Observation::WithoutDigest(digest, package.path.clone())));
    Ok(checks.into_iter().filter(|(_, is_same)| !is_same).map(|(what, _)| what).collect())
}

/// Compares all relations with those of the index, which may omit requirements that the package itself meets, features
/// of rpm, and older versions of libc.
fn compare_dependencies(
    package: &RpmEntry,
    metadata: &PackageMetadata,
) -> Result<Vec<(&'static str, bool)>> {
    let provided = metadata.get_provides().unwrap_or_default().into_iter().map(|it| it.name);
    let paths = metadata.get_file_paths().unwrap_or_default().into_iter();
    let paths = paths.filter_map(|path| path.into_os_string().into_string().ok());
    let itself: BTreeSet<String> = provided.chain(paths).collect();
    let all = [
        ("provides", "rpm:provides", metadata.get_provides()),
        ("requires", "rpm:requires", metadata.get_requires()),
        ("conflicts", "rpm:conflicts", metadata.get_conflicts()),
        ("obsoletes", "rpm:obsoletes", metadata.get_obsoletes()),
        ("recommends", "rpm:recommends", metadata.get_recommends()),
        ("supplements", "rpm:supplements", metadata.get_supplements()),
        ("suggests", "rpm:suggests", metadata.get_suggests()),
        ("enhances", "rpm:enhances", metadata.get_enhances()),
    ];
    let checks = all.into_iter().map(|(what, element, relations)| {
        let relations = relations.map_err(bad_tags)?;
        let own: BTreeSet<RelationLine<'_>> = relations.iter().map(line).collect();
        let stated = package.list(element).iter().map(|entry| {
            let evr = if entry.flags.is_empty() { "" } else { &*entry.evr };
            (&*entry.name, &*entry.flags, evr)
        });
        let stated: BTreeSet<RelationLine<'_>> = stated.collect();
        let has_libc = stated.iter().any(|(name, ..)| name.starts_with(LIBC));
        let may_lack = |(name, ..): &&RelationLine<'_>| {
            let less = name.starts_with(LIBC) && has_libc;
            what == "requires" && (less || name.starts_with("rpmlib(") || itself.contains(*name))
        };
        let lost = own.difference(&stated).filter(|line| !may_lack(line)).count();
        let more = stated.difference(&own).count();
        Ok((what, lost + more == 0))
    });
    checks.collect()
}

/// The name, comparison and version of a dependency; the last two are empty without a version.
type RelationLine<'a> = (&'a str, &'a str, &'a str);

fn line(dependency: &rpm::Dependency) -> RelationLine<'_> {
    let Some(sign) = rpm_md::sign(dependency.flags) else { return (&dependency.name, "", "") };
    let version = dependency.version.as_str();
    (&dependency.name, sign, version.strip_prefix("0:").unwrap_or(version))
}

/// Checks the signature of the header; `None` for a signed package if there are no keys.
fn signature(
    content: &Content,
    file: &str,
    front: &RpmFront,
    trust: &Trust,
) -> Result<Option<Observation>> {
    let bad = |e: rpm::Error| Error::malformed("has a bad signature tag").cause(e);
    let signatures = front.metadata.raw_signatures().map_err(bad)?;
    if signatures.is_empty() {
        // Without keys, a signature of header and payload counts as well: neither is checked.
        let other = [1002_u32, 1005].map(|tag| front.metadata.signature.entry_is_present(tag));
        let accepted = trust.keys.is_empty() && other.contains(&true);
        return Ok((!accepted).then(|| Observation::Unsigned(file.to_owned())));
    }
    if trust.keys.is_empty() {
        return Ok(None);
    }
    let header = content.read_vec(front.header.clone(), u64::MAX, "rpm header")?;
    Ok(Some(match trust.check_packets(&signatures, &header) {
        Ok(()) => Observation::GoodSignature,
        Err(error) => {
            let (file, reason) = (file.to_owned(), format!("its header {error}"));
            Observation::Fault(Problem::BadSignature { file, reason })
        }
    }))
}

fn bad_tags(error: rpm::Error) -> Error {
    Error::malformed("has invalid tags").cause(error)
}
