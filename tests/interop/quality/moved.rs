//! A set that rpm installs below another prefix works there.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use support::bases::RPM_TOOLS;
use support::example::{COMMON, GROUPS, PREFIX, Set, kernels, names, rockpack};
use support::roots::{Manager, Rpm, need_root};
use support::runtime::{Runtime, TOOLS, found, missing};
use support::tools;

use crate::quality::loader::{build_version, put_linked_program, run_linked_program};

const MOVED: &str = "srv/gpu/rocm";

/// The packages that an [`Updated`] system has.
const PACKAGES: [&str; 2] = [COMMON, "rocm-host-suite-sparse"];

#[test]
fn a_moved_set_finds_its_kernels_and_is_found() {
    tools::need(&[&["dpkg-deb", "chroot"], &RPM_TOOLS[..], TOOLS].concat());
    need_root();
    let set = Set::build();
    let manager = Rpm::new(set.scratch("root"));
    let root = manager.root().to_owned();
    put_linked_program(&set, &root);
    let kernels: Vec<String> = GROUPS.iter().map(kernels).collect();
    let mut packages =
        vec![COMMON, "rocm-all-gpus", "rocm-blas", "rocm-blas-all", "rocm-host-suite-sparse"];
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
    put_linked_program(&set, manager.root());
    let system = Updated { set, manager };
    let moved = format!("/{MOVED}");
    system.update("7.1.0", Some(&moved));
    system.update("7.1.1", Some(&moved));
    system.update("7.2.0", Some(&moved));
    system.update("7.2.1", None);
    assert_eq!(tools::succeed(&mut system.manager.verify(&PACKAGES[1..])), "");
    system.update("7.2.2", Some("/opt/elsewhere"));
    system.update("7.3.0", Some(&moved));
    system.remove();
    system.update("7.1.0", None);
    assert_eq!(tools::succeed(&mut system.manager.verify(&PACKAGES)), "");
    system.update("7.2.0", Some(&moved));
    system.update("7.3.0", None);
    system.remove();

    // An administrator's changes stay, wherever the set is: another comment, another folder, and lines after
    // the original ones.
    let folder = system.folder();
    let file = folder.join("rocm.conf");
    for change in [
        |written: &str| format!("# ours first\n{}", written.split_once('\n').unwrap().1),
        |written: &str| format!("{}\n/srv/own/lib\n", written.split_once('\n').unwrap().0),
        |written: &str| format!("{written}\n/srv/own/lib\n"),
        |written: &str| format!("{written}/srv/own/lib"),
    ] {
        system.update("7.1.0", Some(&moved));
        let own = change(&fs::read_to_string(&file).unwrap());
        fs::write(&file, &own).unwrap();
        system.install("7.1.1", Some(&moved));
        assert_eq!(fs::read_to_string(&file).unwrap(), own);
        tools::run(&mut system.manager.remove(&PACKAGES));
        let left: Vec<String> = names(&folder).into_iter().collect();
        assert_eq!(left, ["rocm.conf.rpmsave"], "{own}");
        assert_eq!(fs::read_to_string(folder.join(&left[0])).unwrap(), own);
        fs::remove_file(folder.join(&left[0])).unwrap();
    }
}

/// A system whose packages come from several versions of a set.
struct Updated {
    set: Set,
    manager: Rpm,
}

impl Updated {
    fn update(&self, version: &str, to: Option<&str>) {
        self.install(version, to);
        let series = version.rsplit_once('.').unwrap().0;
        let prefix = to.map_or(format!("/opt/rocm-{series}"), str::to_owned);
        assert_eq!(self.lines(), [format!("{prefix}/lib")], "{version}");
        assert_eq!(run_linked_program(self.manager.root()), "exit status: 0\n", "{version}");
    }

    fn install(&self, version: &str, to: Option<&str>) {
        let out = build_version(&self.set, version);
        let mut update = self.manager.command();
        update.arg("-U").args(to.map(|to| format!("--prefix={to}")));
        let archs = ["noarch", "x86_64"].iter();
        let files =
            PACKAGES.iter().zip(archs).map(|(name, arch)| format!("{name}-{version}-1.{arch}.rpm"));
        tools::run(update.args(files.map(|name| out.join(name))));
    }

    /// The lines of the loader's file, without comments.
    fn lines(&self) -> Vec<String> {
        let folder = self.folder();
        let found: Vec<String> = names(&folder).into_iter().collect();
        assert_eq!(found, ["rocm.conf"]);
        let text = fs::read_to_string(folder.join("rocm.conf")).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    fn remove(&self) {
        tools::run(&mut self.manager.remove(&PACKAGES));
        let left = names(&self.folder());
        assert!(left.is_empty(), "{left:?}");
        let told = run_linked_program(self.manager.root());
        assert!(told.contains("cannot open shared object file"));
    }

    fn folder(&self) -> PathBuf {
        self.manager.root().join("etc/ld.so.conf.d")
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
        let root = manager.root();
        fs::create_dir_all(root.join("foreign")).unwrap();
        fs::create_dir_all(root.join(link).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/foreign", root.join(link)).unwrap();
        let mut install: Command = manager.command();
        install.args(["-i", "--prefix"]).arg(format!("/{MOVED}"));
        let told = tools::told(install.arg(set.rpm(COMMON)).arg(set.rpm("rocm-blas")));
        assert_eq!(told.contains(&format!("/{link} is a symbolic link")), is_refused, "{told}");
        assert_eq!(root.join("foreign/gpu/rocm/lib").exists(), !is_refused, "{told}");
        assert_eq!(names(&root.join("foreign")).is_empty(), is_refused);
    }
}
