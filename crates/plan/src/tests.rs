mod packages;
mod placed_once;
mod rules;
mod schemes;
mod shared;
mod upgrades;

use std::iter;

use clap::{Args, Command, FromArgMatches};
use rockpack_core::content::Content;
use rockpack_core::tree::{Node, TreePath};

use super::package_list::StagePrefixes;
use super::*;
use crate::config::{Config, KeyOptions, Scheme};
use crate::recombine::fixture::{ArtifactBuilder, config, join, path, wrapper};
use rockpack_distribution::Distributions;
use rockpack_package::{
    Comparison, Format, Formats, Package, Relation, RelationKind, Role, Version,
};
use rockpack_report::Code;
use rockpack_split::WrapperCode;

const GROUPS: &str = "[architecture_groups.gfx110X]\narchitectures = ['gfx1100', 'gfx1101']\n\
                      [architecture_groups.gfx120X]\narchitectures = ['gfx1200']\n";

/// Options as on the command line.
#[derive(Clone)]
struct Options {
    scheme: Option<Scheme>,
    list: Option<(PackageList, StagePrefixes)>,
    version: Option<String>,
    prefix: Option<String>,
    formats: Vec<Format>,
    only: Vec<String>,
    since: Vec<Listing>,
}

fn options() -> Options {
    Options {
        scheme: None,
        list: None,
        version: Some("7.1.0".to_owned()),
        prefix: None,
        formats: vec![Format::Deb, Format::Rpm],
        only: Vec::new(),
        since: Vec::new(),
    }
}

impl Options {
    /// The options that are configuration keys.
    fn given(&self) -> KeyOptions {
        let command = KeyOptions::augment_args(Command::new("keys"));
        let options = [("--version", &self.version), ("--prefix", &self.prefix)];
        let given = options.into_iter().filter_map(|(option, text)| Some([option, text.as_ref()?]));
        let words: Vec<&str> = iter::once("keys").chain(given.flatten()).collect();
        KeyOptions::from_arg_matches(&command.get_matches_from(words)).unwrap()
    }

    fn setting(&self, mut config: Config) -> Result<PlanSettings> {
        config.override_keys(&self.given())?;
        let keys = &config.keys;
        let [versions, releases] = [&keys.version, &keys.release]
            .map(|given| Format::ALL.map(|format| given.value(format).unwrap()));
        let mut version = Version::of_formats(versions, releases)?.with_epoch(keys.epoch);
        let tags = &keys.distribution_tag;
        for (format, tag) in [(Format::Deb, &tags.deb), (Format::Rpm, &tags.rpm)] {
            version = tag.iter().try_fold(version, |it, tag| it.with_tag(format, tag))?;
        }
        let names = match &self.scheme {
            Some(scheme) => Naming::new(scheme.clone(), &version, None)?,
            None => Naming::new(Scheme::shipped(&keys.scheme)?, &version, keys.variant.as_deref())?,
        };
        let prefix = match &keys.prefix {
            Some(prefix) if self.scheme.is_none() => {
                Prefix::new(prefix).map_err(|error| config.located(&["prefix"], &error))?
            }
            _ => Prefix::new(&names.prefix()?)?,
        };
        let distributions = Distributions::defaults()?;
        let (formats, only) = (self.formats.clone(), self.only.clone());
        PlanSettings::new(Choices {
            config,
            version,
            names,
            prefix,
            findings: Findings::default(),
            distributions,
            formats,
            only,
            changelog_date: None,
        })
    }
}

fn planned_with(parts: Vec<ArtifactBuilder>, toml: &str, options: &Options) -> Result<Plan> {
    let list = options
        .list
        .as_ref()
        .map(|(list, prefixes)| PackageListOwners::new(list, prefixes.clone()));
    let setting = options.setting(config(toml))?;
    plan(&join(parts, toml)?, &setting, list.as_ref(), &options.since)
}

fn planned(parts: Vec<ArtifactBuilder>, toml: &str) -> Plan {
    planned_with(parts, toml, &options()).unwrap()
}

/// Asserts that the error names everything in `parts`.
fn assert_refused(result: Result<Plan>, parts: &[&str]) {
    let error = result.unwrap_err();
    let others = error.others().iter().map(|e| format!("\n{e}"));
    let shown: String = std::iter::once(error.to_string()).chain(others).collect();
    for part in parts {
        assert!(shown.contains(part), "{part} is not in: {shown}");
    }
}

fn package<'a>(plan: &'a Plan, id: &str) -> &'a Package<FileSource> {
    let found = plan.packages.iter().find(|package| package.id == id);
    found.unwrap_or_else(|| panic!("{id} is not in {:?}", ids(plan)))
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.packages.iter().map(|package| package.id.as_str()).collect()
}

/// The paths of a package in `format`, folders with a slash.
fn paths(package: &Package<FileSource>, format: Format) -> Vec<String> {
    let entries = package.entries.iter().filter(|entry| entry.formats.has(format));
    let shown = entries.map(|entry| match &entry.node {
        Node::Directory { .. } => format!("{}/", entry.path),
        Node::Link { target } => format!("{} -> {target}", entry.path),
        Node::File { .. } => entry.path.to_string(),
    });
    shown.collect()
}

/// The relations of a kind; `rocm-blas of 7.1.0-1` means both bounds of a relation on any release of a patch
/// version from this one on.
fn related(relations: &[Relation], kind: RelationKind) -> Vec<String> {
    let next = (Comparison::Less, "7.1.1~".to_owned());
    let (before_next, found): (Vec<&Relation>, Vec<&Relation>) = relations
        .iter()
        .filter(|relation| relation.kind == kind)
        .partition(|relation| relation.version.as_ref() == Some(&next));
    let shown = found.into_iter().map(|relation| match &relation.version {
        Some((Comparison::GreaterEqual, version))
            if before_next.iter().any(|other| other.name == relation.name) =>
        {
            format!("{} of {version}", relation.name)
        }
        Some((comparison, version)) => {
            format!("{} {} {version}", relation.name, comparison.as_str())
        }
        None => relation.name.clone(),
    });
    shown.collect()
}

fn deb_relations(plan: &Plan, id: &str, kind: RelationKind) -> Vec<String> {
    related(&package(plan, id).deb.as_ref().unwrap().relations, kind)
}

fn rpm_relations(plan: &Plan, id: &str, kind: RelationKind) -> Vec<String> {
    related(&package(plan, id).rpm.as_ref().unwrap().relations, kind)
}

fn codes(plan: &Plan) -> Vec<Code> {
    plan.findings.iter().filter_map(|finding| finding.code()).collect()
}

fn units() -> Vec<WrapperCode> {
    let first = [("gfx1100", "a|1"), ("gfx1101", "a|2"), ("gfx1200", "a|3")];
    vec![wrapper(&first), wrapper(&[("gfx1100", "b|1")])]
}

/// A library with device code, a program, headers, tests and documents.
fn blas() -> Vec<ArtifactBuilder> {
    let library = ArtifactBuilder::new("one", "blas_lib_all")
        .fat("lib/librocblas.so.5", units())
        .link("lib/librocblas.so", "librocblas.so.5")
        .database("lib/rocblas/library/T_gfx1100.dat", "gfx1100", "1");
    let tests = [wrapper(&[("gfx1100", "t|1")])].to_vec();
    vec![
        library,
        ArtifactBuilder::new("one", "blas_run_generic").program("bin/bench", "#!"),
        ArtifactBuilder::new("one", "blas_dev_generic").plain("include/blas.h", "//"),
        ArtifactBuilder::new("one", "blas_doc_generic").plain("share/doc/blas/README", "text"),
        ArtifactBuilder::new("one", "blas_test_all").fat("bin/blas-test", tests),
    ]
}

/// A library with a dynamic section of the given names: header, two segments, entries, strings.
fn library(soname: &str, needed: &[&str]) -> Content {
    let mut strings = vec![0];
    let mut tags: Vec<(u64, u64)> = Vec::new();
    let names = needed.iter().map(|name| (1, *name)).chain([(14, soname)]);
    for (tag, name) in names {
        tags.push((tag, strings.len() as u64));
        strings.extend(name.bytes().chain([0]));
    }
    let start = 64 + 2 * 56;
    let dynamic_len = (tags.len() as u64 + 3) * 16;
    tags.extend([(5, start + dynamic_len), (10, strings.len() as u64), (0, 0)]);
    let len = start + dynamic_len + strings.len() as u64;
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    for value in [0, 64, 0] {
        bytes.extend(u64::to_le_bytes(value));
    }
    bytes.extend([0, 0, 0, 0, 64, 0, 56, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    for (kind, offset, size) in [(1_u64, 0, len), (2, start, dynamic_len)] {
        for value in [kind, offset, offset, offset, size, size, 8] {
            bytes.extend(u64::to_le_bytes(value));
        }
    }
    for (tag, value) in tags {
        bytes.extend(u64::to_le_bytes(tag));
        bytes.extend(u64::to_le_bytes(value));
    }
    bytes.extend(strings);
    Content::of_bytes(bytes)
}
