//! Databases in the packages that the program builds.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::device::{compile, run as execute};
use crate::example::{GROUPS, build_of, copy_shards, deb_name, files, kernels, rockpack};
use crate::tools::{have, run, told};

const LIBRARY: &str = "lib/rocblas/library";

/// The files of a `.deb` of the set in `out`, below the install prefix.
fn installed(out: &Path, package: &str) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    run(Command::new("dpkg-deb").arg("-x").arg(out.join(deb_name(package))).arg(root.path()));
    let paths = files(root.path()).into_keys();
    let below = paths.filter_map(|path| Some(path.split_once(LIBRARY)?.1.to_owned()));
    below.collect()
}

#[test]
fn a_library_with_different_fallbacks_is_packed_by_arch() {
    if !have(&["dpkg-deb"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (shards, out) = (folder.path().join("shards"), folder.path().join("out"));
    copy_shards(&shards);
    let fallback = format!("{LIBRARY}/TensileLibrary_fallback.dat");
    let changed = GROUPS[0].original(&shards, &fallback);
    let mut bytes = fs::read(&changed).unwrap();
    let at = bytes.windows(4).position(|window| window == b"Cijk").unwrap();
    bytes[at] = b'K';
    fs::write(&changed, &bytes).unwrap();
    let output = run(&mut build_of(&shards, &out));
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!installed(&out, "rocm-blas").iter().any(|path| path.contains("fallback")));
    for group in &GROUPS {
        let paths = installed(&out, &kernels(group));
        for arch in group.archs {
            for name in ["TensileLibrary_fallback.dat", &format!("TensileLibrary_{arch}.co")] {
                let path = format!("/{arch}/{name}");
                assert!(paths.contains(&path), "{path} is not in {paths:?}; {shown}");
            }
        }
        assert!(paths.iter().all(|path| path.matches('/').count() == 2), "{paths:?}");
    }
    let verified = rockpack().arg("verify").arg(&out).output().unwrap();
    assert!(verified.status.success(), "{}", told(rockpack().arg("verify").arg(&out)));
}

#[test]
fn an_index_that_cannot_be_read_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let (shards, out) = (folder.path().join("shards"), folder.path().join("out"));
    copy_shards(&shards);
    let index = format!("{LIBRARY}/TensileLibrary_gfx1151.dat");
    fs::write(GROUPS[1].original(&shards, &index), "hello").unwrap();
    let output = run(&mut build_of(&shards, &out));
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let subject = format!("gfx1151-build/blas_lib_gfx1151/{index}");
    assert!(said.contains(&format!("R029 database-unreadable: {subject}: is no")), "{said}");
    assert!(!said.contains("R019"), "{said}");
    let refused = build_of(&shards, &out).arg("--strict").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_library_of_one_arch_is_in_its_kernel_package() {
    if !have(&["clang++-19", "ld.lld-19", "dpkg-deb"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (shards, out) = (folder.path().join("shards"), folder.path().join("out"));
    copy_shards(&shards);
    compile(folder.path(), "unit", &["gfx1151"], &[]);
    let library = GROUPS[1].original(&shards, "lib/libMIOpenCKConv_gfx1151.so");
    let linked = library.to_str().unwrap();
    execute(folder.path(), &["clang++-19", "-shared", "-fuse-ld=lld", "unit.o", "-o", linked]);
    run(&mut build_of(&shards, &out));
    let root = folder.path().join("root");
    let package = out.join(deb_name(&kernels(&GROUPS[1])));
    run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root));
    let installed = root.join("opt/rocm-7.1/lib/libMIOpenCKConv_gfx1151.so");
    assert_eq!(fs::read(installed).unwrap(), fs::read(&library).unwrap());
    let verify =
        || rockpack().arg("verify").arg(&out).arg("--against").arg(&shards).output().unwrap();
    let verified = verify();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    // It is the finding that allows it.
    let receipt = fs::read_to_string(out.join("packages.json")).unwrap();
    fs::write(out.join("packages.json"), receipt.replace("R028", "R021")).unwrap();
    let shown = String::from_utf8_lossy(&verify().stdout).into_owned();
    assert!(shown.contains("V021") && shown.contains("libMIOpenCKConv_gfx1151.so"), "{shown}");
}
