//! A program in any folder finds the libraries of an installed set, without LD_LIBRARY_PATH.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::bases::RPM_TOOLS;
use support::example::{COMMON, Set, configuration, rockpack, shards};
use support::roots::{Dpkg, Manager, Rpm, need_root, put_program};
use support::tools;

const LIBRARY: &str = "rocm-host-suite-sparse";
const LOADER_FILE: &str = "etc/ld.so.conf.d/rocm.conf";
const PROGRAM: &str = "/usr/local/bin/program";

/// Puts a program into `root` that is linked to a library of the set, without a path to it.
pub fn put_linked_program(set: &Set, root: &Path) {
    let unpacked = set.scratch("linked");
    set.unpack_debs(&[LIBRARY], &unpacked);
    let library = unpacked.join("opt/rocm-7.1/lib/libexsuitesparse.so");
    let place = root.join(PROGRAM.trim_start_matches('/'));
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let source = set.scratch("main.c");
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let mut compile = Command::new("gcc");
    compile.arg(&source).arg("-Wl,--no-as-needed").arg(library).arg("-o").arg(&place);
    tools::run(&mut compile);
    let needed = tools::succeed(Command::new("ldd").arg(&place));
    assert!(needed.contains("libexsuitesparse.so.7 => not found"), "{needed}");
    // Along with a program of this machine come the C library and the loader.
    put_program(root, "/bin/sh");
}

/// The output of the program inside `root`.
pub fn run_linked_program(root: &Path) -> String {
    let mut run = Command::new("chroot");
    run.arg(root).arg(PROGRAM).env_remove("LD_LIBRARY_PATH");
    tools::told(&mut run)
}

fn finds_its_library(root: &Path) -> bool {
    let told = run_linked_program(root);
    let missing = told.contains("error while loading shared libraries: libexsuitesparse.so.7");
    assert!(missing || told == "exit status: 0\n", "{told}");
    !missing
}

/// Builds another version of the set.
pub fn build_version(set: &Set, version: &str) -> std::path::PathBuf {
    let out = set.scratch(version);
    let mut build = rockpack();
    build.arg("build").arg("--artifacts").arg(shards()).arg("--config").arg(configuration());
    tools::run(build.args(["--version", version]).arg("--out").arg(&out));
    out
}

/// Installs a stub for the C library's package: it runs ldconfig on the trigger.
fn put_libc_bin(manager: &Dpkg) {
    let package = manager.root().join("var/libc-bin");
    fs::create_dir_all(package.join("DEBIAN")).unwrap();
    let control = "Package: libc-bin\nVersion: 1\nArchitecture: all\nMaintainer: A <a@b.example>\n\
                   Description: waits for ldconfig\n";
    fs::write(package.join("DEBIAN/control"), control).unwrap();
    fs::write(package.join("DEBIAN/triggers"), "interest-noawait ldconfig\n").unwrap();
    let script = "#!/bin/sh\nif [ \"$1\" = triggered ]; then ldconfig -r \"$DPKG_ROOT\"; fi\n";
    let path = package.join("DEBIAN/postinst");
    fs::write(&path, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&path, mode).unwrap();
    let file = manager.root().join("var/libc-bin.deb");
    tools::run(Command::new("dpkg-deb").arg("-b").arg(&package).arg(&file));
    tools::run(manager.command().arg("-i").arg(&file));
}

#[test]
fn dpkg_makes_the_libraries_known_and_forgets_them() {
    tools::need(&["dpkg", "dpkg-deb", "gcc", "ldd", "ldconfig", "chroot"]);
    need_root();
    let set = Set::build();
    let manager = Dpkg::new(set.scratch("root"));
    let root = manager.root().to_owned();
    put_linked_program(&set, &root);
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::write(root.join("etc/ld.so.conf"), "include /etc/ld.so.conf.d/*.conf\n").unwrap();
    put_libc_bin(&manager);
    assert!(!finds_its_library(&root));

    let told = tools::told(&mut manager.install(&set, &[LIBRARY]));
    assert!(told.contains(&format!("{LIBRARY} depends on {COMMON} (<< 7.1.1~)")), "{told}");
    tools::run(&mut manager.install(&set, &[COMMON, LIBRARY]));
    assert!(finds_its_library(&root));

    // An administrator's changes survive an upgrade.
    let changed = "# ours first\n/opt/rocm-7.1/lib\n";
    fs::write(root.join(LOADER_FILE), changed).unwrap();
    let upgraded = build_version(&set, "7.1.1");
    let debs = [format!("{COMMON}_7.1.1-1_all.deb"), format!("{LIBRARY}_7.1.1-1_amd64.deb")];
    tools::run(manager.command().arg("-i").args(debs.map(|name| upgraded.join(name))));
    assert_eq!(fs::read_to_string(root.join(LOADER_FILE)).unwrap(), changed);
    assert!(finds_its_library(&root));

    tools::run(manager.command().arg("-r").args([LIBRARY, COMMON]));
    assert!(!finds_its_library(&root));
    assert!(root.join(LOADER_FILE).is_file(), "a configuration file goes with a purge");
    tools::run(manager.command().arg("-P").args([LIBRARY, COMMON]));
    assert!(!root.join("etc/ld.so.conf.d").exists());
}

#[test]
fn rpm_makes_the_libraries_known_and_forgets_them() {
    tools::need(&[&["dpkg-deb", "gcc", "chroot"], &RPM_TOOLS[..]].concat());
    need_root();
    let set = Set::build();
    let manager = Rpm::new(set.scratch("root"));
    let root = manager.root().to_owned();
    put_linked_program(&set, &root);
    assert!(!finds_its_library(&root));
    let told = tools::told(&mut manager.install(&set, &[LIBRARY]));
    assert!(told.contains("rocm-common >= 7.1.0-1 is needed"), "{told}");
    tools::run(&mut manager.install(&set, &[COMMON, LIBRARY]));
    assert!(finds_its_library(&root));
    assert_eq!(tools::succeed(&mut manager.verify(&[COMMON, LIBRARY])), "");
    let configuration = tools::succeed(manager.command().args(["-qc", COMMON]));
    assert_eq!(configuration.trim(), format!("/{LOADER_FILE}"));

    let changed = "# ours first\n/opt/rocm-7.1/lib\n";
    fs::write(root.join(LOADER_FILE), changed).unwrap();
    let upgraded = build_version(&set, "7.1.1");
    let rpms = [format!("{COMMON}-7.1.1-1.noarch.rpm"), format!("{LIBRARY}-7.1.1-1.x86_64.rpm")];
    tools::run(manager.command().arg("-U").args(rpms.map(|name| upgraded.join(name))));
    assert_eq!(fs::read_to_string(root.join(LOADER_FILE)).unwrap(), changed);
    assert!(finds_its_library(&root));

    tools::run(&mut manager.remove(&[LIBRARY, COMMON]));
    assert!(!finds_its_library(&root));
    assert!(!root.join(LOADER_FILE).exists());
}
