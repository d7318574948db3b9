//! Tests of the packages that are made, with their files and relations.

use super::*;

#[test]
fn a_component_becomes_its_packages() {
    let plan = planned(blas(), GROUPS);
    let expected = [
        "rocm",
        "rocm-all-gpus",
        "rocm-blas",
        "rocm-blas-all",
        "rocm-blas-dev",
        "rocm-blas-doc",
        "rocm-blas-gfx110x",
        "rocm-blas-gfx120x",
        "rocm-blas-tests",
        "rocm-blas-tests-gfx110x",
        "rocm-common",
        "rocm-gfx110x",
        "rocm-gfx120x",
    ];
    assert_eq!(ids(&plan), expected);
    let dev = package(&plan, "rocm-blas-dev");
    assert_eq!(dev.rpm.as_ref().unwrap().name, "rocm-blas-devel");
    assert_eq!(dev.deb.as_ref().unwrap().architecture, "all");
    assert_eq!(dev.rpm.as_ref().unwrap().arch, "noarch");
    assert_eq!(package(&plan, "rocm-blas").deb.as_ref().unwrap().architecture, "amd64");
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
        "usr/share/licenses/rocm-blas/",
        "usr/share/licenses/rocm-blas/copyright",
    ];
    assert_eq!(paths(host, Format::Rpm), expected);
    let deb = paths(host, Format::Deb);
    for path in
        ["opt/", "usr/share/doc/rocm-blas/changelog.Debian.gz", "usr/share/doc/rocm-blas/copyright"]
    {
        assert!(deb.contains(&path.to_owned()), "{deb:?}");
    }
    let library = host.entries.iter().find(|e| e.path.name() == "librocblas.so.5").unwrap();
    let expected = FileSource::Fat {
        component: "blas_lib".into(),
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
    let field = ("X-ROCm-GPU-Architecture".to_owned(), "gfx1100 gfx1101".to_owned());
    assert_eq!(control.fields[0], field);
    assert_eq!(control.architecture, "amd64");
    let archs = vec!["gfx1100".to_owned(), "gfx1101".to_owned()];
    assert_eq!(kernels.role, Role::Kernels { group: "gfx110X".to_owned(), archs });
    let sets: Vec<_> = plan.archives.iter().map(|set| set.name.as_str()).collect();
    assert_eq!(sets, ["blas_lib", "blas_test"]);
    assert_eq!(plan.archives[0].archs.len(), 3);
}

#[test]
fn relations_tie_kernels_to_their_host_and_nothing_to_other_gpus() {
    let plan = planned(blas(), GROUPS);
    let kernels = "rocm-blas-gfx110x";
    assert_eq!(deb_relations(&plan, kernels, RelationKind::Depends), ["rocm-blas = 7.1.0-1"]);
    assert_eq!(deb_relations(&plan, kernels, RelationKind::Enhances), ["rocm-blas"]);
    let provides = ["rocm-blas-kernels = 7.1.0-1"];
    assert_eq!(deb_relations(&plan, kernels, RelationKind::Provides), provides);
    let suggests = ["rocm-blas-gfx110x", "rocm-blas-gfx120x"];
    assert_eq!(deb_relations(&plan, "rocm-blas", RelationKind::Suggests), suggests);
    assert!(deb_relations(&plan, "rocm-blas", RelationKind::Recommends).is_empty());
    let dev = rpm_relations(&plan, "rocm-blas-dev", RelationKind::Depends);
    assert_eq!(dev, ["rocm-blas = 7.1.0-1"]);
}

#[test]
fn metapackages_name_sets() {
    let mut parts = blas();
    parts.push(ArtifactBuilder::new("one", "core_lib_generic").plain("lib/core", "x"));
    let plan = planned(parts, GROUPS);
    assert_eq!(deb_depends(&plan, "rocm-gfx110x"), ["rocm-blas-gfx110x of 7.1.0-1"]);
    assert_eq!(deb_depends(&plan, "rocm"), ["rocm-blas of 7.1.0-1", "rocm-core of 7.1.0-1"]);
    let everything = ["rocm-blas-all of 7.1.0-1", "rocm-core of 7.1.0-1"];
    assert_eq!(deb_depends(&plan, "rocm-all-gpus"), everything);
    let all =
        ["rocm-blas of 7.1.0-1", "rocm-blas-gfx110x of 7.1.0-1", "rocm-blas-gfx120x of 7.1.0-1"];
    assert_eq!(deb_depends(&plan, "rocm-blas-all"), all);
    let meta = package(&plan, "rocm");
    assert_eq!(meta.role, Role::Meta);
    assert!(paths(meta, Format::Rpm).is_empty());
    let deb = meta.deb.as_ref().unwrap();
    assert_eq!((deb.section.as_str(), deb.scripts.len()), ("metapackages", 0));
}

#[test]
fn kernel_packages_name_their_gpus() {
    let plan = planned(blas(), GROUPS);
    for id in ["rocm-blas-gfx110x", "rocm-gfx110x"] {
        let text = package(&plan, id).description.join("\n");
        assert!(
            text.contains("For AMD GPUs: Radeon") && text.contains("RX\u{a0}7900\u{a0}XTX"),
            "{text}"
        );
    }
    let strict = "[architecture_groups.own]\narchitectures = ['gfx1036', 'gfx1100']\n";
    let parts = || {
        let wrapper = wrapper(&[("gfx1036", "a|1"), ("gfx1100", "a|2")]);
        vec![ArtifactBuilder::new("one", "x_lib_all").fat("lib/libx.so.5", vec![wrapper])]
    };
    let [card, part] =
        ["0000744C", "0000164E"].map(|id| format!("pci:v00001002d{id}sv*sd*bc*sc*i*"));
    for (value, expected) in
        [("none", vec![]), ("discrete", vec![&card]), ("all", vec![&part, &card])]
    {
        let hints = format!("[hardware_hints]\ndeb = '{value}'\nrpm = '{value}'\n");
        let plan = planned(parts(), &format!("{strict}{hints}"));
        let kernels = package(&plan, "rocm-x-own");
        let fields = &kernels.deb.as_ref().unwrap().fields;
        let field = fields.iter().find(|(name, _)| name == "Modaliases");
        let supplements = rpm_relations(&plan, "rocm-x-own", RelationKind::Supplements);
        assert_eq!(field.is_some(), !expected.is_empty());
        assert_eq!(supplements.is_empty(), expected.is_empty(), "{supplements:?}");
        for pattern in expected {
            let (_, text) = field.unwrap();
            assert!(text.starts_with("rocm-x-own(pci:") && text.contains(pattern), "{text}");
            assert!(
                supplements.contains(&format!("modalias(rocm-x:{pattern})")),
                "{supplements:?}"
            );
        }
        assert_eq!(field.is_some_and(|(_, text)| text.contains(&part)), value == "all");
    }
}

#[test]
fn the_common_package_looks_for_gpus_without_code() {
    let plan = planned(blas(), GROUPS);
    let common = package(&plan, "rocm-common");
    for format in Format::ALL {
        let paths = paths(common, format);
        let own: Vec<_> = paths.iter().filter(|path| path.contains("share/rocm-common")).collect();
        assert_eq!(own, ["usr/share/rocm-common/", "usr/share/rocm-common/gpu.sh"]);
    }
    let script = common.entries.iter().find(|entry| entry.path.name() == "gpu.sh").unwrap();
    let Node::File { data: FileSource::Text(text), .. } = &script.node else { panic!("no text") };
    assert!(text.lines().any(|line| line == "p /opt/rocm-7.1"), "{text}");
    let deb = common.deb.as_ref().unwrap();
    let triggers = ["activate-noawait ldconfig", "interest-noawait /opt/rocm-7.1"];
    assert_eq!(deb.triggers, triggers);
    let (_, text) = deb.scripts.iter().find(|(name, _)| name == "postinst").unwrap();
    assert!(text.contains("dpkg-trigger --no-await '/opt/rocm-7.1'"), "{text}");
    assert!(text.contains("sh '/usr/share/rocm-common/gpu.sh' --check"), "{text}");
    let scripts = &common.rpm.as_ref().unwrap().scripts;
    let trigger = "%transfiletriggerin -- /opt/rocm-7.1";
    for phase in [trigger, "%posttrans"] {
        assert!(scripts.iter().any(|(name, _)| name == phase), "{scripts:?}");
    }
    let host = vec![ArtifactBuilder::new("one", "x_lib_generic").plain("lib/libx.so.1", "x")];
    let plan = planned(host, GROUPS);
    let deb = package(&plan, "rocm-common").deb.as_ref().unwrap();
    assert_eq!((deb.triggers.len(), deb.scripts.len()), (1, 0), "no package has device code");
}

fn deb_depends(plan: &Plan, id: &str) -> Vec<String> {
    deb_relations(plan, id, RelationKind::Depends)
}

#[test]
fn libraries_of_the_set_become_dependencies_within_a_group() {
    let wrap = library("libwrap.so.1", &["libblas.so.1", "libc.so.6"]);
    let parts = vec![
        library_and_fat("blas", &["libsolver.so.1"]),
        // A cycle, and a dependency through a library without device code.
        library_and_fat("solver", &["libwrap.so.1"]),
        ArtifactBuilder::new("one", "wrap_lib_generic").content("lib/libwrap.so.1", None, wrap),
    ];
    let plan = planned(parts, GROUPS);
    for relations in [deb_relations, rpm_relations] {
        let cases: [(&str, &[&str]); 4] = [
            ("rocm-blas", &["rocm-solver of 7.1.0-1"]),
            ("rocm-solver", &["rocm-wrap of 7.1.0-1"]),
            ("rocm-blas-gfx110x", &["rocm-blas = 7.1.0-1", "rocm-solver-gfx110x of 7.1.0-1"]),
            ("rocm-solver-gfx120x", &["rocm-blas-gfx120x of 7.1.0-1", "rocm-solver = 7.1.0-1"]),
        ];
        for (id, expected) in cases {
            let mut found = relations(&plan, id, RelationKind::Depends);
            // All of them have libraries in the linker path, so all need the common package.
            found.retain(|name| name != "rocm-common of 7.1.0-1");
            assert_eq!(found, expected, "{id}");
        }
    }
}

/// A binary with device code that links to nothing, and a library beside it that does.
fn library_and_fat(artifact: &str, needed: &[&str]) -> ArtifactBuilder {
    let soname = format!("lib{artifact}.so.1");
    let elf = library(&soname, needed);
    ArtifactBuilder::new("one", &format!("{artifact}_lib_all"))
        .content(&format!("lib/{soname}"), None, elf)
        .fat(&format!("bin/{artifact}"), units())
}

#[test]
fn headers_need_the_headers_of_needed_libraries() {
    let parts = [
        family_parts("blas", &["libsolver.so.1", "libbare.so.1"], true),
        // A cycle.
        family_parts("solver", &["libblas.so.1"], true),
        family_parts("bare", &[], false),
        family_parts("other", &[], true),
    ];
    let plan = planned(parts.into_iter().flatten().collect(), "");
    let blas = ["rocm-blas = 7.1.0-1", "rocm-solver-dev of 7.1.0-1"];
    assert_eq!(deb_depends(&plan, "rocm-blas-dev"), blas);
    let solver = ["rocm-blas-dev of 7.1.0-1", "rocm-solver = 7.1.0-1"];
    assert_eq!(deb_depends(&plan, "rocm-solver-dev"), solver);
    assert_eq!(deb_depends(&plan, "rocm-other-dev"), ["rocm-other = 7.1.0-1"]);
    let requires = rpm_relations(&plan, "rocm-blas-dev", RelationKind::Depends);
    assert_eq!(requires, ["rocm-blas = 7.1.0-1", "rocm-solver-devel of 7.1.0-1"]);
}

fn family_parts(name: &str, needed: &[&str], has_headers: bool) -> Vec<ArtifactBuilder> {
    let soname = format!("lib{name}.so.1");
    let path = format!("lib/{soname}");
    let elf = library(&soname, needed);
    let host =
        ArtifactBuilder::new("one", &format!("{name}_lib_generic")).content(&path, None, elf);
    let headers = ArtifactBuilder::new("one", &format!("{name}_dev_generic"))
        .plain(&format!("include/{name}.h"), "//");
    std::iter::once(host).chain(has_headers.then_some(headers)).collect()
}

#[test]
fn damaged_and_ambiguous_libraries_are_findings() {
    let whole = library("libx.so.1", &["liby.so.1"]);
    let cut = whole.slice(0..whole.len() - 1).unwrap();
    let plan = planned(vec![library_artifact("x_lib_generic", "lib/libx.so.1", &cut)], "");
    assert!(codes(&plan).contains(&Code::LibrariesUnreadable));
    let y = library("liby.so.1", &[]);
    let parts = vec![
        library_artifact("x_lib_generic", "lib/libx.so.1", &whole),
        library_artifact("y_lib_generic", "lib/y/liby.so.1", &y),
        library_artifact("z_lib_generic", "lib/z/liby.so.1", &y),
    ];
    let plan = planned(parts, "");
    assert!(codes(&plan).contains(&Code::LibraryAmbiguous));
    let depends = deb_relations(&plan, "rocm-x", RelationKind::Depends);
    assert_eq!(depends, ["rocm-common of 7.1.0-1", "rocm-y of 7.1.0-1"]);
}

fn library_artifact(name: &str, file: &str, content: &Content) -> ArtifactBuilder {
    ArtifactBuilder::new("one", name).content(file, None, content.clone())
}

#[test]
fn the_runtime_is_needed_by_transformed_binaries_only() {
    let toml = "[runtime_relation]\ndeb = 'libamdhip64-7 (>= 7.1)'\nrpm = 'hip >= 7.1'\n";
    let mut parts = blas();
    parts.push(ArtifactBuilder::new("one", "core_lib_generic").plain("lib/core", "x"));
    let plan = planned(parts, &format!("{toml}{GROUPS}"));
    let common = "rocm-common of 7.1.0-1";
    let depends = deb_relations(&plan, "rocm-blas", RelationKind::Depends);
    assert_eq!(depends, ["libamdhip64-7 >= 7.1", common]);
    assert_eq!(rpm_relations(&plan, "rocm-blas", RelationKind::Depends), ["hip >= 7.1", common]);
    assert!(deb_relations(&plan, "rocm-core", RelationKind::Depends).is_empty());
    assert!(!codes(&plan).contains(&Code::RuntimeUnset));
    assert!(codes(&planned(blas(), GROUPS)).contains(&Code::RuntimeUnset));
    let bad = format!("[runtime_relation]\ndeb = 'hip 7.1'\n{GROUPS}");
    let result = planned_with(blas(), &bad, &options());
    assert_refused(result, &["line 2, column 7", "`hip 7.1` is not a valid relation"]);
}

#[test]
fn the_configuration_adds_relations() {
    let toml =
        "[relations.rocm-blas]\ndeb.conflicts = ['rocblas']\nrpm.obsoletes = ['rocblas < 7.1']\n";
    let plan = planned(blas(), &format!("{toml}{GROUPS}"));
    assert_eq!(deb_relations(&plan, "rocm-blas", RelationKind::Conflicts), ["rocblas"]);
    assert_eq!(rpm_relations(&plan, "rocm-blas", RelationKind::Obsoletes), ["rocblas < 7.1"]);
    let change = "[relations.rocm-blas]\ndeb.depends = ['rocm-common (>= {series})', 'x (= {version})']\n\
                  deb.remove = ['rocm-blas-gfx110x']\nrpm.remove = ['rocm-common']\n";
    let plan = planned(blas(), &format!("{change}{GROUPS}"));
    let depends = deb_relations(&plan, "rocm-blas", RelationKind::Depends);
    assert_eq!(depends, ["rocm-common >= 7.1", "x = 7.1.0-1"]);
    let deb = deb_relations(&plan, "rocm-blas", RelationKind::Suggests);
    assert_eq!(deb, ["rocm-blas-gfx120x"]);
    let rpm = rpm_relations(&plan, "rocm-blas", RelationKind::Suggests);
    assert_eq!(rpm, ["rocm-blas-gfx110x", "rocm-blas-gfx120x"]);
    assert!(rpm_relations(&plan, "rocm-blas", RelationKind::Depends).is_empty());
    let nothing = format!("[relations.rocm-blas]\nrpm.remove = ['rocm-commom']\n{GROUPS}");
    let result = planned_with(blas(), &nothing, &options());
    assert_refused(result, &["line 2, column 15", "no relation to `rocm-commom`"]);
    let typo = format!("[relations.rocm-blass]\ndeb.depends = ['x']\n{GROUPS}");
    assert_refused(planned_with(blas(), &typo, &options()), &["line 1", "no such package"]);
}
