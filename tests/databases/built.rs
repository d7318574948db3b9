//! Databases in the packages that the program builds.

use std::fs;
use std::path::Path;
use std::process::Command;

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
