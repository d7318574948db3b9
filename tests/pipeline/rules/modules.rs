//! Artifacts cut into packages by module. An earlier tool put all kernels of an artifact into the archive of
//! its first module: the sparse package had none, the blas package everyone's.

use std::collections::BTreeSet;
use std::fs::{OpenOptions, create_dir_all, rename};
use std::io::Write;
use std::sync::OnceLock;

use support::tools;

use crate::rules::{Case, GROUPS};

const TUNE: &str = "libexec/exblas/exblas-tune";

/// Moves the program to the module rocSPARSE, and the lazily loaded database to hipSPARSELt.
fn with_modules() -> Case {
    let case = Case::new();
    for group in &GROUPS {
        let stage = group.stage(&case.shards(), "lib");
        let blas = stage.parent().unwrap().parent().unwrap();
        let artifact = blas.parent().unwrap().parent().unwrap();
        let manifest = artifact.join("artifact_manifest.txt");
        let mut manifest = OpenOptions::new().append(true).open(manifest).unwrap();
        for module in ["rocSPARSE", "hipSPARSELt"] {
            writeln!(manifest, "math-libs/BLAS/{module}/stage").unwrap();
        }
        let program = blas.join("rocSPARSE/stage").join(TUNE);
        create_dir_all(program.parent().unwrap()).unwrap();
        rename(stage.join(TUNE), program).unwrap();
        let database = blas.join("hipSPARSELt/stage/lib/hipsparselt/library");
        create_dir_all(&database).unwrap();
        for arch in group.archs {
            for ending in ["co", "dat"] {
                let name = format!("TensileLibrary_{arch}.{ending}");
                rename(stage.join("lib/rocblas/library").join(&name), database.join(&name))
                    .unwrap();
            }
            let lazy = format!("TensileLibrary_lazy_{arch}.dat");
            rename(stage.join("lib/rocblas/library").join(&lazy), database.join(&lazy)).unwrap();
        }
    }
    case
}

/// The packages of these modules, built once in a run.
fn built() -> &'static Case {
    static BUILT: OnceLock<Case> = OnceLock::new();
    BUILT.get_or_init(|| with_modules().built(""))
}

#[test]
fn kernels_follow_their_binaries_into_the_packages_of_their_modules() {
    let case = built();
    let code = case.code_objects(TUNE);
    assert_eq!(code.len(), 6);
    for [package, archive, key, target] in &code {
        assert!(package.starts_with("rocm-sparse-gfx1"), "{package}");
        assert_eq!(*archive, format!("/opt/rocm-7.1/lib/.kpack/sparse_lib_{target}.kpack"));
        assert_eq!(*key, "libexec/exblas/exblas-tune#0");
    }
    for [package, archive, ..] in case.code_objects("lib/libexblas.so.1.2") {
        assert!(package.starts_with("rocm-blas-gfx1") && archive.contains("/blas_lib_"));
    }
    let sparse = ["lib/.kpack/sparse_lib.kpm", TUNE];
    assert_eq!(case.members("rocm-sparse"), BTreeSet::from(sparse.map(str::to_owned)));
    let kernels = [
        "lib/.kpack/sparse_lib_gfx1151.kpack",
        "lib/hipsparselt/library/TensileLibrary_gfx1151.co",
        "lib/hipsparselt/library/TensileLibrary_gfx1151.dat",
        "lib/hipsparselt/library/TensileLibrary_lazy_gfx1151.dat",
    ];
    assert_eq!(case.members("rocm-sparse-gfx115x"), BTreeSet::from(kernels.map(str::to_owned)));
    let blas = case.members("rocm-blas-gfx115x");
    assert!(blas.contains("lib/.kpack/blas_lib_gfx1151.kpack"), "{blas:?}");
    assert!(!blas.iter().any(|path| path.contains("sparse")), "{blas:?}");
}

#[test]
fn every_file_is_in_one_package() {
    let case = built();
    let mut seen = BTreeSet::new();
    for package in case.packages() {
        for path in case.members(package) {
            assert!(seen.insert(path.clone()), "{path} is in two packages");
        }
    }
    for path in ["lib/libexblas.so.1.2", "lib/libexcblas.so.1.0", "bin/exblas-bench", TUNE] {
        assert!(seen.contains(path), "{path}");
    }
}

#[test]
fn parts_of_an_artifact_depend_on_each_other_as_they_link() {
    tools::need(&["dpkg-deb"]);
    let case = built();
    let expected = "libc6 (>= 2.34), rocm-blas (<< 7.1.1~), rocm-blas (>= 7.1.0-1)";
    assert_eq!(case.depends("rocm-sparse"), expected);
    let expected = "rocm-blas-gfx110x (<< 7.1.1~), rocm-blas-gfx110x (>= 7.1.0-1), \
                    rocm-sparse (= 7.1.0-1)";
    assert_eq!(case.depends("rocm-sparse-gfx110x"), expected);
    assert_eq!(case.depends("rocm-blas-gfx110x"), "rocm-blas (= 7.1.0-1)");
}

#[test]
fn the_configuration_overrides_the_shipped_table() {
    let whole = "[selectors]\nrocm-blas = [{ artifact = 'blas' }]\n";
    let case = with_modules().built(whole);
    assert!(!case.packages().contains("rocm-sparse"));
    assert!(case.members("rocm-blas").contains(TUNE));
    let part = "[selectors]\nrocm-x = [{ artifact = 'blas', modules = ['rocSPARSE'] }]\n";
    let left = ["paths of blas_lib are not in any package", "lib/libexblas.so", "add a selector"];
    with_modules().is_no_configuration(part, &left);
}

#[test]
fn only_one_of_the_packages_of_an_artifact() {
    let case = with_modules();
    let output = case.run("", &["--only", "rocm-sparse"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = crate::rules::names(&case.out());
    let debs: BTreeSet<&str> =
        names.iter().filter_map(|name| name.strip_suffix("_7.1.0-1_amd64.deb")).collect();
    let expected = [
        "rocm-sparse",
        "rocm-sparse-all",
        "rocm-sparse-gfx110x",
        "rocm-sparse-gfx115x",
        "rocm-sparse-gfx120x",
    ];
    assert_eq!(debs, BTreeSet::from(expected));
}
