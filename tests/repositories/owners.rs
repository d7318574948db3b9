//! Packages of one repository that own one path: dpkg is the judge.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::rockpack;
use support::foreign_deb::{ForeignDeb, TOOLS};
use support::repo_fixture::{failed_checks, plain_spec, publish, repo, repo_at, rpm, verify};
use support::roots::dpkg_database;
use support::tools::{need, need_root, run};

use crate::others::lines_with;

/// A package of `version` with a file at `path`, and whole lines of fields.
fn made(folder: &Path, (name, version, path): (&str, &str, &str), fields: &str) -> PathBuf {
    let plain = ForeignDeb::new(name, fields);
    let control = plain.control.replace("Version: 1\n", &format!("Version: {version}\n"));
    let file = folder.join(format!("{name}_{version}_all.deb"));
    ForeignDeb { control, path: Some(path), ..plain }.write(&file);
    file
}

/// Whether dpkg installs packages, one run for each list of them.
pub fn dpkg_installs(runs: &[&[&Path]]) -> bool {
    let room = tempfile::tempdir().unwrap();
    dpkg_database(room.path(), "");
    let installs = |packages: &[&Path]| {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", room.path().display())).arg("--force-not-root");
        dpkg.args([
            "--force-script-chrootless",
            "--force-depends",
            "--auto-deconfigure",
            "--install",
        ])
        .args(packages);
        dpkg.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        dpkg.output().unwrap().status.success()
    };
    runs.iter().all(|packages| installs(packages))
}

/// Whether rpm would install packages at once.
fn rpm_installs(packages: &[&Path]) -> bool {
    let room = tempfile::tempdir().unwrap();
    let mut rpm = Command::new("rpm");
    rpm.arg("--root").arg(room.path()).args(["--test", "--nodeps", "--nosignature", "-i"]);
    rpm.args(packages).output().unwrap().status.success()
}

/// Publishes packages and verifies the repository: the findings of a code, and the failed checks.
fn told(packages: &[&Path], code: &str) -> (Vec<String>, Vec<String>, String) {
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("repo");
    let said = publish(&mut repo(packages, &out));
    let again = publish(&mut repo_at(&[], &out, 1));
    let found = lines_with(&said, code);
    assert_eq!(found, lines_with(&again, code), "without reading the packages");
    let checked = verify(&out);
    (found, failed_checks(&checked), checked)
}

fn is_silent(packages: &[&Path]) {
    let (found, failed, checked) = told(packages, "R06");
    assert!(found.is_empty() && failed.is_empty(), "{found:?}\n{checked}");
}

#[test]
fn two_packages_with_one_file_are_named() {
    need(&TOOLS);
    need(&["dpkg"]);
    need_root();
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    let path = "opt/rocm/lib/libx.so.1";
    let plain = made(&here.join("plain"), ("rocm-x", "7.1", path), "");
    let versioned = made(&here.join("versioned"), ("rocm-x7.1", "7.1", path), "");
    assert!(!dpkg_installs(&[&[&plain, &versioned]]));
    let (found, failed, checked) = told(&[&plain, &versioned], "R062");
    assert_eq!((found.len(), failed), (1, vec!["V079".to_owned()]), "{found:?}\n{checked}");
    for part in
        ["/opt/rocm/lib/libx.so.1", "rocm-x 7.1", "rocm-x7.1 7.1", "no relation keeps them apart"]
    {
        assert!(found[0].contains(part), "{part}: {found:?}");
    }
    assert!(checked.contains("is owned by rocm-x 7.1 and rocm-x7.1 7.1"), "{checked}");
    // It is said when the second one comes later, too, and of files that are configuration.
    let out = here.join("later");
    publish(&mut repo(&[&plain], &out));
    assert!(publish(&mut repo_at(&[&versioned], &out, 1)).contains("R062"));
    // Whatever keeps them apart, or lets one have the files of the other.
    for (name, fields) in [
        ("a", "Conflicts: rocm-x (<= 7.1)\n"),
        ("b", "Breaks: rocm-x\nReplaces: rocm-x\n"),
        ("c", "Provides: x\nConflicts: rocm-x\n"),
    ] {
        let versioned = made(&here.join(name), ("rocm-x7.1", "7.1", path), fields);
        is_silent(&[&plain, &versioned]);
    }
    let replacing = made(&here.join("d"), ("rocm-x7.1", "7.1", path), "Replaces: rocm-x (= 7.1)\n");
    assert!(dpkg_installs(&[&[&plain, &replacing]]));
    is_silent(&[&plain, &replacing]);
    // A relation to another version does not.
    let other = made(&here.join("e"), ("rocm-x7.1", "7.1", path), "Conflicts: rocm-x (<< 7.1)\n");
    assert!(!dpkg_installs(&[&[&plain, &other]]));
    assert_eq!(told(&[&plain, &other], "R062").0.len(), 1);
    // Another path, and another version of the same name.
    let beside = made(&here.join("f"), ("rocm-y", "7.1", "opt/rocm/lib/liby.so.1"), "");
    let newer = made(&here.join("g"), ("rocm-x", "7.2", path), "");
    is_silent(&[&plain, &beside, &newer]);
}

/// A package need not list its files, and lists no links: its data says what it owns.
#[test]
fn files_that_no_list_names_and_links_are_owned_too() {
    need(&TOOLS);
    need(&["dpkg"]);
    need_root();
    let room = tempfile::tempdir().unwrap();
    let path = "opt/rocm/lib/libx.so";
    let here = room.path();
    let file = without_list(here, "file", path, false, &[]);
    // dpkg takes names for paths from the root, with `./` in front or without.
    let bare = without_list(here, "bare", path, false, &["--transform=s,^[.]/opt,opt,"]);
    let [link, other] = ["link", "other"].map(|name| without_list(here, name, path, true, &[]));
    for pair in [[&file, &link], [&link, &other], [&file, &bare]] {
        let [one, two] = pair.map(PathBuf::as_path);
        assert!(!dpkg_installs(&[&[one, two]]), "{pair:?}");
        let (found, failed, checked) = told(&[one, two], "R062");
        assert_eq!((found.len(), failed), (1, vec!["V079".to_owned()]), "{found:?}\n{checked}");
        assert!(found[0].contains("/opt/rocm/lib/libx.so"), "{found:?}");
    }
    let beside = without_list(here, "beside", "opt/rocm/lib/liby.so", true, &[]);
    assert!(dpkg_installs(&[&[&link, &beside]]));
    is_silent(&[&link, &beside]);
}

fn without_list(folder: &Path, name: &str, path: &str, is_link: bool, options: &[&str]) -> PathBuf {
    let file = folder.join(format!("{name}_1_all.deb"));
    let plain = ForeignDeb::new(name, "");
    let options: [&[&str]; 2] = [&[], options];
    ForeignDeb { path: Some(path), has_sums: false, is_link, options, ..plain }.write(&file);
    file
}

#[test]
fn dependencies_on_exact_versions_keep_packages_apart() {
    need(&TOOLS);
    let room = tempfile::tempdir().unwrap();
    let packages = room.path().join("packages");
    let [old, new] =
        ["7.0", "7.1"].map(|version| made(&packages, ("core", version, "opt/core"), ""));
    let one = made(&packages, ("one", "7.0", "opt/x"), "Depends: core (= 7.0)\n");
    let two = made(&packages, ("two", "7.1", "opt/x"), "Depends: core (= 7.1)\n");
    is_silent(&[&old, &new, &one, &two]);
    let three = made(&packages, ("three", "7.1", "opt/x"), "Depends: core (>= 7.1)\n");
    assert_eq!(told(&[&old, &new, &one, &three], "R062").0.len(), 1);
    // What is needed in one version excludes the other.
    let strict = made(&packages, ("strict", "1", "opt/strict"), "Conflicts: two\n");
    let four = made(&packages, ("four", "1", "opt/x"), "Depends: strict (= 1)\n");
    is_silent(&[&new, &two, &strict, &four]);
}

#[test]
fn a_path_that_moves_is_named_unless_it_is_replaced() {
    need(&TOOLS);
    need(&["dpkg"]);
    need_root();
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    let path = "opt/rocm/bin/tool";
    let old = made(&here.join("old"), ("rocm-core", "7.0", path), "");
    let new = made(&here.join("new"), ("rocm-core", "7.1", "opt/rocm/bin/other"), "");
    let taker = made(&here.join("taker"), ("rocm-tools", "7.1", path), "");
    assert!(!dpkg_installs(&[&[&old], &[&taker, &new]]));
    let (found, failed, checked) = told(&[&old, &new, &taker], "R063");
    assert_eq!((found.len(), failed), (1, vec!["V079".to_owned()]), "{found:?}\n{checked}");
    for part in ["/opt/rocm/bin/tool", "was in rocm-core 7.0 and is in rocm-tools 7.1", "--since"] {
        assert!(found[0].contains(part), "{part}: {found:?}");
    }
    let fields = "Breaks: rocm-core (<< 7.1)\nReplaces: rocm-core (<< 7.1)\n";
    let replacing = made(&here.join("replacing"), ("rocm-tools", "7.1", path), fields);
    assert!(dpkg_installs(&[&[&old], &[&replacing, &new]]));
    is_silent(&[&old, &new, &replacing]);
    // The earlier version is not there any more.
    is_silent(&[&new, &taker]);
    // An owner had the path before: who gets the newest versions has the one that replaces.
    let before = made(&here.join("before"), ("rocm-tools", "6.0", path), "");
    is_silent(&[&before, &old, &new, &replacing]);
}

/// Clients have what leaves the repository in the same publication.
#[test]
fn a_path_that_moves_from_a_package_that_leaves_is_named() {
    need(&TOOLS);
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    let path = "opt/rocm/bin/tool";
    let old = made(&here.join("old"), ("rocm-core", "7.0", path), "");
    let new = made(&here.join("new"), ("rocm-core", "7.1", "opt/rocm/bin/other"), "");
    let taker = made(&here.join("taker"), ("rocm-tools", "7.1", path), "");
    let fields = "Breaks: rocm-core (<< 7.1)\nReplaces: rocm-core (<< 7.1)\n";
    let replacing = made(&here.join("replacing"), ("rocm-tools", "7.1", path), fields);
    assert!(update_names_it(&old, &here.join("keep"), &[&new, &taker], &["--keep", "1"]));
    let removal = ["--remove", "rocm-core=7.0"];
    assert!(update_names_it(&old, &here.join("removed"), &[&new, &taker], &removal));
    assert!(update_names_it(&old, &here.join("gone"), &[&taker], &["--remove", "rocm-core"]));
    assert!(!update_names_it(&old, &here.join("replaced"), &[&new, &replacing], &["--keep", "1"]));
    assert!(!update_names_it(&old, &here.join("another"), &[&new], &["--keep", "1"]));
}

fn update_names_it(old: &Path, out: &Path, packages: &[&Path], options: &[&str]) -> bool {
    publish(&mut repo(&[old], out));
    let said = publish(repo_at(packages, out, 1).args(options));
    said.lines().any(|line| line.contains("R063") && line.contains("was in rocm-core 7.0"))
}

#[test]
fn rpms_with_one_file_are_named() {
    need(&["rpmbuild", "rpm"]);
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    let path = "/opt/rocm/lib/libx.so.1";
    let plain = made_rpm(here, ("rocm-x", "7.1", path), "");
    let versioned = made_rpm(here, ("rocm-x71", "7.1", path), "");
    assert!(!rpm_installs(&[&plain, &versioned]));
    let (found, failed, checked) = told(&[&plain, &versioned], "R062");
    assert_eq!((found.len(), failed), (1, vec!["V079".to_owned()]), "{found:?}\n{checked}");
    assert!(found[0].contains("rocm-x 7.1-1 and rocm-x71 7.1-1"), "{found:?}");
    for lines in ["Conflicts: rocm-x <= 7.1", "Obsoletes: rocm-x", "Conflicts: rocm-x = 7.1-1"] {
        is_silent(&[&plain, &made_rpm(here, ("rocm-x71", "7.1", path), lines)]);
    }
    let other = made_rpm(here, ("rocm-x71", "7.1", path), "Conflicts: rocm-x < 7.1");
    assert_eq!(told(&[&plain, &other], "R062").0.len(), 1);
    // Where both have the same file, rpm installs both.
    let one = rpm_with_text(here, ("one", path), "echo same", "0644");
    for (two, is_same) in [
        (rpm_with_text(here, ("two", path), "echo same", "0644"), true),
        (rpm_with_text(here, ("two", path), "echo same", "0755"), false),
        (rpm_with_text(here, ("two", path), "echo more", "0644"), false),
    ] {
        assert_eq!(rpm_installs(&[&one, &two]), is_same);
        assert_eq!(told(&[&one, &two], "R062").0.is_empty(), is_same);
        assert_eq!(told(&[&one, &two], "R062").1.is_empty(), is_same);
    }
    // An update changes all at once.
    let newer = made_rpm(here, ("rocm-x", "7.2", "/opt/rocm/lib/liby.so.1"), "");
    is_silent(&[&plain, &newer, &made_rpm(here, ("rocm-x71", "7.2", path), "")]);
}

/// Packages share debug files, and links by build-id, only if they are the same.
#[test]
fn rpms_with_one_build_id_are_named_unless_they_agree() {
    need(&["rpmbuild", "rpm"]);
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    let debug = "/usr/lib/debug/.build-id/ab/cd.debug";
    let file = |name, text| rpm_with_text(here, (name, debug), text, "0644");
    let link = |name, target| rpm_with_link(here, name, target);
    for (one, two, is_same) in [
        (link("one", "../../../../opt/x"), link("two", "../../../../opt/x"), true),
        (link("one", "../../../../opt/x"), link("two", "../../../../opt/y"), false),
        (link("one", "../../../../opt/long/x"), link("two", "../../../../opt/x"), false),
        (file("one", "echo same"), file("two", "echo same"), true),
        (file("one", "echo same"), file("two", "echo more"), false),
    ] {
        assert_eq!(rpm_installs(&[&one, &two]), is_same);
        let (found, failed, checked) = told(&[&one, &two], "R062");
        assert_eq!((found.is_empty(), failed.is_empty()), (is_same, is_same), "{checked}");
        assert!(is_same || failed == ["V079"], "{checked}");
    }
}

/// A package with a link by build-id.
fn rpm_with_link(room: &Path, name: &str, target: &str) -> PathBuf {
    let spec = spec_with_file((name, "1", "/usr/lib/.build-id/ab/cd"), "")
        .replace(&format!("echo {name} 1 >"), &format!("ln -s {target} "));
    rpm(&room.join(target.replace(['/', '.'], "-")), &spec)
}

/// A package of `version` with a file at `path`, and whole lines of tags.
fn made_rpm(room: &Path, (name, version, path): (&str, &str, &str), lines: &str) -> PathBuf {
    let folder = room.join(lines.replace([' ', ':'], "-"));
    rpm(&folder, &spec_with_file((name, version, path), lines))
}

fn rpm_with_text(room: &Path, (name, path): (&str, &str), text: &str, mode: &str) -> PathBuf {
    let spec = spec_with_file((name, "7.1", path), "")
        .replace(&format!("echo {name} 7.1"), text)
        .replace("%files\n", &format!("%files\n%attr({mode},root,root) "));
    rpm(&room.join(format!("{text}-{mode}")), &spec)
}

fn spec_with_file((name, version, path): (&str, &str, &str), lines: &str) -> String {
    plain_spec(name, version, lines)
        .replace(&format!("/usr/share/example/{name}"), path)
        .replace("/usr/share/example\n", "$(dirname X)\n")
        .replace(
            "mkdir -p %{buildroot}$(dirname X)",
            &format!("mkdir -p %{{buildroot}}$(dirname {path})"),
        )
}

/// An archive of another tool, whose packages nobody published, is looked at in the same way.
#[test]
fn repositories_of_other_tools_are_looked_at_too() {
    need(&TOOLS);
    need(&["apt-ftparchive"]);
    let room = tempfile::tempdir().unwrap();
    let root = room.path();
    for name in ["one", "two"] {
        made(&root.join("pool"), (name, "1", "opt/x"), "");
    }
    let binary = root.join("dists/stable/main/binary-amd64");
    fs::create_dir_all(&binary).unwrap();
    for (index, words) in [
        (binary.join("Packages"), ["packages", "pool"]),
        (root.join("dists/stable/Release"), ["release", "dists/stable"]),
    ] {
        let text = run(Command::new("apt-ftparchive").args(words).current_dir(root)).stdout;
        fs::write(index, text).unwrap();
    }
    let said = support::tools::told(rockpack().arg("verify").arg(root));
    assert_eq!(failed_checks(&said), ["V079"], "{said}");
    assert!(said.contains("/opt/x: is owned by one 1 and two 1"), "{said}");
}
