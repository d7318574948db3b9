use super::*;
use rockpack_package::MemberKind;
use rockpack_package::receipt::listing::{ListedMember, ListedPackage, Listing, Size};

fn listed(
    format: Format,
    name: &str,
    version: &str,
    paths: &[(&str, MemberKind)],
) -> ListedPackage {
    let member = |(path, kind): &(&str, MemberKind)| ListedMember {
        path: (*path).to_owned(),
        kind: *kind,
        mode: 0o644,
        size: None,
        sha256: None,
        code_sha256: None,
        target: None,
    };
    ListedPackage {
        format,
        name: name.to_owned(),
        version: version.to_owned(),
        architecture: "amd64".to_owned(),
        file_name: String::new(),
        role: None,
        group: None,
        archs: Vec::new(),
        vendor: None,
        download: Size::default(),
        installed: Size::default(),
        relations: Vec::new(),
        members: paths.iter().map(member).collect(),
    }
}

fn since(packages: Vec<ListedPackage>) -> Options {
    let earlier = Listing::new("earlier".to_owned(), None, packages);
    Options { since: vec![earlier], ..options() }
}

/// Both formats of a package that had `path`.
fn both(name: &str, version: &str, path: &str) -> Vec<ListedPackage> {
    Format::ALL.map(|format| listed(format, name, version, &[(path, MemberKind::File)])).into()
}

#[test]
fn a_path_of_another_package_is_taken_over() {
    let earlier = both("rocm-blas-dev", "7.0.2-1", "/opt/rocm-7.1/bin/bench");
    let plan = planned_with(blas(), GROUPS, &since(earlier)).unwrap();
    for kind in [RelationKind::Breaks, RelationKind::Replaces] {
        assert_eq!(deb_relations(&plan, "rocm-blas", kind), ["rocm-blas-dev < 7.1.0-1"]);
    }
    // The set calls that package `rocm-blas-devel` as an rpm, so the old name is gone there.
    let obsoletes = rpm_relations(&plan, "rocm-blas", RelationKind::Obsoletes);
    assert_eq!(obsoletes, ["rocm-blas-dev < 7.1.0-1"]);
    assert!(codes(&plan).contains(&Code::PathMoved));
    assert!(!codes(&plan).contains(&Code::VersionNotNewer));
}

/// No package of this set replaces one that systems need, even if a list says so.
#[test]
fn packages_of_distributions_are_taken_over_by_no_set() {
    for name in ["libc6", "bash", "glibc", "coreutils", "libstdc++6", "python3"] {
        let earlier = both(name, "7.0.2-1", "/opt/rocm-7.1/bin/bench");
        for listed in earlier {
            let error = planned_with(blas(), GROUPS, &since(vec![listed.clone()])).unwrap_err();
            let text = error.full_text();
            let expected = format!("{} {name}: is a package of a distribution", listed.format);
            assert!(text.contains(&expected) && text.contains("earlier"), "{text}");
            assert!(error.hint_text().is_some());
        }
    }
    // Debian has packages of these names, and so had earlier sets.
    for name in ["rocm-smi", "hipcc", "rocminfo"] {
        let earlier = both(name, "7.0.2-1", "/opt/rocm-7.1/bin/bench");
        let plan = planned_with(blas(), GROUPS, &since(earlier)).unwrap();
        let breaks = deb_relations(&plan, "rocm-blas", RelationKind::Breaks);
        assert_eq!(breaks, [format!("{name} < 7.1.0-1")]);
    }
}

#[test]
fn a_path_of_several_packages_is_taken_from_each() {
    let names = ["aa-tools", "zz-tools"];
    let earlier = names.map(|name| both(name, "7.0.2-1", "/opt/rocm-7.1/bin/bench")).concat();
    let plan = planned_with(blas(), GROUPS, &since(earlier)).unwrap();
    let expected = ["aa-tools < 7.1.0-1", "zz-tools < 7.1.0-1"];
    for kind in [RelationKind::Breaks, RelationKind::Replaces] {
        assert_eq!(deb_relations(&plan, "rocm-blas", kind), expected);
    }
    assert_eq!(rpm_relations(&plan, "rocm-blas", RelationKind::Obsoletes), expected);
}

/// Systems with that version or architecture update, too.
#[test]
fn a_path_that_only_an_older_version_or_another_architecture_had_is_taken() {
    let bench = [("/opt/rocm-7.1/bin/bench", MemberKind::File)];
    for architecture in ["amd64", "arm64"] {
        let earlier =
            vec![aa_tools("7.0.0-1", "amd64", &bench), aa_tools("7.0.1-1", architecture, &[])];
        let plan = planned_with(blas(), GROUPS, &since(earlier)).unwrap();
        let breaks = deb_relations(&plan, "rocm-blas", RelationKind::Breaks);
        assert_eq!(breaks, ["aa-tools < 7.1.0-1"]);
    }
}

fn aa_tools(version: &str, architecture: &str, paths: &[(&str, MemberKind)]) -> ListedPackage {
    ListedPackage {
        architecture: architecture.to_owned(),
        ..listed(Format::Deb, "aa-tools", version, paths)
    }
}

#[test]
fn a_path_that_one_of_several_packages_had_as_a_directory_is_noted() {
    for (kinds, is_noted) in [
        ([MemberKind::Directory, MemberKind::File], true),
        ([MemberKind::File, MemberKind::Directory], true),
        ([MemberKind::File, MemberKind::File], false),
    ] {
        let packages = ["aa-tools", "zz-tools"].into_iter().zip(kinds);
        let path = "/opt/rocm-7.1/bin/bench";
        let listed =
            packages.map(|(name, kind)| listed(Format::Deb, name, "7.0.2-1", &[(path, kind)]));
        let plan = planned_with(blas(), GROUPS, &since(listed.collect())).unwrap();
        assert_eq!(codes(&plan).contains(&Code::PathKindChanged), is_noted, "{kinds:?}");
    }
}

#[test]
fn rpm_needs_a_conflict_only_where_nothing_ties_the_versions() {
    let kernels = both("rocm-blas", "7.0.2-1", "/opt/rocm-7.1/lib/rocblas/library/T_gfx1100.dat");
    let bench = both("rocm-blas-gfx110x", "7.0.2-1", "/opt/rocm-7.1/bin/bench");
    let plan = planned_with(blas(), GROUPS, &since([kernels, bench].concat())).unwrap();
    // The kernel package needs its host in its own version.
    assert!(rpm_relations(&plan, "rocm-blas-gfx110x", RelationKind::Conflicts).is_empty());
    let conflicts = rpm_relations(&plan, "rocm-blas", RelationKind::Conflicts);
    assert_eq!(conflicts, ["rocm-blas-gfx110x < 7.1.0-1"]);
}

#[test]
fn a_package_that_is_only_not_made_this_time_still_exists() {
    let bench = [("/opt/rocm-7.1/bin/bench", MemberKind::File)];
    let earlier = vec![listed(Format::Rpm, "rocm-blas-devel", "7.0.2-1", &bench)];
    let part = Options { only: vec!["rocm-blas".to_owned()], ..since(earlier.clone()) };
    for options in [since(earlier), part] {
        let plan = planned_with(blas(), GROUPS, &options).unwrap();
        assert_eq!(ids(&plan).contains(&"rocm-blas-dev"), options.only.is_empty());
        assert!(rpm_relations(&plan, "rocm-blas", RelationKind::Obsoletes).is_empty());
        let conflicts = rpm_relations(&plan, "rocm-blas", RelationKind::Conflicts);
        assert_eq!(conflicts, ["rocm-blas-devel < 7.1.0-1"]);
    }
}

#[test]
fn what_package_managers_cannot_update_is_noted() {
    let newer = both("rocm-blas", "7.1.0-2", "/opt/rocm-7.1/bin/bench");
    let plan = planned_with(blas(), GROUPS, &since(newer)).unwrap();
    let found = codes(&plan).into_iter().filter(|code| *code == Code::VersionNotNewer);
    assert_eq!(found.count(), 2, "one for each format");

    for (deb, rpm, expected) in [
        ("7.1.0-1", "7.1.0~rc1-1", 1),
        ("7.1.0~pre1-1", "7.1.0-1", 1),
        ("7.1.0~pre1-1", "7.1.0~rc1-1", 0),
        ("7.1.0-1", "7.1.0-1", 0),
        ("7.1.0-1", "7.1.0-0", 0),
    ] {
        let path = [("/opt/rocm-7.1/bin/bench", MemberKind::File)];
        let earlier = vec![
            listed(Format::Deb, "rocm-blas", deb, &path),
            listed(Format::Rpm, "rocm-blas", rpm, &path),
        ];
        let plan = planned_with(blas(), GROUPS, &since(earlier)).unwrap();
        let found = codes(&plan).into_iter().filter(|code| *code == Code::VersionNotNewer);
        assert_eq!(found.count(), expected, "{deb} {rpm}: one format alone gets an update");
    }

    let same = both("rocm-x", "7.1.0-1", "/opt/rocm-7.1/bin/bench");
    let plan = planned_with(blas(), GROUPS, &since(same)).unwrap();
    assert!(codes(&plan).contains(&Code::VersionNotNewer), "a bound that does not apply");

    let folder = listed(
        Format::Deb,
        "rocm-blas",
        "7.0-1",
        &[("/opt/rocm-7.1/bin/bench", MemberKind::Directory)],
    );
    let plan = planned_with(blas(), GROUPS, &since(vec![folder])).unwrap();
    assert!(codes(&plan).contains(&Code::PathKindChanged));

    let gone = both("rocm-blas-gfx90a", "7.0-1", "/opt/rocm-7.1/lib/.kpack/blas_lib_gfx90a.kpack");
    let plan = planned_with(blas(), GROUPS, &since(gone.clone())).unwrap();
    assert!(codes(&plan).contains(&Code::PackageDropped));
    let toml = format!("{GROUPS}[replaces]\nrocm-blas = ['rocm-blas-gfx90a']\n");
    let plan = planned_with(blas(), &toml, &since(gone)).unwrap();
    assert!(!codes(&plan).contains(&Code::PackageDropped));
}

#[test]
fn former_names_are_replaced_in_each_formats_words() {
    let toml = format!(
        "{GROUPS}[replaces]\nrocm-blas = ['rocblas < 7.0']\n\
         [replaces.rocm-blas-dev]\ndeb = ['rocblas-dev']\nrpm = ['rocblas-devel']\n\
         [moved]\nrocm-blas-dev = ['rocm-blas < 7.0.1-1']\n"
    );
    let plan = planned(blas(), &toml);
    for (id, kind, expected) in [
        ("rocm-blas", RelationKind::Conflicts, "rocblas < 7.0"),
        ("rocm-blas", RelationKind::Replaces, "rocblas < 7.0"),
        ("rocm-blas", RelationKind::Provides, "rocblas = 7.1.0-1"),
        ("rocm-blas-dev", RelationKind::Conflicts, "rocblas-dev"),
        ("rocm-blas-dev", RelationKind::Breaks, "rocm-blas < 7.0.1-1"),
    ] {
        assert_eq!(deb_relations(&plan, id, kind), [expected], "{id} {kind:?}");
    }
    for (id, kind, expected) in [
        ("rocm-blas", RelationKind::Obsoletes, "rocblas < 7.0"),
        ("rocm-blas", RelationKind::Provides, "rocblas = 7.1.0-1"),
        ("rocm-blas-dev", RelationKind::Obsoletes, "rocblas-devel"),
    ] {
        assert_eq!(rpm_relations(&plan, id, kind), [expected], "{id} {kind:?}");
    }
    let conflicts = rpm_relations(&plan, "rocm-blas-dev", RelationKind::Conflicts);
    assert!(conflicts.is_empty(), "it needs rocm-blas");
}

#[test]
fn what_an_entry_of_a_list_needs_exactly_ties_versions_too() {
    let list = r#"[{ "Package": "amdrocm-blas", "Artifactory": [
        { "Artifact": "blas", "Artifact_Subdir": [
            { "Name": "ROCBLAS", "Components": ["lib"] }] }] },
        { "Package": "amdrocm-blas-devel", "RPMRequires": ["amdrocm-blas"], "Artifactory": [
        { "Artifact": "blas", "Artifact_Subdir": [
            { "Name": "ROCBLAS", "Components": ["dev"] }] }] }]"#;
    let options = super::schemes::listed_options(list);
    let (library, headers) = ("amdrocm-blas7.1", "amdrocm-blas-devel7.1");
    assert!(conflicts_of_moved(headers, library, &options).is_empty());
    let other = conflicts_of_moved(library, headers, &options);
    assert_eq!(other, ["amdrocm-blas-devel7.1 < 7.0.1-1"]);
}

/// The conflicts of a package to which a path moved from another one.
fn conflicts_of_moved(package: &str, from: &str, options: &Options) -> Vec<String> {
    let parts = vec![
        ArtifactBuilder::new("one", "blas_lib_generic").plain("lib/librocblas.so.5", "x"),
        ArtifactBuilder::new("one", "blas_dev_generic").plain("include/x.h", "//"),
    ];
    let toml = format!("[moved]\n'{package}' = ['{from} < 7.0.1-1']\n");
    let plan = planned_with(parts, &toml, options).unwrap();
    let id = package.replace("devel", "dev");
    rpm_relations(&plan, &id, RelationKind::Conflicts)
}

#[test]
fn names_that_would_set_the_set_against_itself_are_refused() {
    let twice = "[replaces]\nrocm-blas = ['rocblas']\nrocm-blas-dev = ['rocblas']\n";
    for (toml, expected) in [
        ("[replaces]\nrocm-blas = ['rocm-blas-dev']\n", "the set has a package rocm-blas-dev"),
        (twice, "rocm-blas already replaces rocblas"),
        ("[replaces]\nrocm-blas-dev = ['rocm-blas-kernels']\n", "provides rocm-blas-kernels"),
        ("[replaces]\nrocm-bals = ['rocblas']\n", "there is no such package in the set"),
        ("[moved]\nrocm-bals = ['rocblas < 7']\n", "there is no such package in the set"),
    ] {
        assert_refused(planned_with(blas(), &format!("{GROUPS}{toml}"), &options()), &[expected]);
    }
}

#[test]
fn a_bound_above_the_set_itself_is_refused() {
    let toml = format!("{GROUPS}[moved]\nrocm-blas = ['rocm-blas-dev < 7.1.0-1']\n");
    let candidate = Options { version: Some("7.1.0-rc1".to_owned()), ..options() };
    let expected = ["moved.rocm-blas.0", "line", "rocm-blas-dev 7.1.0~rc1-1 is older than 7.1.0-1"];
    assert_refused(planned_with(blas(), &toml, &candidate), &expected);
    let tagged = format!("distribution_tag.deb = '~deb12'\n{toml}");
    let expected = ["rocm-blas-dev 7.1.0-1~deb12 is older than 7.1.0-1"];
    assert_refused(planned_with(blas(), &tagged, &options()), &expected);
    let plan = planned(blas(), &toml);
    let breaks = deb_relations(&plan, "rocm-blas", RelationKind::Breaks);
    assert_eq!(breaks, ["rocm-blas-dev < 7.1.0-1"]);
    // A name that the set no longer has may be bounded by any version.
    let gone = toml.replace("rocm-blas-dev <", "rocm-gone <");
    assert!(planned_with(blas(), &gone, &candidate).is_ok());
}

#[test]
fn packages_with_their_version_in_the_name_stay_apart_from_no_other_version() {
    for scheme in ["rocm-versioned", "amdrocm"] {
        let scheme = Scheme::shipped(scheme).unwrap();
        let name = if scheme.vendor == "rocm" { "rocm-blas7.1" } else { "amdrocm-blas-host7.1" };
        let options = Options { scheme: Some(scheme), ..options() };
        let plan = planned_to_replace("['rocblas < 7.0']", name, &options).unwrap();
        assert_eq!(deb_relations(&plan, name, RelationKind::Breaks), ["rocblas < 7.0"]);
        assert_eq!(deb_relations(&plan, name, RelationKind::Replaces), ["rocblas < 7.0"]);
        assert!(deb_relations(&plan, name, RelationKind::Conflicts).is_empty());
        let provides = deb_relations(&plan, name, RelationKind::Provides);
        assert!(!provides.iter().any(|name| name.starts_with("rocblas")));
        let rpm = rpm_relations(&plan, name, RelationKind::Obsoletes);
        assert_eq!(rpm, ["rocblas < 7.0"]);
        let expected = ["line", "`rocblas` has no bound", "side by side"];
        assert_refused(planned_to_replace("['rocblas']", name, &options), &expected);
        assert!(planned_to_replace("{ rpm = ['rocblas'] }", name, &options).is_ok());
    }
}

fn planned_to_replace(former: &str, package: &str, options: &Options) -> Result<Plan> {
    let toml = format!("{GROUPS}[replaces]\n'{package}' = {former}\n");
    planned_with(blas(), &toml, options)
}

#[test]
fn an_earlier_set_of_another_series_is_left_alone_and_said_so_once() {
    let blas7 = both("rocm-blas7.0", "1:7.0.2-1", "/opt/rocm-7.0/bin/bench");
    let gone = both("rocm-gone7.0", "1:7.0.2-1", "/opt/rocm-7.0/bin/gone");
    let plan = planned_versioned([blas7, gone].concat());
    let found = codes(&plan);
    assert_eq!(found.iter().filter(|code| **code == Code::OtherSeries).count(), 1);
    assert!(!found.contains(&Code::PackageDropped), "{found:?}");
    // In the same prefix they conflict, but that is no reason to break a package with another name on
    // purpose.
    let plan = planned_versioned(both("rocm-blas7.0", "7.0.2-1", "/opt/rocm-7.1/bin/bench"));
    let finding =
        plan.findings.iter().find(|finding| finding.code() == Some(Code::OtherSeries)).unwrap();
    assert!(finding.message().contains("1 path is in both (/opt/rocm-7.1/bin/bench"));
    assert!(deb_relations(&plan, "rocm-blas7.1", RelationKind::Breaks).is_empty());
    assert!(rpm_relations(&plan, "rocm-blas7.1", RelationKind::Obsoletes).is_empty());
    // A patch release of the same series drops packages, and so does a change of scheme.
    for name in ["rocm-gone7.1", "rocm-blas"] {
        let plan = planned_versioned(both(name, "7.1.0-0", "/opt/rocm-7.1/bin/gone"));
        assert!(codes(&plan).contains(&Code::PackageDropped), "{name}");
        assert!(!codes(&plan).contains(&Code::OtherSeries), "{name}");
    }
}

fn planned_versioned(earlier: Vec<ListedPackage>) -> Plan {
    let scheme = Some(Scheme::shipped("rocm-versioned").unwrap());
    planned_with(blas(), GROUPS, &Options { scheme, ..since(earlier) }).unwrap()
}
