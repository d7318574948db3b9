//! Clients that skip a hotfix: the next hotfix covers its moves, from its receipt alone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use support::example::{GROUPS, copy_shards};
use support::queries::deb_field;
use support::tools;

use super::{Case, HOST_LIBRARY, SPARSE_LIBRARY};

/// The stages of the sparse suite and of rocBLAS' C interface in every shard.
fn stages(case: &Case) -> Vec<[PathBuf; 2]> {
    let of_group = |group: &support::example::Group| {
        let folder = group.folder(&case.path("shards"));
        let blas = folder.join(format!("blas_lib_{}", group.family)).join(HOST_LIBRARY);
        [stage_of(&folder.join(SPARSE_LIBRARY)), stage_of(&blas)]
    };
    GROUPS.iter().map(of_group).collect()
}

fn stage_of(library: &Path) -> PathBuf {
    library.parent().unwrap().parent().unwrap().to_owned()
}

#[test]
fn the_next_hotfix_knows_what_moved_before() {
    let case = Case(tempfile::tempdir().unwrap());
    copy_shards(&case.path("shards"));
    for [sparse, _] in stages(&case) {
        fs::create_dir_all(sparse.join("share")).unwrap();
        fs::write(sparse.join("share/moved"), "1").unwrap();
        symlink("elsewhere", sparse.join("share/link")).unwrap();
    }
    tools::run(&mut case.build("1"));
    for [sparse, blas] in stages(&case) {
        fs::create_dir_all(blas.join("share")).unwrap();
        fs::rename(sparse.join("share/moved"), blas.join("share/moved")).unwrap();
        fs::remove_file(sparse.join("share/link")).unwrap();
        fs::create_dir(sparse.join("share/link")).unwrap();
        fs::write(sparse.join("share/link/file"), "1").unwrap();
    }
    tools::run(&mut case.hotfix("2", &["1"]));
    case.change_blas();
    case.change_sparse();
    tools::run(&mut case.hotfix("3", &["2"]));
    let field = |package: &str, field: &str| {
        let file = format!("{package}_7.1.0-3_amd64.deb");
        deb_field(&case.path("3").join(file), field)
    };
    for kind in ["Breaks", "Replaces"] {
        assert_eq!(field("rocm-blas", kind), "rocm-host-suite-sparse (<< 7.1.0-2)");
    }
    assert!(preinst(&case, "3").contains("symlink_to_dir '/opt/rocm-7.1/share/link' 'elsewhere'"));
    assert_eq!(preinst(&case, "3"), preinst(&case, "2").replace("7.1.0-2~", "7.1.0-3~"));

    // With the receipts of both, the sparse suite stays, and relations refer to the version before its move.
    case.change_blas();
    tools::run(&mut case.hotfix("4", &["1", "3"]));
    let file = case.path("4").join("rocm-blas_7.1.0-4_amd64.deb");
    assert_eq!(deb_field(&file, "Breaks"), "rocm-host-suite-sparse (<< 7.1.0-3)");
    let mut verify = support::example::rockpack();
    let folders = ["1", "2", "3", "4"].map(|release| case.path(release));
    tools::run(verify.arg("verify").args(folders).arg("--against").arg(case.path("shards")));

    // An explicit bound that is lower adds nothing.
    case.change_blas();
    let moved = serde_json::json!({"rocm-blas": ["rocm-host-suite-sparse < 7.1.0-1"]});
    let config = case.with_keys(&[("moved", moved)]);
    tools::run(case.configured(&config, "5").arg("--since").arg(case.receipt("3")));
    let file = case.path("5").join("rocm-blas_7.1.0-5_amd64.deb");
    assert_eq!(deb_field(&file, "Breaks"), "rocm-host-suite-sparse (<< 7.1.0-2)");
}

fn preinst(case: &Case, release: &str) -> String {
    let package = format!("rocm-host-suite-sparse_7.1.0-{release}_amd64.deb");
    let control = case.path(&format!("control-{release}"));
    let mut unpack = std::process::Command::new("dpkg-deb");
    tools::run(unpack.arg("-e").arg(case.path(release).join(package)).arg(&control));
    fs::read_to_string(control.join("preinst")).unwrap()
}
