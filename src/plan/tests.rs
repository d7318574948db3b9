use std::collections::BTreeSet;

use proptest::prelude::*;

use super::package::{Comparison, Formats, Relation, RelationKind, Role};
use super::*;
use crate::content::Content;
use crate::recombine::fixture::{Part, config, join, path, wrapper};
use crate::split::WrapperCode;

const GROUPS: &str = "[architecture_groups.gfx110X]\narchitectures = ['gfx1100', 'gfx1101']\n\
                      [architecture_groups.gfx120X]\narchitectures = ['gfx1200']\n";

fn options() -> PlanOptions {
    PlanOptions {
        version: Some("7.1.0".to_owned()),
        release: None,
        prefix: None,
        formats: vec![Format::Deb, Format::Rpm],
        only: Vec::new(),
        changelog_date: None,
    }
}

fn planned_with(parts: Vec<Part>, toml: &str, options: &PlanOptions) -> Result<Plan> {
    plan(&join(parts, toml)?, &config(toml), options)
}

fn planned(parts: Vec<Part>, toml: &str) -> Plan {
    planned_with(parts, toml, &options()).unwrap()
}

/// The error names everything in `parts`.
fn assert_refused(result: Result<Plan>, parts: &[&str]) {
    let error = result.unwrap_err();
    let others = error.others().iter().map(|e| format!("\n{e}"));
    let shown: String = std::iter::once(error.to_string()).chain(others).collect();
    for part in parts {
        assert!(shown.contains(part), "{part} is not in: {shown}");
    }
}

fn package<'a>(plan: &'a Plan, id: &str) -> &'a Package<Source> {
    let found = plan.packages.iter().find(|package| package.id == id);
    found.unwrap_or_else(|| panic!("{id} is not in {:?}", ids(plan)))
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.packages
        .iter()
        .map(|package| package.id.as_str())
        .collect()
}

/// The paths of a package in `format`, folders with a slash.
fn paths(package: &Package<Source>, format: Format) -> Vec<String> {
    let entries = package
        .entries
        .iter()
        .filter(|entry| entry.formats.has(format));
    let shown = entries.map(|entry| match &entry.node {
        Node::Directory { .. } => format!("{}/", entry.path),
        Node::Link { target } => format!("{} -> {target}", entry.path),
        Node::File { .. } => entry.path.to_string(),
    });
    shown.collect()
}

fn related(relations: &[Relation], kind: RelationKind) -> Vec<String> {
    let found = relations.iter().filter(|relation| relation.kind == kind);
    let shown = found.map(|relation| match &relation.version {
        Some((Comparison::Equal, version)) => format!("{} = {version}", relation.name),
        Some((_, version)) => format!("{} ? {version}", relation.name),
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
    plan.findings.iter().map(|finding| finding.code).collect()
}

fn units() -> Vec<WrapperCode> {
    let first = [("gfx1100", "a|1"), ("gfx1101", "a|2"), ("gfx1200", "a|3")];
    vec![wrapper(&first), wrapper(&[("gfx1100", "b|1")])]
}

/// A library with device code, a program, headers, tests and documents.
fn blas() -> Vec<Part> {
    let library = Part::new("one", "blas_lib_all")
        .fat("lib/librocblas.so.5", units())
        .link("lib/librocblas.so", "librocblas.so.5")
        .database("lib/rocblas/library/T_gfx1100.dat", "gfx1100", "1");
    let tests = [wrapper(&[("gfx1100", "t|1")])].to_vec();
    vec![
        library,
        Part::new("one", "blas_run_generic").program("bin/bench", "#!"),
        Part::new("one", "blas_dev_generic").plain("include/blas.h", "//"),
        Part::new("one", "blas_doc_generic").plain("share/doc/blas/README", "text"),
        Part::new("one", "blas_test_all").fat("bin/blas-test", tests),
    ]
}

#[test]
fn a_component_becomes_its_packages() {
    let plan = planned(blas(), GROUPS);
    let expected = [
        "rocm",
        "rocm-blas",
        "rocm-blas-all",
        "rocm-blas-dev",
        "rocm-blas-doc",
        "rocm-blas-gfx110x",
        "rocm-blas-gfx120x",
        "rocm-blas-tests",
        "rocm-blas-tests-gfx110x",
        "rocm-gfx110x",
        "rocm-gfx120x",
        "rocm-hosts",
    ];
    assert_eq!(ids(&plan), expected);
    let dev = package(&plan, "rocm-blas-dev");
    assert_eq!(dev.rpm.as_ref().unwrap().name, "rocm-blas-devel");
    assert_eq!(dev.deb.as_ref().unwrap().architecture, "all");
    assert_eq!(dev.rpm.as_ref().unwrap().arch, "noarch");
    assert_eq!(
        package(&plan, "rocm-blas")
            .deb
            .as_ref()
            .unwrap()
            .architecture,
        "amd64"
    );
}

#[test]
fn a_host_package_has_host_files_and_the_manifest() {
    let plan = planned(blas(), GROUPS);
    let host = package(&plan, "rocm-blas");
    let expected = [
        "opt/rocm-7.1/",
        "opt/rocm-7.1/bin/",
        "opt/rocm-7.1/bin/bench",
        "opt/rocm-7.1/lib/",
        "opt/rocm-7.1/lib/.kpack/",
        "opt/rocm-7.1/lib/.kpack/blas_lib.kpm",
        "opt/rocm-7.1/lib/librocblas.so -> librocblas.so.5",
        "opt/rocm-7.1/lib/librocblas.so.5",
    ];
    assert_eq!(paths(host, Format::Rpm), expected);
    let deb = paths(host, Format::Deb);
    for path in [
        "opt/",
        "usr/share/doc/rocm-blas/changelog.Debian.gz",
        "usr/share/doc/rocm-blas/copyright",
    ] {
        assert!(deb.contains(&path.to_owned()), "{deb:?}");
    }
    let library = host
        .entries
        .iter()
        .find(|e| e.path.name() == "librocblas.so.5")
        .unwrap();
    let expected = Source::Fat {
        component: "blas_lib".to_owned(),
        path: path("lib/librocblas.so.5"),
        archives: "blas_lib".to_owned(),
    };
    assert!(matches!(&library.node, Node::File { data, mode: 0o755 } if *data == expected));
}

#[test]
fn a_kernel_package_has_its_groups_device_code_only() {
    let plan = planned(blas(), GROUPS);
    let kernels = package(&plan, "rocm-blas-gfx110x");
    let expected = [
        "opt/rocm-7.1/",
        "opt/rocm-7.1/lib/",
        "opt/rocm-7.1/lib/.kpack/",
        "opt/rocm-7.1/lib/.kpack/blas_lib_gfx1100.kpack",
        "opt/rocm-7.1/lib/.kpack/blas_lib_gfx1101.kpack",
        "opt/rocm-7.1/lib/rocblas/",
        "opt/rocm-7.1/lib/rocblas/library/",
        "opt/rocm-7.1/lib/rocblas/library/T_gfx1100.dat",
    ];
    assert_eq!(paths(kernels, Format::Rpm), expected);
    let deb = paths(kernels, Format::Deb);
    assert!(deb.contains(&"usr/share/doc/rocm-blas-gfx110x -> rocm-blas".to_owned()));
    let control = kernels.deb.as_ref().unwrap();
    let field = (
        "X-ROCm-GPU-Architecture".to_owned(),
        "gfx1100 gfx1101".to_owned(),
    );
    assert_eq!(control.fields, [field]);
    assert_eq!(control.architecture, "amd64");
    let archs = vec!["gfx1100".to_owned(), "gfx1101".to_owned()];
    assert_eq!(
        kernels.role,
        Role::Kernels {
            group: "gfx110X".to_owned(),
            archs
        }
    );
    let sets: Vec<_> = plan.archives.iter().map(|set| set.name.as_str()).collect();
    assert_eq!(sets, ["blas_lib", "blas_test"]);
    assert_eq!(plan.archives[0].archs.len(), 3);
}

#[test]
fn relations_tie_kernels_to_their_host_and_nothing_to_other_gpus() {
    let plan = planned(blas(), GROUPS);
    let kernels = "rocm-blas-gfx110x";
    assert_eq!(
        deb_relations(&plan, kernels, RelationKind::Depends),
        ["rocm-blas = 7.1.0-1"]
    );
    assert_eq!(
        deb_relations(&plan, kernels, RelationKind::Enhances),
        ["rocm-blas"]
    );
    let provides = ["rocm-blas-kernels = 7.1.0-1"];
    assert_eq!(
        deb_relations(&plan, kernels, RelationKind::Provides),
        provides
    );
    let suggests = ["rocm-blas-gfx110x", "rocm-blas-gfx120x"];
    assert_eq!(
        deb_relations(&plan, "rocm-blas", RelationKind::Suggests),
        suggests
    );
    assert!(deb_relations(&plan, "rocm-blas", RelationKind::Recommends).is_empty());
    let dev = rpm_relations(&plan, "rocm-blas-dev", RelationKind::Depends);
    assert_eq!(dev, ["rocm-blas = 7.1.0-1"]);
}

#[test]
fn metapackages_name_sets() {
    let mut parts = blas();
    parts.push(Part::new("one", "core_lib_generic").plain("lib/core", "x"));
    let plan = planned(parts, GROUPS);
    let depends = |id| deb_relations(&plan, id, RelationKind::Depends);
    assert_eq!(depends("rocm-gfx110x"), ["rocm-blas-gfx110x = 7.1.0-1"]);
    assert_eq!(
        depends("rocm-hosts"),
        ["rocm-blas = 7.1.0-1", "rocm-core = 7.1.0-1"]
    );
    assert_eq!(
        depends("rocm"),
        ["rocm-blas-all = 7.1.0-1", "rocm-core = 7.1.0-1"]
    );
    let all = [
        "rocm-blas = 7.1.0-1",
        "rocm-blas-gfx110x = 7.1.0-1",
        "rocm-blas-gfx120x = 7.1.0-1",
    ];
    assert_eq!(depends("rocm-blas-all"), all);
    let meta = package(&plan, "rocm");
    assert_eq!(meta.role, Role::Meta);
    assert!(paths(meta, Format::Rpm).is_empty());
    let deb = meta.deb.as_ref().unwrap();
    assert_eq!(
        (deb.section.as_str(), deb.scripts.len()),
        ("metapackages", 0)
    );
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

#[test]
fn libraries_of_the_set_become_dependencies_within_a_group() {
    let fat = |artifact: &str, needed: &[&str]| {
        let file = format!("lib/lib{artifact}.so.1");
        let elf = library(&format!("lib{artifact}.so.1"), needed);
        Part::new("one", &format!("{artifact}_lib_all")).fat_of(&file, None, elf, units())
    };
    let wrap = library("libwrap.so.1", &["libblas.so.1", "libc.so.6"]);
    let parts = vec![
        fat("blas", &["libsolver.so.1"]),
        // A cycle, and a way through a library without device code.
        fat("solver", &["libwrap.so.1"]),
        Part::new("one", "wrap_lib_generic").content("lib/libwrap.so.1", None, wrap),
    ];
    let plan = planned(parts, GROUPS);
    for relations in [deb_relations, rpm_relations] {
        let depends = |id| relations(&plan, id, RelationKind::Depends);
        assert_eq!(depends("rocm-blas"), ["rocm-solver = 7.1.0-1"]);
        assert_eq!(depends("rocm-solver"), ["rocm-wrap = 7.1.0-1"]);
        let expected = ["rocm-blas = 7.1.0-1", "rocm-solver-gfx110x = 7.1.0-1"];
        assert_eq!(depends("rocm-blas-gfx110x"), expected);
        let expected = ["rocm-blas-gfx120x = 7.1.0-1", "rocm-solver = 7.1.0-1"];
        assert_eq!(depends("rocm-solver-gfx120x"), expected);
    }
}

#[test]
fn damaged_and_ambiguous_libraries_are_findings() {
    let whole = library("libx.so.1", &["liby.so.1"]);
    let cut = whole.slice(0..whole.len() - 1).unwrap();
    let with = |name: &str, file: &str, content: &Content| {
        Part::new("one", name).content(file, None, content.clone())
    };
    let plan = planned(vec![with("x_lib_generic", "lib/libx.so.1", &cut)], "");
    assert!(codes(&plan).contains(&Code::LibrariesUnreadable));
    let y = library("liby.so.1", &[]);
    let parts = vec![
        with("x_lib_generic", "lib/libx.so.1", &whole),
        with("y_lib_generic", "lib/y/liby.so.1", &y),
        with("z_lib_generic", "lib/z/liby.so.1", &y),
    ];
    let plan = planned(parts, "");
    assert!(codes(&plan).contains(&Code::LibraryAmbiguous));
    assert_eq!(
        deb_relations(&plan, "rocm-x", RelationKind::Depends),
        ["rocm-y = 7.1.0-1"]
    );
}

#[test]
fn the_runtime_is_needed_by_transformed_binaries_only() {
    let toml = "[runtime_relation]\ndeb = 'libamdhip64-7 (>= 7.1)'\nrpm = 'hip >= 7.1'\n";
    let mut parts = blas();
    parts.push(Part::new("one", "core_lib_generic").plain("lib/core", "x"));
    let plan = planned(parts, &format!("{toml}{GROUPS}"));
    assert_eq!(
        deb_relations(&plan, "rocm-blas", RelationKind::Depends),
        ["libamdhip64-7 ? 7.1"]
    );
    assert_eq!(
        rpm_relations(&plan, "rocm-blas", RelationKind::Depends),
        ["hip ? 7.1"]
    );
    assert!(deb_relations(&plan, "rocm-core", RelationKind::Depends).is_empty());
    assert!(!codes(&plan).contains(&Code::RuntimeUnset));
    assert!(codes(&planned(blas(), GROUPS)).contains(&Code::RuntimeUnset));
    let bad = format!("[runtime_relation]\ndeb = 'hip 7.1'\n{GROUPS}");
    let result = planned_with(blas(), &bad, &options());
    assert_refused(result, &["line 2, column 7", "`hip 7.1` is no relation"]);
}

#[test]
fn the_configuration_adds_relations() {
    let toml =
        "[relations.rocm-blas]\ndeb.conflicts = ['rocblas']\nrpm.obsoletes = ['rocblas < 7.1']\n";
    let plan = planned(blas(), &format!("{toml}{GROUPS}"));
    assert_eq!(
        deb_relations(&plan, "rocm-blas", RelationKind::Conflicts),
        ["rocblas"]
    );
    assert_eq!(
        rpm_relations(&plan, "rocm-blas", RelationKind::Obsoletes),
        ["rocblas ? 7.1"]
    );
    let typo = format!("[relations.rocm-blass]\ndeb.depends = ['x']\n{GROUPS}");
    assert_refused(
        planned_with(blas(), &typo, &options()),
        &["line 1", "no such package"],
    );
}

fn modules() -> Vec<Part> {
    let code = |name: &str| vec![wrapper(&[("gfx1100", name)])];
    let host = || Content::of_bytes(*b"host");
    let library = Part::new("one", "blas_lib_all")
        .fat_of("lib/librocblas.so.5", Some("rocBLAS"), host(), code("a"))
        .fat_of(
            "lib/librocsparse.so.1",
            Some("rocSPARSE"),
            host(),
            code("b"),
        )
        .link("lib/librocsparse.so", "librocsparse.so.1")
        .link("lib/sparse", "sparse-1")
        .content("lib/sparse-1/x", Some("rocSPARSE"), host())
        .folder("lib/empty");
    vec![library]
}

#[test]
fn selectors_cut_an_artifact_by_module() {
    let toml = "[selectors]\nrocm-sparse = [{artifact = 'blas', modules = ['rocSPARSE']}]\n\
                rocm-blas = [{artifact = 'blas'}]\n";
    let plan = planned(modules(), &format!("{toml}{GROUPS}"));
    let files = |id| {
        let entries = package(&plan, id).entries.iter();
        let files = entries.filter(|e| e.formats == Formats::All);
        let files = files.filter(|e| !matches!(e.node, Node::Directory { .. }));
        files
            .map(|e| e.path.as_str()["opt/rocm-7.1/".len()..].to_owned())
            .collect::<Vec<_>>()
    };
    let sparse = [
        "lib/.kpack/sparse_lib.kpm",
        "lib/librocsparse.so",
        "lib/librocsparse.so.1",
        "lib/sparse",
        "lib/sparse-1/x",
    ];
    assert_eq!(files("rocm-sparse"), sparse);
    assert_eq!(
        files("rocm-blas"),
        ["lib/.kpack/blas_lib.kpm", "lib/librocblas.so.5"]
    );
    assert_eq!(
        files("rocm-sparse-gfx110x"),
        ["lib/.kpack/sparse_lib_gfx1100.kpack"]
    );
    assert!(
        paths(package(&plan, "rocm-blas"), Format::Rpm)
            .contains(&"opt/rocm-7.1/lib/empty/".to_owned())
    );
    let binaries = |name: &str| {
        let set = plan.archives.iter().find(|set| set.name == name).unwrap();
        set.binaries
            .iter()
            .map(|(_, path)| path.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(binaries("sparse_lib"), ["lib/librocsparse.so.1"]);
    assert_eq!(binaries("blas_lib"), ["lib/librocblas.so.5"]);
}

#[test]
fn what_no_selector_takes_is_listed() {
    let toml = "[selectors]\nrocm-sparse = [{artifact = 'blas', modules = ['rocSPARSE']}]\n";
    let result = planned_with(modules(), &format!("{toml}{GROUPS}"), &options());
    assert_refused(result, &["blas_lib", "lib/librocblas.so.5", "lib/empty"]);
    let typo = "[selectors]\nrocm-x = [{artifact = 'blass'}]\nROCm_y = [{artifact = 'blas'}]\n";
    let result = planned_with(modules(), &format!("{typo}{GROUPS}"), &options());
    assert_refused(
        result,
        &[
            "line 2, column 23",
            "no artifact `blass`",
            "line 3",
            "`ROCm_y`",
        ],
    );
}

#[test]
fn a_path_belongs_to_one_package() {
    let with = |name: &str| Part::new("one", name).plain("lib/a", "x");
    let result = planned_with(
        vec![with("x_lib_generic"), with("x_dev_generic")],
        "",
        &options(),
    );
    assert_refused(result, &["lib/a", "rocm-x", "rocm-x-dev"]);
    let result = planned_with(
        vec![with("x_lib_generic"), with("x_run_generic")],
        "",
        &options(),
    );
    assert_refused(result, &["lib/a", "x_lib", "x_run"]);
    let below = Part::new("one", "y_lib_generic").plain("lib/a/b", "x");
    let result = planned_with(vec![with("x_lib_generic"), below], "", &options());
    assert_refused(result, &["lib/a/b", "rocm-y", "lies below lib/a"]);
    let folder = Part::new("one", "y_lib_generic").folder("lib/a");
    let result = planned_with(vec![with("x_lib_generic"), folder], "", &options());
    assert_refused(result, &["lib/a", "rocm-x", "rocm-y"]);
}

#[test]
fn names_that_meet_are_refused() {
    let with = |name: &str, file: &str| Part::new("one", name).plain(file, "x");
    let parts = vec![
        with("X_lib_generic", "lib/a"),
        with("x_lib_generic", "lib/b"),
    ];
    assert_refused(planned_with(parts, "", &options()), &["X, x", "rocm-x"]);
    let parts = vec![with("hosts_lib_generic", "lib/a")];
    assert_refused(
        planned_with(parts, "", &options()),
        &["two packages", "rocm-hosts"],
    );
    let parts = vec![with("a+b_lib_generic", "lib/a")];
    assert_refused(planned_with(parts, "", &options()), &["rocm-a+b"]);
}

#[test]
fn only_limits_the_set_without_changing_its_packages() {
    let mut parts = blas();
    parts.push(Part::new("one", "core_lib_generic").plain("lib/core", "x"));
    let all = planned(parts, GROUPS);
    for (only, expected) in [
        ("core", vec!["rocm-core"]),
        ("blas_dev", vec!["rocm-blas-dev"]),
        (
            "rocm-blas-tests",
            vec!["rocm-blas-tests", "rocm-blas-tests-gfx110x"],
        ),
        (
            "blas_lib",
            vec![
                "rocm-blas",
                "rocm-blas-all",
                "rocm-blas-gfx110x",
                "rocm-blas-gfx120x",
            ],
        ),
    ] {
        let mut parts = blas();
        parts.push(Part::new("one", "core_lib_generic").plain("lib/core", "x"));
        let options = PlanOptions {
            only: vec![only.to_owned()],
            ..options()
        };
        let plan = planned_with(parts, GROUPS, &options).unwrap();
        assert_eq!(ids(&plan), expected);
        for id in expected {
            assert_eq!(
                format!("{:?}", package(&plan, id)),
                format!("{:?}", package(&all, id))
            );
        }
    }
    let options = PlanOptions {
        only: vec!["blass".to_owned()],
        ..options()
    };
    assert_refused(
        planned_with(blas(), GROUPS, &options),
        &["no component `blass`"],
    );
}

#[test]
fn version_and_prefix_come_from_the_command_line_first() {
    let toml = format!("version = '6.4.1-rc2'\nrelease = '3'\n{GROUPS}");
    let none = PlanOptions {
        version: None,
        ..options()
    };
    let plan = planned_with(blas(), &toml, &none).unwrap();
    assert_eq!(plan.prefix.absolute(), "/opt/rocm-6.4");
    assert_eq!(
        package(&plan, "rocm").deb.as_ref().unwrap().version,
        "6.4.1~rc2-3"
    );
    let rpm = package(&plan, "rocm").rpm.as_ref().unwrap();
    assert_eq!(
        (rpm.version.as_str(), rpm.release.as_str()),
        ("6.4.1~rc2", "3")
    );
    let prefix = Some("/opt/other".to_owned());
    let plan = planned_with(
        blas(),
        &toml,
        &PlanOptions {
            prefix,
            ..options()
        },
    )
    .unwrap();
    assert_eq!(plan.prefix.absolute(), "/opt/other");
    assert_eq!(
        package(&plan, "rocm-blas").rpm.as_ref().unwrap().prefixes,
        ["/opt/other"]
    );
    let plan = planned_with(blas(), GROUPS, &none).unwrap();
    assert_eq!(plan.version.full(Format::Deb), "0.0.0-1");
    assert!(codes(&plan).contains(&Code::VersionUnset));
    let bad = format!("prefix = '/opt/rocm'\n{GROUPS}");
    assert_refused(
        planned_with(blas(), &bad, &options()),
        &["line 1, column 10", "symbolic link"],
    );
}

#[test]
fn a_format_that_is_not_wanted_leaves_nothing() {
    let rpm = PlanOptions {
        formats: vec![Format::Rpm],
        ..options()
    };
    let plan = planned_with(blas(), GROUPS, &rpm).unwrap();
    for package in &plan.packages {
        assert!(package.deb.is_none() && package.rpm.is_some());
        let documents = |path: &TreePath| path.as_str().starts_with("usr/");
        assert!(!package.entries.iter().any(|entry| documents(&entry.path)));
    }
    let none = PlanOptions {
        formats: Vec::new(),
        ..options()
    };
    assert!(planned_with(blas(), GROUPS, &none).is_err());
}

#[test]
fn empty_groups_and_dangling_links_are_findings() {
    let parts = vec![
        Part::new("one", "x_lib_generic")
            .plain("lib/x.so.1", "x")
            .link("lib/gone", "nowhere"),
        Part::new("one", "x_dev_generic")
            .link("lib/x.so", "x.so.1")
            .link("lib64", "lib")
            .link("through", "lib64/x.so")
            .link("lib/up", ".."),
    ];
    let plan = planned(parts, GROUPS);
    let found: Vec<_> = plan
        .findings
        .iter()
        .map(|f| (f.code, f.subject.as_str()))
        .collect();
    let expected = [
        (Code::LinkDangling, "x_lib lib/gone"),
        (Code::GroupEmpty, "gfx110X"),
        (Code::GroupEmpty, "gfx120X"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn summaries_and_descriptions_are_whole() {
    let plan = planned(blas(), GROUPS);
    for package in &plan.packages {
        assert!(package.summary.chars().count() <= 80 && !package.summary.ends_with('.'));
        assert!(!package.description.is_empty(), "{}", package.id);
        assert!(
            package
                .description
                .iter()
                .all(|p| p.ends_with('.') && !p.contains('\n'))
        );
    }
    let kernels = package(&plan, "rocm-blas-gfx110x");
    assert_eq!(kernels.summary, "ROCm component blas: GPU code for gfx110X");
    let long = format!(
        "[architecture_groups.{}]\narchitectures = ['gfx1100']",
        "x".repeat(60)
    );
    assert_refused(
        planned_with(blas(), &long, &options()),
        &["more than 80 characters"],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the components hold, every host path, code object's arch and database file is in
    /// exactly one package, and every folder of a path is in the same package before it.
    #[test]
    fn every_input_path_is_in_exactly_one_package(
        files in proptest::collection::btree_map("(bin|lib|share)/[a-c]{1,2}/[d-f]{1,3}", 0..6_usize, 1..20),
    ) {
        let names = ["x_lib_all", "x_run_all", "x_dev_all", "y_lib_all", "y_test_all", "z_doc_all"];
        let mut parts: Vec<Part> = names.iter().map(|name| Part::new("one", name)).collect();
        for (at, owner) in &files {
            let part = parts.remove(*owner);
            let part = match at.len() % 4 {
                0 => part.plain(at, at),
                1 => part.fat(at, units()),
                2 => part.link(at, "elsewhere"),
                _ => part.database(at, "gfx1101", at),
            };
            parts.insert(*owner, part);
        }
        let plan = planned(parts, GROUPS);
        for at in files.keys() {
            let at = path(&format!("opt/rocm-7.1/{at}"));
            let owners = plan.packages.iter().filter(|p| p.entries.iter().any(|e| e.path == at));
            prop_assert_eq!(owners.count(), 1, "{}", at);
        }
        for package in &plan.packages {
            let mut seen = BTreeSet::new();
            for entry in &package.entries {
                prop_assert!(entry.path.parent().is_none_or(|above| seen.contains(&above)));
                prop_assert!(seen.insert(entry.path.clone()));
            }
        }
    }
}
