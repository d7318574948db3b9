//! Groups install side by side and leave nothing behind, in dpkg and in rpm.

use std::fs;

use support::bases::RPM_TOOLS;
use support::example::{COMMON, GROUPS, PREFIX, Set, kernels};
use support::roots::{Dpkg, Manager, Rpm, need_root};
use support::tools;

fn has(manager: &dyn Manager, path: &str) -> bool {
    manager.root().join(PREFIX).join(path).is_file()
}

/// Installs the host and one group, then another group beside these, and removes them group by group.
fn installs_side_by_side(manager: &dyn Manager, set: &Set) {
    let [first, _, second] = &GROUPS;
    let (first, second) = (kernels(first), kernels(second));
    let before = manager.installed();
    tools::run(&mut manager.install(set, &[COMMON, "rocm-blas", &first]));
    let one_group = manager.installed();
    assert!(has(manager, "lib/.kpack/blas_lib_gfx1100.kpack") && has(manager, "bin/exblas-bench"));
    assert!(!has(manager, "lib/.kpack/blas_lib_gfx1200.kpack"));

    tools::run(&mut manager.install(set, &[&second]));
    let both = manager.installed();
    assert!(one_group.iter().all(|(path, entry)| both.get(path) == Some(entry)));
    assert!(has(manager, "lib/.kpack/blas_lib_gfx1200.kpack"));
    assert_eq!(tools::succeed(&mut manager.verify(&["rocm-blas", &first, &second])), "");

    tools::run(&mut manager.remove(&[&second]));
    assert_eq!(manager.installed(), one_group, "removing one group leaves the other whole");
    let refused = tools::told(&mut manager.remove(&["rocm-blas"]));
    assert!(refused.contains(&first) && !refused.contains("status: 0"), "{refused}");
    tools::run(&mut manager.remove(&[&first, "rocm-blas", COMMON]));
    assert_eq!(manager.installed(), before, "nothing is left behind");
}

/// A kernel package cannot be installed without its host.
fn needs_the_host(manager: &dyn Manager, set: &Set) {
    let told = tools::told(&mut manager.install(set, &[&kernels(&GROUPS[0])]));
    assert!(
        told.contains("rocm-blas (= 7.1.0-1)") || told.contains("rocm-blas = 7.1.0-1"),
        "{told}"
    );
    assert!(!told.contains("status: 0"), "{told}");
}

/// An installation refuses a prefix that is a link before it writes anything through the link.
fn refuses_a_link_as_prefix(manager: &dyn Manager, set: &Set) {
    let foreign = manager.root().join("opt/foreign");
    fs::create_dir_all(&foreign).unwrap();
    std::os::unix::fs::symlink("foreign", manager.root().join(PREFIX)).unwrap();
    let told = tools::told(&mut manager.install(set, &[COMMON, "rocm-blas"]));
    assert!(
        told.contains("is a symbolic link, but the prefix has to be a real directory"),
        "{told}"
    );
    assert!(!told.contains("status: 0"), "{told}");
    assert_eq!(fs::read_dir(foreign).unwrap().count(), 0);
}

#[test]
fn dpkg_installs_groups_side_by_side() {
    tools::need(&["dpkg"]);
    need_root();
    let set = Set::build();
    installs_side_by_side(&Dpkg::new(set.scratch("groups")), &set);
    needs_the_host(&Dpkg::new(set.scratch("host")), &set);
    refuses_a_link_as_prefix(&Dpkg::new(set.scratch("link")), &set);
}

#[test]
fn rpm_installs_groups_side_by_side() {
    tools::need(&RPM_TOOLS);
    need_root();
    let set = Set::build();
    installs_side_by_side(&Rpm::new(set.scratch("groups")), &set);
    needs_the_host(&Rpm::new(set.scratch("host")), &set);
    refuses_a_link_as_prefix(&Rpm::new(set.scratch("link")), &set);
}

/// The folder above the prefix belongs to no package.
const NESTED: &str = "/opt/example/rocm-7.1";

/// Kernel packages and metapackages are data, which rpm can install before any program is there.
#[test]
fn rpm_installs_kernels_where_no_program_is() {
    tools::need(&["rpm"]);
    need_root();
    let set = Set::with(&["--format", "rpm", "--prefix", NESTED]);
    let packages = ["rocm-all-gpus".to_owned(), kernels(&GROUPS[0])];
    let packages = packages.each_ref().map(String::as_str);
    let manager = Rpm::empty(set.scratch("empty"));
    let install = || {
        let mut command = manager.install(&set, &packages);
        command.arg("--nodeps");
        command
    };
    let remove = || tools::run(manager.remove(&packages).arg("--nodeps"));
    let [opt, srv] = ["opt", "srv"].map(|folder| manager.root().join(folder));
    let archive = "lib/.kpack/blas_lib_gfx1100.kpack";

    tools::run(&mut install());
    assert!(opt.join("example/rocm-7.1").join(archive).is_file());
    remove();
    assert_eq!(fs::read_dir(&opt).unwrap().count(), 0, "an empty folder is left");

    tools::run(install().arg("--prefix=/srv/gpu/rocm"));
    assert!(srv.join("gpu/rocm").join(archive).is_file());
    remove();
    assert!(!srv.join("gpu/rocm").exists());

    // A link is refused on the way to where the packages go, and nowhere else.
    fs::remove_dir(srv.join("gpu")).unwrap();
    fs::create_dir(srv.join("other")).unwrap();
    std::os::unix::fs::symlink("other", srv.join("gpu")).unwrap();
    let mut moved = manager.install(&set, &packages[1..]);
    let told = tools::told(moved.args(["--nodeps", "--prefix=/srv/gpu/rocm"]));
    let guard = "/srv/gpu is a symbolic link, but the prefix has to be a real directory";
    assert!(told.contains(guard) && !told.contains("status: 0"), "{told}");
    assert_eq!(fs::read_dir(srv.join("other")).unwrap().count(), 0);
    tools::run(&mut install());
}
