//! A set that rpm installs below another prefix works there.

use std::fs;
use std::process::Command;

use crate::bases::RPM_TOOLS;
use crate::example::{COMMON, GROUPS, PREFIX, Set, kernels, rockpack};
use crate::loader::{put_linked_program, run_linked_program};
use crate::roots::{Manager, Rpm, is_root};
use crate::runtime::{Runtime, TOOLS, found, missing};
use crate::tools;

const MOVED: &str = "srv/gpu/rocm";

#[test]
fn a_moved_set_finds_its_kernels_and_is_found() {
    if !tools::have(&[&["dpkg-deb", "chroot"], &RPM_TOOLS[..], TOOLS].concat()) || !is_root() {
        return;
    }
    let set = Set::build();
    let manager = Rpm::new(set.scratch("root"));
    let root = manager.root().to_owned();
    put_linked_program(&set, &root);
    let kernels: Vec<String> = GROUPS.iter().map(kernels).collect();
    let mut packages = vec![COMMON, "rocm", "rocm-blas", "rocm-blas-all", "rocm-host-suite-sparse"];
    packages.extend(kernels.iter().map(String::as_str));
    let mut install = manager.command();
    install.args(["-i", "--prefix"]).arg(format!("/{MOVED}"));
    tools::run(install.args(packages.iter().map(|package| set.rpm(package))));
    assert!(!root.join(PREFIX).exists());
    let moved = root.join(MOVED);

    let loader = fs::read_to_string(root.join("etc/ld.so.conf.d/rocm.conf")).unwrap();
    assert_eq!(loader, format!("/{MOVED}/lib\n"));
    assert_eq!(run_linked_program(&root), "exit status: 0\n");

    let library = moved.join("lib/libexblas.so.1");
    let runtime = Runtime::build(&set.scratch("stub"), std::slice::from_ref(&library));
    for group in &GROUPS {
        let lines = runtime.load(std::slice::from_ref(&library), group.archs[0]);
        assert_eq!(missing(&lines), Vec::<&str>::new());
        let archives = found(&lines).into_iter().map(|found| found.archive.clone());
        let expected = moved.join(format!("lib/.kpack/blas_lib_{}.kpack", group.archs[0]));
        let archives: Vec<_> = archives.collect();
        assert!(!archives.is_empty() && archives.iter().all(|archive| *archive == expected));
    }
    tools::run(rockpack().arg("verify").arg(&moved));

    // The loader's file is where it was; the libraries are not.
    tools::run(&mut manager.remove(&packages));
    assert!(!moved.exists() && !root.join("etc/ld.so.conf.d/rocm.conf").exists());
}

#[test]
fn a_moved_prefix_with_a_link_in_it_is_refused() {
    if !tools::have(&RPM_TOOLS) || !is_root() {
        return;
    }
    let set = Set::build();
    let manager = Rpm::new(set.scratch("root"));
    fs::create_dir_all(manager.root().join("foreign")).unwrap();
    std::os::unix::fs::symlink("/foreign", manager.root().join("srv")).unwrap();
    let mut install: Command = manager.command();
    install.args(["-i", "--prefix"]).arg(format!("/{MOVED}"));
    let told = tools::told(install.arg(set.rpm(COMMON)).arg(set.rpm("rocm-blas")));
    assert!(told.contains("/srv is a symbolic link"), "{told}");
    assert!(!manager.root().join("foreign/gpu").exists());
}
