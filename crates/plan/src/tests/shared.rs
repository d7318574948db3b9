//! Tests of content that serves several groups, and of the shipped table's cuts.

use super::*;

const THREE: &str = "[architecture_groups.gfx110X]\narchitectures = ['gfx1100', 'gfx1101']\n\
                     [architecture_groups.gfx115X]\narchitectures = ['gfx1151']\n\
                     [architecture_groups.gfx120X]\narchitectures = ['gfx1200']\n";

fn library() -> ArtifactBuilder {
    ArtifactBuilder::new("one", "aotriton_lib_all").fat("lib/libaotriton.so.1", units())
}

fn files(plan: &Plan, id: &str) -> Vec<String> {
    let files = package(plan, id)
        .entries
        .iter()
        .filter(|e| e.formats == Formats::All)
        .filter(|e| !matches!(e.node, Node::Directory { .. }));
    files.map(|e| e.path.as_str()["opt/rocm-7.1/".len()..].to_owned()).collect()
}

#[test]
fn what_serves_several_groups_is_in_a_package_of_its_own() {
    let part = library()
        .database("lib/images/amd-gfx11xx/a", "gfx1100,gfx1101,gfx1151", "1")
        .database("lib/images/amd-gfx110x/b", "gfx1100,gfx1101", "2");
    let plan = planned(vec![part], THREE);
    let common = "rocm-aotriton-kernels-common";
    assert_eq!(files(&plan, common), ["lib/images/amd-gfx11xx/a"]);
    let role = Role::KernelsCommon {
        groups: vec!["gfx110X".to_owned(), "gfx115X".to_owned()],
        archs: ["gfx1100", "gfx1101", "gfx1151"].map(str::to_owned).to_vec(),
    };
    assert_eq!(package(&plan, common).role, role);
    let fields = &package(&plan, common).deb.as_ref().unwrap().fields;
    assert_eq!(fields[0].1, "gfx1100 gfx1101 gfx1151");
    for relations in [deb_relations, rpm_relations] {
        let host = "rocm-aotriton = 7.1.0-1";
        assert_eq!(relations(&plan, common, RelationKind::Depends), [host]);
        let both = [host, "rocm-aotriton-kernels-common = 7.1.0-1"];
        assert_eq!(relations(&plan, "rocm-aotriton-gfx110x", RelationKind::Depends), both);
        // The package is empty but is still the one that users of this group install.
        assert_eq!(relations(&plan, "rocm-aotriton-gfx115x", RelationKind::Depends), both);
        assert_eq!(relations(&plan, "rocm-aotriton-gfx120x", RelationKind::Depends), [host]);
    }
    assert!(files(&plan, "rocm-aotriton-gfx115x").is_empty());
    assert!(files(&plan, "rocm-aotriton-gfx110x").contains(&"lib/images/amd-gfx110x/b".to_owned()));
    assert!(!codes(&plan).contains(&Code::GroupEmpty));
}

/// One package for both sets would bring gfx1200's files to gfx1100.
#[test]
fn several_sets_of_groups_share_nothing() {
    let part = library().database("lib/images/a", "gfx1100,gfx1151", "1").database(
        "lib/images/b",
        "gfx1151,gfx1200",
        "2",
    );
    let plan = planned(vec![part], THREE);
    let (one, other) = (
        "rocm-aotriton-kernels-common-gfx110x-gfx115x",
        "rocm-aotriton-kernels-common-gfx115x-gfx120x",
    );
    assert_eq!(files(&plan, one), ["lib/images/a"]);
    assert_eq!(files(&plan, other), ["lib/images/b"]);
    let depends = deb_relations(&plan, "rocm-aotriton-gfx110x", RelationKind::Depends).join(", ");
    assert!(depends.contains(one));
    assert!(!depends.contains(other));
    let depends = deb_relations(&plan, "rocm-aotriton-gfx115x", RelationKind::Depends).join(", ");
    assert!(depends.contains(one));
    assert!(depends.contains(other));
}

#[test]
fn an_excluded_arch_is_not_served() {
    let toml = "[packages.rocm-aotriton]\nexclude_architectures = ['gfx1151']\n";
    let part = library().database("lib/images/a", "gfx1100,gfx1151", "1");
    let plan = planned(vec![part], &format!("{toml}{THREE}"));
    assert!(files(&plan, "rocm-aotriton-gfx110x").contains(&"lib/images/a".to_owned()));
    assert!(!ids(&plan).iter().any(|id| id.contains("kernels-common") || id.contains("gfx115x")));
    assert!(codes(&plan).contains(&Code::GroupEmpty));
}

/// TheRock's artifact before and after rocSPARSE and rocSOLVER got artifacts of their own.
#[test]
fn the_shipped_table_cuts_old_artifacts_as_new_ones_are() {
    let old = ArtifactBuilder::new("one", "blas_lib_all")
        .fat_of("lib/librocblas.so.5", Some("rocBLAS"), gfx1100_code("a"))
        .fat_of("lib/librocsparse.so.1", Some("rocSPARSE"), gfx1100_code("b"))
        .fat_of("lib/librocsolver.so.0", Some("rocSOLVER"), gfx1100_code("c"))
        .content("lib/libhipsolver.so.1", Some("hipSOLVER"), Content::of_bytes(*b"x"))
        .content("lib/librocroller.so.1", Some("rocRoller"), Content::of_bytes(*b"x"))
        .plain("share/nobodys", "x");
    let whole = planned(vec![old], GROUPS);
    let new = vec![
        ArtifactBuilder::new("one", "blas_lib_all").fat_of(
            "lib/librocblas.so.5",
            None,
            gfx1100_code("a"),
        ),
        ArtifactBuilder::new("one", "sparse_lib_all").fat_of(
            "lib/librocsparse.so.1",
            None,
            gfx1100_code("b"),
        ),
        ArtifactBuilder::new("one", "solver_lib_all").fat_of(
            "lib/librocsolver.so.0",
            None,
            gfx1100_code("c"),
        ),
    ];
    let apart = planned(new, GROUPS);
    assert_eq!(ids(&whole), ids(&apart));
    assert_eq!(archive_names(&whole), ["blas_lib", "solver_lib", "sparse_lib"]);
    assert_eq!(archive_names(&whole), archive_names(&apart));
    let solver = ["lib/.kpack/solver_lib.kpm", "lib/libhipsolver.so.1", "lib/librocsolver.so.0"];
    assert_eq!(files(&whole, "rocm-solver"), solver);
    assert!(files(&whole, "rocm-blas").contains(&"lib/librocroller.so.1".to_owned()));
    assert!(files(&whole, "rocm-blas").contains(&"share/nobodys".to_owned()));
}

fn gfx1100_code(name: &str) -> Vec<WrapperCode> {
    vec![wrapper(&[("gfx1100", name)])]
}

fn archive_names(plan: &Plan) -> Vec<&str> {
    plan.archives.iter().map(|set| set.name.as_str()).collect()
}

#[test]
fn a_package_without_content_is_not_made() {
    let plan = planned(database(), GROUPS);
    assert!(files(&plan, "rocm-db").is_empty());
    let depends = deb_relations(&plan, "rocm-db-gfx110x", RelationKind::Depends);
    assert_eq!(depends, ["rocm-db = 7.1.0-1"]);
    assert!(codes(&plan).contains(&Code::HostPackageEmpty));
    let toml = format!("[packages.rocm-db]\nexclude_architectures = ['gfx1100']\n{GROUPS}");
    let plan = planned(database(), &toml);
    assert!(ids(&plan).is_empty(), "{:?}", ids(&plan));
    assert!(codes(&plan).contains(&Code::ArchExcluded));
}

fn database() -> Vec<ArtifactBuilder> {
    vec![ArtifactBuilder::new("one", "db_lib_all").database("lib/d", "gfx1100", "1")]
}
