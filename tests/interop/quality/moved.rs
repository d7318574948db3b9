//! A set that rpm installs below another prefix works there.

use std::fs;
use std::process::Command;

use support::bases::RPM_TOOLS;
use support::example::{COMMON, GROUPS, PREFIX, Set, kernels, names, rockpack};
use support::roots::{Manager, Rpm, need_root};
use support::runtime::{Runtime, TOOLS, found, missing};
use support::tools;

use crate::quality::loader::{build_version, put_linked_program, run_linked_program};

const MOVED: &str = "srv/gpu/rocm";

#[test]
fn a_moved_set_finds_its_kernels_and_is_found() {
    tools::need(&[&["dpkg-deb", "chroot"], &RPM_TOOLS[..], TOOLS].concat());
    need_root();
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
    assert!(loader.ends_with(&format!("\n/{MOVED}/lib\n")), "{loader}");
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

    // The loader's file stays in its place; the libraries are elsewhere.
    tools::run(&mut manager.remove(&packages));
    assert!(!moved.exists() && names(&root.join("etc/ld.so.conf.d")).is_empty());
}

/// The loader's file follows, without leaving an old one.
#[test]
fn an_update_may_move_a_set_and_move_it_back() {
    tools::need(&[&["dpkg-deb", "chroot", "gcc"], &RPM_TOOLS[..]].concat());
    need_root();
    let set = Set::build();
    let manager = Rpm::new(set.scratch("root"));
    let root = manager.root().to_owned();
    put_linked_program(&set, &root);
    let packages = [COMMON, "rocm-host-suite-sparse"];
    let folder = root.join("etc/ld.so.conf.d");
    let lines = || {
        let found: Vec<String> = names(&folder).into_iter().collect();
        assert_eq!(found, ["rocm.conf"]);
        let text = fs::read_to_string(folder.join("rocm.conf")).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    let install = |version: &str, to: Option<&str>| {
        let out = build_version(&set, version);
        let mut update = manager.command();
        update.arg("-U").args(to.map(|to| format!("--prefix={to}")));
        let archs = ["noarch", "x86_64"].iter();
        let files =
            packages.iter().zip(archs).map(|(name, arch)| format!("{name}-{version}-1.{arch}.rpm"));
        tools::run(update.args(files.map(|name| out.join(name))));
    };
    let update = |version: &str, to: Option<&str>| {
        install(version, to);
        let series = version.rsplit_once('.').unwrap().0;
        let prefix = to.map_or(format!("/opt/rocm-{series}"), str::to_owned);
        assert_eq!(lines(), [format!("{prefix}/lib")], "{version}");
        assert_eq!(run_linked_program(&root), "exit status: 0\n", "{version}");
    };
    let remove = || {
        tools::run(&mut manager.remove(&packages));
        assert!(names(&folder).is_empty(), "{:?}", names(&folder));
        assert!(run_linked_program(&root).contains("cannot open shared object file"));
    };
    let moved = format!("/{MOVED}");
    update("7.1.0", Some(&moved));
    update("7.1.1", Some(&moved));
    update("7.2.0", Some(&moved));
    update("7.2.1", None);
    assert_eq!(tools::succeed(&mut manager.verify(&["rocm-host-suite-sparse"])), "");
    update("7.2.2", Some("/opt/elsewhere"));
    update("7.3.0", Some(&moved));
    remove();
    update("7.1.0", None);
    assert_eq!(tools::succeed(&mut manager.verify(&packages)), "");
    update("7.2.0", Some(&moved));
    update("7.3.0", None);
    remove();

    // An administrator's changes stay, wherever the set is: another comment, another folder, and lines after
    // the original ones.
    let file = folder.join("rocm.conf");
    for change in [
        |written: &str| format!("# ours first\n{}", written.split_once('\n').unwrap().1),
        |written: &str| format!("{}\n/srv/own/lib\n", written.split_once('\n').unwrap().0),
        |written: &str| format!("{written}\n/srv/own/lib\n"),
        |written: &str| format!("{written}/srv/own/lib"),
    ] {
        update("7.1.0", Some(&moved));
        let own = change(&fs::read_to_string(&file).unwrap());
        fs::write(&file, &own).unwrap();
        install("7.1.1", Some(&moved));
        assert_eq!(fs::read_to_string(&file).unwrap(), own);
        tools::run(&mut manager.remove(&packages));
        let left: Vec<String> = names(&folder).into_iter().collect();
        assert_eq!(left, ["rocm.conf.rpmsave"], "{own}");
        assert_eq!(fs::read_to_string(folder.join(&left[0])).unwrap(), own);
        fs::remove_file(folder.join(&left[0])).unwrap();
    }
}

/// A link in place of a system folder is fine, as with the usual prefix.
#[test]
fn a_moved_prefix_with_a_link_in_it_is_refused() {
    tools::need(&RPM_TOOLS);
    need_root();
    let set = Set::build();
    for (link, is_refused) in [("srv/gpu", true), ("srv", false)] {
        let manager = Rpm::new(set.scratch(&format!("root-{is_refused}")));
        let path = |name: &str| manager.root().join(name);
        fs::create_dir_all(path("foreign")).unwrap();
        fs::create_dir_all(path(link).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/foreign", path(link)).unwrap();
        let mut install: Command = manager.command();
        install.args(["-i", "--prefix"]).arg(format!("/{MOVED}"));
        let told = tools::told(install.arg(set.rpm(COMMON)).arg(set.rpm("rocm-blas")));
        assert_eq!(told.contains(&format!("/{link} is a symbolic link")), is_refused, "{told}");
        assert_eq!(path("foreign/gpu/rocm/lib").exists(), !is_refused, "{told}");
        assert_eq!(names(&path("foreign")).is_empty(), is_refused);
    }
}
