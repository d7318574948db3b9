//! The link to the newest installed series where a package manager runs scripts outside of the root or moves the
//! prefix, and what `verify` says of its packages.

use std::fs;
use std::path::{Path, PathBuf};

use support::bases::RPM_TOOLS;
use support::example::{configuration, rockpack, shards};
use support::roots::{Dpkg, Manager, Rpm, need_root};
use support::tools;

use crate::quality::alternatives::are_clean;

const COMMON: &str = "amdrocm-common7.1";

/// Builds the example shards under AMD's names.
fn build(folder: &Path) -> PathBuf {
    let out = folder.join("set");
    let mut build = rockpack();
    build.args(["build", "--scheme", "amdrocm", "--version", "7.1.0", "--artifacts"]).arg(shards());
    tools::run(build.arg("--config").arg(configuration()).arg("--out").arg(&out));
    out
}

#[test]
fn dpkg_makes_the_link_in_the_root_and_verify_knows_its_package() {
    tools::need(&["dpkg", "dpkg-deb", "rpm", "shellcheck", "dash"]);
    need_root();
    let folder = tempfile::tempdir().unwrap();
    let set = build(folder.path());
    are_clean(&set);
    tools::run(rockpack().arg("verify").arg(&set).arg("--against").arg(shards()));
    let manager = Dpkg::new(folder.path().join("root"));
    let link = manager.root().join("opt/rocm/core");
    let common = set.join(format!("{COMMON}_7.1.0-1_all.deb"));
    tools::run(manager.command().arg("-i").arg(common));
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("core-7.1"));
    tools::run(manager.command().args(["-r", COMMON]));
    assert!(!link.is_symlink());
    tools::run(manager.command().args(["-P", COMMON]));
    assert!(!manager.root().join("opt").exists());
}

/// The link belongs to the prefix of the build.
#[test]
fn a_moved_prefix_has_no_link() {
    tools::need(&RPM_TOOLS);
    need_root();
    let folder = tempfile::tempdir().unwrap();
    let set = build(folder.path());
    let common = set.join(format!("{COMMON}-7.1.0-1.noarch.rpm"));
    for (prefix, is_linked) in [("/srv/core-7.1", false), ("/opt/rocm/core-7.1", true)] {
        let manager = Rpm::new(folder.path().join(format!("root-{is_linked}")));
        tools::run(manager.command().args(["-i", "--prefix", prefix]).arg(&common));
        let root = manager.root();
        assert_eq!(root.join("opt/rocm/core").is_symlink(), is_linked);
        assert!(!root.join("srv/core").is_symlink());
        tools::run(&mut manager.remove(&[COMMON]));
        assert!(!root.join("opt/rocm").exists() && !root.join("srv/core-7.1").exists());
    }
}
