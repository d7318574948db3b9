//! Tests of selectors, conflicts, limits, versions, and rules for any input.

use super::*;

fn modules() -> Vec<ArtifactBuilder> {
    let library = ArtifactBuilder::new("one", "blas_lib_all")
        .fat_of("lib/librocblas.so.5", Some("rocBLAS"), vec![wrapper(&[("gfx1100", "a")])])
        .fat_of("lib/librocsparse.so.1", Some("rocSPARSE"), vec![wrapper(&[("gfx1100", "b")])])
        .link("lib/librocsparse.so", "librocsparse.so.1")
        .link("lib/sparse", "sparse-1")
        .content("lib/sparse-1/x", Some("rocSPARSE"), Content::of_bytes(*b"host"))
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
        let files = entries
            .filter(|e| e.formats == Formats::All)
            .filter(|e| !matches!(e.node, Node::Directory { .. }));
        files.map(|e| e.path.as_str()["opt/rocm-7.1/".len()..].to_owned()).collect::<Vec<_>>()
    };
    let sparse = [
        "lib/.kpack/sparse_lib.kpm",
        "lib/librocsparse.so",
        "lib/librocsparse.so.1",
        "lib/sparse",
        "lib/sparse-1/x",
    ];
    assert_eq!(files("rocm-sparse"), sparse);
    assert_eq!(files("rocm-blas"), ["lib/.kpack/blas_lib.kpm", "lib/librocblas.so.5"]);
    assert_eq!(files("rocm-sparse-gfx110x"), ["lib/.kpack/sparse_lib_gfx1100.kpack"]);
    assert!(
        paths(package(&plan, "rocm-blas"), Format::Rpm)
            .contains(&"opt/rocm-7.1/lib/empty/".to_owned())
    );
    assert_eq!(binaries(&plan, "sparse_lib"), ["lib/librocsparse.so.1"]);
    assert_eq!(binaries(&plan, "blas_lib"), ["lib/librocblas.so.5"]);
}

/// The binaries of an archive set.
fn binaries(plan: &Plan, name: &str) -> Vec<String> {
    let set = plan.archives.iter().find(|set| set.name == name).unwrap();
    set.binaries.iter().map(|(_, path)| path.to_string()).collect()
}

#[test]
fn a_database_file_goes_to_the_group_of_its_archs() {
    let library = ArtifactBuilder::new("one", "blas_lib_all").fat("lib/a", units()).database(
        "lib/d",
        "gfx1100,gfx1101,gfx906",
        "1",
    );
    let plan = planned(vec![library], GROUPS);
    let path = path("opt/rocm-7.1/lib/d");
    let kernels = package(&plan, "rocm-blas-gfx110x");
    assert!(kernels.entries.iter().any(|entry| entry.path == path));
}

#[test]
fn what_no_selector_takes_is_listed() {
    let toml = "[selectors]\nrocm-sparse = [{artifact = 'blas', modules = ['rocSPARSE']}]\n";
    let result = planned_with(modules(), &format!("{toml}{GROUPS}"), &options());
    assert_refused(result, &["blas_lib", "lib/librocblas.so.5", "lib/empty"]);
    for (typo, expected) in [
        ("rocm-x = [{artifact = 'blass'}]", ["line 2, column 23", "no artifact `blass`"]),
        ("ROCm_y = [{artifact = 'blas'}]", ["line 2, column 10", "`ROCm_y`"]),
    ] {
        let toml = format!("[selectors]\n{typo}\n{GROUPS}");
        assert_refused(planned_with(modules(), &toml, &options()), &expected);
    }
}

#[test]
fn selectors_that_claim_the_same_are_refused() {
    let sparse = "{artifact = 'blas', modules = ['rocSPARSE']";
    let rest = "rocm-blas = [{artifact = 'blas'}]\n";
    let both = format!("rocm-a = [{sparse}}}]\nrocm-b = [{sparse}}}]\n{rest}");
    assert_selectors_refused(&both, &["line 3, column 42", "`rocSPARSE`", "is already in rocm-a"]);
    let overlap =
        format!("rocm-a = [{sparse}, kinds = ['lib', 'dev']}}]\nrocm-b = [{sparse}}}]\n{rest}");
    assert_selectors_refused(&overlap, &["line 3, column 42", "is already in rocm-a"]);
    let hidden = format!("{rest}rocm-sparse = [{sparse}}}]\n");
    let reason = "matches nothing: an earlier selector of rocm-blas takes it all";
    assert_selectors_refused(&hidden, &["line 3, column 16", reason]);
    let twice = format!("{rest}rocm-all = [{{artifact = 'blas'}}]\n");
    assert_selectors_refused(&twice, &["line 3, column 13", "matches nothing"]);
    let apart = format!(
        "[selectors]\nrocm-a = [{sparse}, kinds = ['lib']}}]\n\
         rocm-b = [{sparse}, kinds = ['dev']}}]\n{rest}{GROUPS}"
    );
    assert!(ids(&planned(modules(), &apart)).contains(&"rocm-a"));
}

/// Asserts that the error about the selectors names everything in `parts`.
fn assert_selectors_refused(selectors: &str, parts: &[&str]) {
    let toml = format!("[selectors]\n{selectors}{GROUPS}");
    assert_refused(planned_with(modules(), &toml, &options()), parts);
}

#[test]
fn a_path_belongs_to_one_package() {
    let folder = ArtifactBuilder::new("one", "y_lib_generic").folder("lib/a");
    for (other, expected) in [
        (text_artifact("x_dev_generic", "lib/a"), ["lib/a", "rocm-x", "rocm-x-dev"]),
        (text_artifact("x_run_generic", "lib/a"), ["lib/a", "x_lib", "x_run"]),
        (text_artifact("y_lib_generic", "lib/a/b"), ["lib/a/b", "rocm-y", "is below lib/a"]),
        (folder, ["lib/a", "rocm-x", "rocm-y"]),
    ] {
        let parts = vec![text_artifact("x_lib_generic", "lib/a"), other];
        assert_refused(planned_with(parts, "", &options()), &expected);
    }
}

fn text_artifact(name: &str, file: &str) -> ArtifactBuilder {
    ArtifactBuilder::new("one", name).plain(file, "x")
}

#[test]
fn names_that_meet_are_refused() {
    let parts =
        vec![text_artifact("X_lib_generic", "lib/a"), text_artifact("x_lib_generic", "lib/b")];
    assert_refused(planned_with(parts, "", &options()), &["X, x", "rocm-x"]);
    let parts = vec![text_artifact("all-gpus_lib_generic", "lib/a")];
    assert_refused(planned_with(parts, "", &options()), &["two packages", "rocm-all-gpus"]);
    let parts = vec![text_artifact("a+b_lib_generic", "lib/a")];
    assert_refused(planned_with(parts, "", &options()), &["rocm-a+b"]);
}

#[test]
fn only_limits_the_set_without_changing_its_packages() {
    let mut parts = blas();
    parts.push(ArtifactBuilder::new("one", "core_lib_generic").plain("lib/core", "x"));
    let all = planned(parts, GROUPS);
    for (only, expected) in [
        ("core", vec!["rocm-core"]),
        ("blas_dev", vec!["rocm-blas-dev"]),
        ("rocm-blas-tests", vec!["rocm-blas-tests", "rocm-blas-tests-gfx110x"]),
        (
            "blas_lib",
            vec![
                "rocm-blas",
                "rocm-blas-all",
                "rocm-blas-gfx110x",
                "rocm-blas-gfx120x",
                "rocm-common",
            ],
        ),
    ] {
        let mut parts = blas();
        parts.push(ArtifactBuilder::new("one", "core_lib_generic").plain("lib/core", "x"));
        let options = Options { only: vec![only.to_owned()], ..options() };
        let plan = planned_with(parts, GROUPS, &options).unwrap();
        assert_eq!(ids(&plan), expected);
        for id in expected {
            assert_eq!(format!("{:?}", package(&plan, id)), format!("{:?}", package(&all, id)));
        }
    }
    let options = Options { only: vec!["blass".to_owned()], ..options() };
    assert_refused(planned_with(blas(), GROUPS, &options), &["no component `blass`"]);
}

#[test]
fn version_and_prefix_come_from_the_command_line_first() {
    let toml = format!("version = '6.4.1-rc2'\nrelease = '3'\n{GROUPS}");
    let none = Options { version: None, ..options() };
    let plan = planned_with(blas(), &toml, &none).unwrap();
    assert_eq!(plan.prefix.absolute(), "/opt/rocm-6.4");
    assert_eq!(package(&plan, "rocm").deb.as_ref().unwrap().version, "6.4.1~rc2-3");
    let rpm = package(&plan, "rocm").rpm.as_ref().unwrap();
    assert_eq!((rpm.version.as_str(), rpm.release.as_str()), ("6.4.1~rc2", "3"));
    let prefix = Some("/opt/other".to_owned());
    let plan = planned_with(blas(), &toml, &Options { prefix, ..options() }).unwrap();
    assert_eq!(plan.prefix.absolute(), "/opt/other");
    assert_eq!(package(&plan, "rocm-blas").rpm.as_ref().unwrap().prefixes, ["/opt/other"]);
    let plan = planned_with(blas(), GROUPS, &none).unwrap();
    assert_eq!(plan.version.full(Format::Deb), "0.0.0-1");
    let bad = format!("prefix = '/opt/rocm'\n{GROUPS}");
    assert_refused(planned_with(blas(), &bad, &options()), &["line 1, column 10", "symbolic link"]);
}

#[test]
fn a_format_that_is_not_wanted_leaves_nothing() {
    let rpm = Options { formats: vec![Format::Rpm], ..options() };
    let plan = planned_with(blas(), GROUPS, &rpm).unwrap();
    for package in &plan.packages {
        assert!(package.deb.is_none() && package.rpm.is_some());
        let mut places = package.entries.iter().map(|entry| entry.path.as_str());
        assert!(!places.any(|path| path.starts_with("usr/share/doc/")));
    }
    let none = Options { formats: Vec::new(), ..options() };
    assert!(planned_with(blas(), GROUPS, &none).is_err());
}

#[test]
fn empty_groups_and_dangling_links_are_findings() {
    let parts = vec![
        ArtifactBuilder::new("one", "x_lib_generic")
            .plain("lib/x.so.1", "x")
            .link("lib/gone", "nowhere"),
        ArtifactBuilder::new("one", "x_dev_generic")
            .link("lib/x.so", "x.so.1")
            .link("lib64", "lib")
            .link("through", "lib64/x.so")
            .link("lib/up", "..")
            .link("loop", "loop"),
    ];
    let recombined = join(parts, GROUPS).unwrap();
    let plan = plan(&recombined, &options().setting(config(GROUPS)).unwrap(), None, &[]).unwrap();
    let dangling = recombined.findings.iter().filter(|f| f.code() == Some(Code::LinkDangling));
    let all = dangling.chain(plan.findings.iter());
    let found: Vec<_> = all.map(|f| (f.code().unwrap(), f.subject())).collect();
    let expected = [
        (Code::LinkDangling, "x_dev/loop"),
        (Code::LinkDangling, "x_lib/lib/gone"),
        (Code::GroupEmpty, "gfx110X"),
        (Code::GroupEmpty, "gfx120X"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn links_that_leave_the_prefix_through_other_links_are_refused() {
    // Goes up from the prefix, where `lib/up` leads, and not from `lib`.
    let out = ArtifactBuilder::new("one", "x_dev_generic").link("lib/out", "up/../lib/x.so");
    let up =
        ArtifactBuilder::new("one", "x_lib_generic").plain("lib/x.so", "x").link("lib/up", "..");
    let error = join(vec![up, out], GROUPS).unwrap_err().to_string();
    assert!(error.contains("x_dev/lib/out: the link leads to `up/../lib/x.so`"), "{error}");
}

#[test]
fn summaries_and_descriptions_are_whole() {
    let plan = planned(blas(), GROUPS);
    for package in &plan.packages {
        assert!(package.summary.chars().count() <= 80 && !package.summary.ends_with('.'));
        assert!(!package.description.is_empty(), "{}", package.id);
        assert!(package.description.iter().all(|p| p.ends_with('.') && !p.contains('\n')));
    }
    let kernels = package(&plan, "rocm-blas-gfx110x");
    assert_eq!(kernels.summary, "ROCm component blas: GPU code for gfx110X");
    let long = format!("[architecture_groups.{}]\narchitectures = ['gfx1100']", "x".repeat(60));
    assert_refused(planned_with(blas(), &long, &options()), &["more than 80 characters"]);
}

#[test]
fn a_damaged_debug_file_stays_where_it_is_with_a_finding() {
    let whole = library("libx.so.1", &[]);
    let cut = whole.slice(0..80).unwrap();
    let file = "lib/debug/libx.so.1.debug";
    let part = ArtifactBuilder::new("one", "x_dbg_generic").content(file, None, cut);
    let plan = planned(vec![part], "");
    let found = paths(package(&plan, "rocm-x-dbgsym"), Format::Rpm);
    assert!(found.contains(&format!("opt/rocm-7.1/{file}")), "{found:?}");
    let finding =
        plan.findings.iter().find(|f| f.code() == Some(Code::DebugFileWithoutId)).unwrap();
    assert_eq!(finding.subject(), format!("x_dbg/{file}"));
    assert!(finding.message().contains("damaged"), "{}", finding.message());
}
