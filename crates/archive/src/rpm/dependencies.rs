//! Dependencies: those that the plan states, and those that follow from the package itself.
//!
//! The latter, as from rpmbuild: the package's own name with its version, and with the architecture in
//! parentheses; `config(name)` if it has configuration files; the interpreter of each scriptlet; and an
//! `rpmlib(…)` requirement for each feature of rpm that the package needs. All lists are sorted by name,
//! version and flags, each line once.

use std::collections::BTreeSet;

use rpm::{DependencyFlags as Flags, IndexData, IndexTag};

use super::header::Tag;
use super::specification::RpmSpecification;
use crate::payload::Treatment;
use crate::relation::{Comparison, Relation, RelationKind};
use rockpack_core::compression::Method;

/// Every list with its tags for names, versions and flags.
pub(super) const LISTS: [(RelationKind, IndexTag, IndexTag, IndexTag); 8] = {
    use IndexTag::*;
    use RelationKind::*;
    [
        (Provides, RPMTAG_PROVIDENAME, RPMTAG_PROVIDEVERSION, RPMTAG_PROVIDEFLAGS),
        (Depends, RPMTAG_REQUIRENAME, RPMTAG_REQUIREVERSION, RPMTAG_REQUIREFLAGS),
        (Conflicts, RPMTAG_CONFLICTNAME, RPMTAG_CONFLICTVERSION, RPMTAG_CONFLICTFLAGS),
        (Obsoletes, RPMTAG_OBSOLETENAME, RPMTAG_OBSOLETEVERSION, RPMTAG_OBSOLETEFLAGS),
        (Recommends, RPMTAG_RECOMMENDNAME, RPMTAG_RECOMMENDVERSION, RPMTAG_RECOMMENDFLAGS),
        (Suggests, RPMTAG_SUGGESTNAME, RPMTAG_SUGGESTVERSION, RPMTAG_SUGGESTFLAGS),
        (Supplements, RPMTAG_SUPPLEMENTNAME, RPMTAG_SUPPLEMENTVERSION, RPMTAG_SUPPLEMENTFLAGS),
        (Enhances, RPMTAG_ENHANCENAME, RPMTAG_ENHANCEVERSION, RPMTAG_ENHANCEFLAGS),
    ]
};

/// A line of a list: name, version, flags. Lists are sorted by it.
type Line = (String, String, u32);

/// The tags of all lists that are not empty; Provides never is.
pub(super) fn tags(specification: &RpmSpecification) -> Vec<Tag> {
    let mut tags = Vec::new();
    for (kind, names, versions, flags) in LISTS {
        let mut lines: BTreeSet<Line> = stated(specification, kind).collect();
        match kind {
            RelationKind::Provides => {
                let (name, evr) = (&specification.name, specification.evr());
                let equal = Flags::EQUAL.bits();
                if let Some(isa) = isa(&specification.arch) {
                    lines.insert((format!("{name}({isa})"), evr.clone(), equal));
                }
                lines.insert((name.clone(), evr, equal));
                lines.extend(config(specification));
            }
            RelationKind::Depends => {
                let flags = (Flags::RPMLIB | Flags::LE).bits();
                for (name, since) in features(specification) {
                    lines.insert((format!("rpmlib({name})"), since.to_owned(), flags));
                }
                lines.extend(config(specification));
                lines.extend(interpreters(specification));
            }
            _ => {}
        }
        if lines.is_empty() {
            continue;
        }
        let all_names = lines.iter().map(|line| line.0.clone()).collect();
        let all_versions = lines.iter().map(|line| line.1.clone()).collect();
        let bits = lines.iter().map(|line| line.2).collect();
        tags.push((names, IndexData::StringArray(all_names)));
        tags.push((versions, IndexData::StringArray(all_versions)));
        tags.push((flags, IndexData::Int32(bits)));
    }
    tags
}

/// The relations of a kind; the discovered ones carry rpmbuild's flags for its generators.
fn stated(specification: &RpmSpecification, kind: RelationKind) -> impl Iterator<Item = Line> {
    let mark = match kind {
        RelationKind::Provides => Flags::FIND_PROVIDES,
        _ => Flags::FIND_REQUIRES,
    };
    let stated = specification.relations.iter().map(|relation| (relation, Flags::ANY));
    let found = specification.discovered.iter().map(move |relation| (relation, mark));
    stated.chain(found).filter(move |(relation, _)| relation.kind == kind).map(line)
}

fn line((relation, mark): (&Relation, Flags)) -> Line {
    let (comparison, version) = relation.version.clone().unzip();
    let sign = comparison.map_or(Flags::ANY, Comparison::flags);
    (relation.name.clone(), version.unwrap_or_default(), (sign | mark).bits())
}

fn isa(arch: &str) -> Option<&'static str> {
    match arch {
        "x86_64" => Some("x86-64"),
        "aarch64" => Some("aarch-64"),
        _ => None,
    }
}

fn config(specification: &RpmSpecification) -> Option<Line> {
    let any = specification.entries.iter().any(|entry| entry.treatment == Treatment::Config);
    let flags = (Flags::EQUAL | Flags::CONFIG).bits();
    let name = format!("config({})", specification.name);
    any.then(|| (name, specification.evr(), flags))
}

/// One line per interpreter and phase, except for `<lua>`, which is built into rpm.
fn interpreters(specification: &RpmSpecification) -> impl Iterator<Item = Line> {
    specification.scriptlets.iter().filter_map(|scriptlet| {
        let program = scriptlet.interpreter.split(' ').next()?;
        let flags = Flags::INTERP | scriptlet.phase.flag;
        (program != "<lua>").then(|| (program.to_owned(), String::new(), flags.bits()))
    })
}

/// The features of rpm that the package uses, each with the version that introduced it.
fn features(specification: &RpmSpecification) -> Vec<(&'static str, &'static str)> {
    let mut found = vec![
        ("CompressedFileNames", "3.0.4-1"),
        ("FileDigests", "4.6.0-1"),
        ("PayloadFilesHavePrefix", "4.0-1"),
    ];
    match specification.compression.method() {
        Method::Zstd => found.push(("PayloadIsZstd", "5.4.18-1")),
        Method::Xz => found.push(("PayloadIsXz", "5.2-1")),
        // rockpack writes none of these, so they need no feature.
        Method::Gzip | Method::Stored | Method::Lzma => {}
    }
    if specification.has_large_files() {
        found.push(("LargeFiles", "4.12.0-1"));
    }
    if specification.scriptlets.iter().any(|scriptlet| scriptlet.interpreter == "<lua>") {
        found.push(("BuiltinLuaScripts", "4.2.2-1"));
    }
    let relations = specification.all_relations();
    if relations.clone().any(|relation| relation.name.starts_with('(')) {
        found.push(("RichDependencies", "4.12.0-1"));
    }
    let evr = specification.evr();
    let bounds = relations.filter_map(|relation| relation.version.as_ref());
    let versions: Vec<&str> = bounds.map(|(_, text)| text.as_str()).chain([evr.as_str()]).collect();
    if versions.iter().any(|version| version.contains('~')) {
        found.push(("TildeInVersions", "4.10.0-1"));
    }
    if versions.iter().any(|version| version.contains('^')) {
        found.push(("CaretInVersions", "4.15.0-1"));
    }
    found
}
