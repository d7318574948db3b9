//! Turns the plan's package into an `.rpm`: dependencies, scriptlets, and the file name.

use ::rpm::DependencyFlags;
use rockpack_archive::package_file;
use rockpack_archive::rpm::{
    self, Dependency, DependencyKind, RpmSpecification, Scriptlet, ScriptletPhase, installed_size,
};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Kind, Result};

use super::options::EmitOptions;
use super::prepared::{Prepared, check_file_name, payload_entries, time};
use super::{compressor, text};
use rockpack_package::{
    ChangelogEntry, Comparison, Format, Package, Relation, RelationKind, RpmControl,
};
use rockpack_signing::header_signer;

/// Decides everything that does not depend on the content of files.
pub(super) fn prepare(
    package: &Package<Content>,
    control: &RpmControl,
    options: &EmitOptions<'_>,
) -> Result<Prepared> {
    let entries = payload_entries(package, Format::Rpm)?;
    let installed_size = installed_size(&entries);
    let specification = RpmSpecification {
        name: control.name.clone(),
        epoch: control.epoch,
        version: control.version.clone(),
        release: control.release.clone(),
        arch: control.arch.clone(),
        summary: package.summary.clone(),
        description: text::wrapped(&package.description).join("\n"),
        group: control.group.clone(),
        license: control.license.clone(),
        url: package.homepage.clone(),
        vendor: control.vendor.clone(),
        packager: control.packager.clone(),
        prefixes: control.prefixes.clone(),
        dependencies: all_dependencies(control)?,
        scriptlets: scriptlets(control)?,
        changes: control.changes.iter().map(|change| stated(change, control)).collect(),
        entries,
        mtime: time("content date", options.content_date)?,
        build_time: time("SOURCE_DATE_EPOCH", options.source_date_epoch)?,
        signer: options.signer.map(|s| header_signer(s, options.source_date_epoch)).transpose()?,
        compression: options.compression,
        workers: compressor::workers(package.formats(), options),
    };
    Ok(Prepared {
        format: Format::Rpm,
        file_name: check_file_name(control.file_name())?,
        installed_size,
        specification: package_file::PackageSpecification::Rpm(Box::new(specification)),
    })
}

/// The stated dependencies and the discovered ones, which carry rpmbuild's flags for its generators.
fn all_dependencies(control: &RpmControl) -> Result<Vec<Dependency>> {
    let mut all = dependencies(&control.relations)?;
    for mut found in dependencies(&control.discovered)? {
        let mark = match found.kind {
            DependencyKind::Provides => DependencyFlags::FIND_PROVIDES,
            _ => DependencyFlags::FIND_REQUIRES,
        };
        let (flags, version) = found.version.unwrap_or((DependencyFlags::ANY, String::new()));
        found.version = Some((flags | mark, version));
        all.push(found);
    }
    Ok(all)
}

fn dependencies(relations: &[Relation]) -> Result<Vec<Dependency>> {
    Faults::all(relations.iter().map(|relation| {
        let kind = kind(relation.kind).ok_or_else(|| {
            let message = format!("{:?} {} has no tag in an .rpm", relation.kind, relation.name);
            Error::new(Kind::Bug, message)
        })?;
        Ok(Dependency {
            kind,
            name: relation.name.clone(),
            version: relation.version.as_ref().map(|(c, text)| (flags(*c), text.clone())),
        })
    }))
}

fn kind(kind: RelationKind) -> Option<DependencyKind> {
    Some(match kind {
        RelationKind::Depends => DependencyKind::Requires,
        RelationKind::Recommends => DependencyKind::Recommends,
        RelationKind::Suggests => DependencyKind::Suggests,
        RelationKind::Enhances => DependencyKind::Enhances,
        RelationKind::Supplements => DependencyKind::Supplements,
        RelationKind::Provides => DependencyKind::Provides,
        RelationKind::Conflicts => DependencyKind::Conflicts,
        RelationKind::Obsoletes => DependencyKind::Obsoletes,
        RelationKind::PreDepends | RelationKind::Breaks | RelationKind::Replaces => return None,
    })
}

fn flags(comparison: Comparison) -> DependencyFlags {
    match comparison {
        Comparison::Less => DependencyFlags::LESS,
        Comparison::LessEqual => DependencyFlags::LE,
        Comparison::Equal => DependencyFlags::EQUAL,
        Comparison::GreaterEqual => DependencyFlags::GE,
        Comparison::Greater => DependencyFlags::GREATER,
    }
}

/// The changelog entry in the form of a spec file: the version follows the author.
fn stated(change: &ChangelogEntry, control: &RpmControl) -> rpm::RpmChange {
    let RpmControl { version, release, .. } = control;
    rpm::RpmChange {
        time: change.time,
        author: format!("{} - {version}-{release}", change.author),
        text: change.text.clone(),
    }
}

fn scriptlets(control: &RpmControl) -> Result<Vec<Scriptlet>> {
    let scriptlets = control.scripts.iter().map(|(name, (interpreter, text))| {
        let phase = ScriptletPhase::of_name(name)
            .ok_or_else(|| Error::bug(format!("rpm knows no scriptlet {name}")))?;
        Ok(Scriptlet { phase, interpreter: interpreter.clone(), text: text.clone() })
    });
    scriptlets.collect()
}
