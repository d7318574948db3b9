//! Tests of schemes and package lists.

use super::*;
use crate::config::{Suffix, Template};
use rockpack_split::input::artifact::ComponentKind;

fn amdrocm() -> Options {
    Options { scheme: Some(Scheme::shipped("amdrocm").unwrap()), ..options() }
}

const STRICT: &str = "[architecture_groups.gfx125X]\n\
                      architectures = ['gfx1250', 'gfx1250-strict']\n";

fn strict() -> ArtifactBuilder {
    let wrapper = wrapper(&[("gfx1250", "a|1"), ("gfx1250-strict", "a|2")]);
    ArtifactBuilder::new("one", "blas_lib_all").fat("lib/librocblas.so.5", vec![wrapper])
}

#[test]
fn a_strict_target_has_a_package_of_its_own() {
    let plan = planned_with(vec![strict()], STRICT, &amdrocm()).unwrap();
    for arch in ["gfx1250", "gfx1250-strict"] {
        let kernels = package(&plan, &format!("amdrocm-blas7.1-{arch}"));
        let archive = format!("opt/rocm/core-7.1/lib/.kpack/blas_lib_{arch}.kpack");
        assert!(paths(kernels, Format::Rpm).contains(&archive));
        let role = Role::Kernels { group: arch.to_owned(), archs: vec![arch.to_owned()] };
        assert_eq!(kernels.role, role);
    }
}

#[test]
fn tests_have_a_metapackage_where_the_scheme_wants_one() {
    let plan = planned_with(blas(), GROUPS, &amdrocm()).unwrap();
    let expected =
        ["amdrocm-blas-test-host7.1 of 7.1.0-1", "amdrocm-blas-test7.1-gfx1100 of 7.1.0-1"];
    assert_eq!(deb_relations(&plan, "amdrocm-blas-test7.1", RelationKind::Depends), expected);
    let unversioned = deb_relations(&plan, "amdrocm-blas-test", RelationKind::Depends);
    assert_eq!(unversioned, ["amdrocm-blas-test7.1 of 7.1.0-1"]);
    // The name without a version is that of a metapackage in this scheme.
    let dev = rpm_relations(&plan, "amdrocm-blas-dev7.1", RelationKind::Depends);
    assert_eq!(dev, ["amdrocm-blas-host7.1 = 7.1.0-1"]);
}

#[test]
fn what_one_package_is_called_without_a_scheme_means_it_in_any() {
    let toml = format!("{GROUPS}[packages.rocm-blas]\nexclude_architectures = ['gfx1101']\n");
    let versioned = Scheme::shipped("rocm-versioned").unwrap();
    let options = Options { scheme: Some(versioned), ..options() };
    let plan = planned_with(blas(), &toml, &options).unwrap();
    let kernels = package(&plan, "rocm-blas7.1-gfx110x");
    let archs = vec!["gfx1100".to_owned()];
    assert_eq!(kernels.role, Role::Kernels { group: "gfx110X".to_owned(), archs });
    let more = "[relations.rocm-blas.deb]\ndepends = ['libfoo']\n";
    let plan = planned_with(blas(), &format!("{GROUPS}{more}"), &options).unwrap();
    let depends = deb_relations(&plan, "rocm-blas7.1", RelationKind::Depends);
    assert!(depends.contains(&"libfoo".to_owned()), "{depends:?}");
    let only = Options { only: vec!["rocm-blas".to_owned()], ..options };
    let plan = planned_with(blas(), GROUPS, &only).unwrap();
    assert!(ids(&plan).contains(&"rocm-blas7.1-gfx120x"), "{:?}", ids(&plan));
    assert!(!ids(&plan).iter().any(|id| id.contains("-dev")), "{:?}", ids(&plan));
}

#[test]
fn words_and_archs_are_said_of_a_package_by_either_name() {
    let options = Options { scheme: Some(Scheme::shipped("rocm-versioned").unwrap()), ..options() };
    let words = "summary = 'Own words'\nsection = 'science'\nlicense = 'ISC'\n\
                 exclude_architectures = ['gfx1101']\n";
    for name in ["rocm-blas", "rocm-blas7.1"] {
        let toml = format!("{GROUPS}[packages.'{name}']\n{words}");
        let plan = planned_with(blas(), &toml, &options).unwrap();
        let host = package(&plan, "rocm-blas7.1");
        let section = host.deb.as_ref().unwrap().section.as_str();
        assert_eq!((host.summary.as_str(), section), ("Own words", "science"), "{name}");
        let dev = package(&plan, "rocm-blas-dev7.1");
        assert_ne!(dev.summary, "Own words");
        assert_eq!(dev.rpm.as_ref().unwrap().license, "ISC", "{name}");
        let kernels = package(&plan, "rocm-blas7.1-gfx110x");
        assert_eq!(kernels.role.archs(), ["gfx1100"], "{name}");
    }
    for name in ["rocm-blas-dev", "rocm-blas-devel", "rocm-blas-devel7.1"] {
        let toml = format!("{GROUPS}[packages.'{name}']\nsummary = 'Own words'\n");
        let plan = planned_with(blas(), &toml, &options).unwrap();
        assert_eq!(package(&plan, "rocm-blas-dev7.1").summary, "Own words", "{name}");
        assert_ne!(package(&plan, "rocm-blas7.1").summary, "Own words", "{name}");
    }
    let twice = "[packages.rocm-blas]\nsection = 'a'\n[packages.'rocm-blas7.1']\nsection = 'b'\n";
    let refused = planned_with(blas(), &format!("{GROUPS}{twice}"), &options);
    assert_refused(refused, &["line", "packages.rocm-blas7.1", "rocm-blas above"]);
}

#[test]
fn words_of_a_family_without_a_host_are_not_lost() {
    let toml = "[packages.rocm-blas]\nlicense = 'ISC'\n";
    let plan = planned(headers(), toml);
    assert_eq!(package(&plan, "rocm-blas-dev").rpm.as_ref().unwrap().license, "ISC");
    let refused = planned_with(headers(), &format!("{toml}summary = 'Lost'\n"), &options());
    assert_refused(refused, &["line", "packages.rocm-blas", "no such package", "license"]);
}

fn headers() -> Vec<ArtifactBuilder> {
    vec![ArtifactBuilder::new("one", "blas_dev_generic").plain("include/blas.h", "//")]
}

#[test]
fn the_loaders_file_is_named_after_the_package_of_its_format() {
    let mut scheme = Scheme::shipped("rocm").unwrap();
    let (deb, rpm) = ("rocm-common".to_owned(), "rocm-system".to_owned());
    scheme.names.system = Template::Each(Suffix { deb, rpm });
    let options = Options { scheme: Some(scheme), ..options() };
    let plan = planned_with(blas(), GROUPS, &options).unwrap();
    let common = package(&plan, "rocm-common");
    let files = |format| {
        let mut files = paths(common, format);
        files.retain(|path| path.starts_with("etc/ld.so.conf.d/") && path.ends_with(".conf"));
        files
    };
    assert_eq!(files(Format::Deb), ["etc/ld.so.conf.d/rocm.conf"]);
    assert_eq!(files(Format::Rpm), ["etc/ld.so.conf.d/rocm-system.conf"]);
    // The script updates the file if the prefix is moved.
    let scripts = &common.rpm.as_ref().unwrap().scripts;
    let (_, (_, post)) = scripts.iter().find(|(phase, _)| phase == "%post").unwrap();
    assert!(post.contains("file=/etc/ld.so.conf.d/rocm-system.conf\n"), "{post}");
}

#[test]
fn modules_that_no_artifact_has_are_refused() {
    let toml = "[selectors]\nrocm-x = [{ artifact = 'blas', modules = ['rocNOPE'] }]\n";
    let refused = planned_with(blas(), toml, &options());
    assert_refused(refused, &["line 2", "selectors.rocm-x.0.modules.0", "no module `rocNOPE`"]);
}

pub(super) fn listed_options(entries: &str) -> Options {
    let list = PackageList::parse(entries).unwrap();
    let mut prefixes = StagePrefixes::default();
    for kind in ["lib", "dev", "dbg"] {
        let kind: ComponentKind = kind.parse().unwrap();
        for at in ["lib/librocblas.so.5", "lib/librocblas.so", "include/x.h", "lib/libx.so"] {
            prefixes.add("blas", kind, "math-libs/BLAS/rocBLAS/stage", &path(at));
        }
    }
    Options { list: Some((list, prefixes)), ..amdrocm() }
}

#[test]
fn a_development_entry_keeps_its_name_beside_device_code() {
    let list = r#"[{ "Package": "amdrocm-blas-devel", "Artifactory": [
        { "Artifact": "blas", "Artifact_Subdir": [
            { "Name": "ROCBLAS", "Components": ["dev"] }] }] }]"#;
    let dev = ArtifactBuilder::new("one", "blas_dev_all")
        .plain("include/x.h", "//")
        .fat("lib/libx.so", vec![wrapper(&[("gfx1100", "a|1"), ("gfx1200", "a|2")])]);
    let plan = planned_with(vec![dev], GROUPS, &listed_options(list)).unwrap();
    let expected = [
        "amdrocm-blas-dev",
        "amdrocm-blas-dev7.1",
        "amdrocm-blas-dev7.1-gfx1100",
        "amdrocm-blas-dev7.1-gfx1200",
        // The library is a file and no link, so ldconfig looks at it.
        "amdrocm-common7.1",
    ];
    assert_eq!(ids(&plan), expected);
    let files = paths(package(&plan, "amdrocm-blas-dev7.1"), Format::Rpm);
    for name in ["include/x.h", "lib/libx.so", "lib/.kpack/blas_dev.kpm"] {
        assert!(files.contains(&format!("opt/rocm/core-7.1/{name}")), "{files:?}");
    }
    let finding = plan.findings.iter().find(|f| f.code() == Some(Code::ListClaimIgnored)).unwrap();
    assert_eq!(finding.subject(), "amdrocm-blas-devel");
}

#[test]
fn what_is_run_of_an_entry_needs_what_it_links_to() {
    let list = r#"[{ "Package": "amdrocm-blas-devel", "Artifactory": [
        { "Artifact": "blas", "Artifact_Subdir": [
            { "Name": "ROCBLAS", "Components": ["dev"] }] }] },
        { "Package": "amdrocm-blas-debug", "Artifactory": [
        { "Artifact": "blas", "Artifact_Subdir": [
            { "Name": "ROCBLAS", "Components": ["dbg"] }] }] }]"#;
    let parts = vec![
        ArtifactBuilder::new("one", "blas_dev_generic").content(
            "lib/libx.so",
            None,
            library("libx.so", &["libdrm.so.2", "libnowhere.so.1"]),
        ),
        // A debug file has the needs of its library, but is never loaded.
        ArtifactBuilder::new("one", "blas_dbg_generic").content(
            "lib/librocblas.so.5",
            None,
            library("libblas.so.5", &["libdrm.so.2", "libgone.so.1"]),
        ),
    ];
    let plan = planned_with(parts, GROUPS, &listed_options(list)).unwrap();
    let devel = package(&plan, "amdrocm-blas-dev7.1");
    let depends = related(&devel.deb.as_ref().unwrap().relations, RelationKind::Depends);
    assert!(depends.iter().any(|name| name.starts_with("libdrm2")), "{depends:?}");
    let discovered = &devel.rpm.as_ref().unwrap().discovered;
    let requires = related(discovered, RelationKind::Depends);
    assert!(requires.contains(&"libdrm.so.2()(64bit)".to_owned()), "{requires:?}");
    let provides = related(discovered, RelationKind::Provides);
    assert!(provides.contains(&"libx.so()(64bit)".to_owned()), "{provides:?}");
    let debug = package(&plan, "amdrocm-blas-debug7.1");
    assert!(debug.rpm.as_ref().unwrap().discovered.is_empty(), "{:?}", debug.rpm);
    let unresolved: Vec<_> = plan
        .findings
        .iter()
        .filter(|f| f.code() == Some(Code::LibraryUnresolved))
        .map(|finding| finding.subject())
        .collect();
    assert_eq!(unresolved, ["amdrocm-blas-dev7.1"]);
}

#[test]
fn what_no_entry_takes_is_left_out_with_its_code() {
    let list = r#"[{ "Package": "amdrocm-x", "Artifactory": [
        { "Artifact": "other", "Artifact_Subdir": [{ "Name": "x", "Components": ["lib"] }] }] }]"#;
    let library = ArtifactBuilder::new("one", "blas_lib_all")
        .fat("lib/librocblas.so.5", units())
        .link("lib/librocblas.so", "librocblas.so.5");
    let plan = planned_with(vec![library], GROUPS, &listed_options(list)).unwrap();
    assert!(plan.packages.is_empty());
    let left: Vec<&str> = plan.left_out.iter().map(TreePath::as_str).collect();
    assert_eq!(left, ["lib/librocblas.so", "lib/librocblas.so.5"]);
    let finding = plan.findings.iter().find(|f| f.code() == Some(Code::NotListed)).unwrap();
    assert_eq!((finding.subject(), finding.code_objects().len()), ("blas_lib", 4));
    assert!(codes(&plan).contains(&Code::ListedWithoutContent));
}

/// The link that the scripts of a common package make in both formats.
fn series_link(plan: &Plan, common: &str) -> Option<String> {
    let package = package(plan, common);
    let marker =
        paths(package, Format::Rpm).into_iter().find(|path| path.contains("share/rockpack/s"));
    assert_eq!(
        marker.is_some(),
        paths(package, Format::Deb).into_iter().any(|path| Some(path) == marker)
    );
    let link = format!("/{}", marker?.split_once("-7.1/share/rockpack/series-link")?.0);
    let (deb, rpm) = (package.deb.as_ref().unwrap(), package.rpm.as_ref().unwrap());
    for phase in ["postinst", "postrm"] {
        let script = deb.scripts.iter().find(|(name, _)| name == phase).unwrap();
        assert!(
            script.1.contains(&format!("\nlink=\"${{DPKG_ROOT:-}}\"'{link}'\n")),
            "{}",
            script.1
        );
    }
    for phase in ["%post", "%postun"] {
        let (_, (_, script)) = rpm.scripts.iter().find(|(name, _)| name == phase).unwrap();
        assert!(script.contains(&format!("\nlink='{link}'\n")), "{script}");
    }
    Some(link)
}

#[test]
fn the_scheme_or_the_configuration_asks_for_the_link_to_the_newest_series() {
    let common = "amdrocm-common7.1";
    let core = Some("/opt/rocm/core".to_owned());
    let plan = planned_with(blas(), GROUPS, &amdrocm()).unwrap();
    assert_eq!(series_link(&plan, common), core);
    let needed = rpm_relations(&plan, common, RelationKind::Depends);
    for program in
        ["/usr/bin/cat", "/usr/bin/ln", "/usr/bin/mv", "/usr/bin/readlink", "/usr/bin/rm"]
    {
        assert!(needed.contains(&program.to_owned()), "{needed:?}");
    }
    let plan = planned_with(blas(), &format!("series_link = false\n{GROUPS}"), &amdrocm()).unwrap();
    assert_eq!(series_link(&plan, common), None);

    assert_eq!(series_link(&planned(blas(), GROUPS), "rocm-common"), None);
    let asked = format!("series_link = true\n{GROUPS}");
    let plan = planned(blas(), &asked);
    assert_eq!(series_link(&plan, "rocm-common").as_deref(), Some("/opt/rocm"));
    let plan = planned(blas(), &format!("scheme = 'amdrocm'\nvariant = 'asan'\n{asked}"));
    assert_eq!(series_link(&plan, "amdrocm-common-asan7.1"), None);

    let elsewhere = Options { prefix: Some("/opt/acme".to_owned()), ..options() };
    let plan = planned_with(blas(), &format!("scheme = 'amdrocm'\n{GROUPS}"), &elsewhere).unwrap();
    assert_eq!(series_link(&plan, common), None);
    let refused = planned_with(blas(), &asked, &elsewhere);
    assert_refused(refused, &["line 1", "series_link", "the prefix /opt/acme does not end in"]);
}
