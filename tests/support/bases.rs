//! Base systems for package managers: releases of Debian, and the base of an rpm system.
//!
//! The Debian ones are made once and kept below cargo's target folder, for all test programs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use crate::program::{kept, scratch};
use crate::tools;

/// A package with everything that maintainer scripts run: the shell, tools and libraries of this machine,
/// with the provisions that rpmbuild's own generator finds in them. Tests need no `--nodeps`.
const RPM: &str = "\
Name: base-system
Version: 1
Release: 1
Summary: The base of a system
License: MIT
# The style of hash tables that rpmbuild's generator asks glibc for.
Provides: rtld(GNU_HASH)
# What the packages of a HIP runtime would provide.
Provides: libamdhip64.so.7()(64bit) libamdhip64.so.7(hip_4.2)(64bit)
%description
A shell and the libraries of C and C++.
%install
mkdir -p %{buildroot}
cd %{buildroot}
mkdir -p opt var etc/ld.so.conf.d etc/alternatives var/lib/dpkg/alternatives var/log
mkdir -p usr/lib usr/sbin usr/share/doc usr/share/licenses
echo 'include /etc/ld.so.conf.d/*.conf' > %{buildroot}/etc/ld.so.conf
programs='/bin/sh /usr/bin/cat /usr/bin/ln /usr/bin/readlink /usr/bin/rm /usr/bin/mv /usr/bin/env /usr/bin/rmdir /usr/bin/update-alternatives'
libraries=$(ldd $programs | grep -o '/[^ ]*\\.so[^ ]*')
gcc=$(ldconfig -p | grep -o '/.*/lib\\(stdc++\\|gcc_s\\|m\\)\\.so\\.[0-9]*$' | grep -v 32)
for file in $programs /sbin/ldconfig $libraries $gcc; do
  mkdir -p %{buildroot}$(dirname $file)
  cp -Lf $file %{buildroot}$file
done
# Where distributions that are packaged as rpm have it.
mv %{buildroot}/usr/bin/update-alternatives %{buildroot}/usr/sbin/
%files
/*
";

/// The tools that make the base of an rpm system.
pub const RPM_TOOLS: [&str; 5] = ["rpm", "rpmbuild", "ldd", "ldconfig", "update-alternatives"];

/// The root of a release with apt and its dependencies, made by mmdebstrap. Tests work on copies.
pub fn debian(suite: &str) -> PathBuf {
    debian_with(suite, "apt", &[])
}

/// The root of Debian sid with apt 3, rpm 6, which also builds packages of format 6, dnf5 and zypper. Tests work
/// on copies.
pub fn sid() -> PathBuf {
    // A mirror may be some weeks behind the clock.
    let options = ["--include=rpm,dnf5,zypper", "--aptopt=Acquire::Check-Valid-Until \"false\""];
    debian_with("sid", "clients", &options)
}

fn debian_with(suite: &str, what: &str, options: &[&str]) -> PathBuf {
    let mut made = None;
    let kept = kept(&format!("debian-{what}-{suite}"), |folder| {
        let root = made.insert(scratch(suite)).as_path();
        let mut make = Command::new("mmdebstrap");
        make.args(["--quiet", "--variant=apt"]).args(options);
        // A third of all files; no test is about one of them.
        make.args(
            ["doc", "man", "locale"].map(|it| format!("--dpkgopt=path-exclude=/usr/share/{it}/*")),
        );
        make.arg("--customize-hook=rm \"$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap\"");
        make.arg(suite).arg(root);
        let told = tools::told(make.arg(format!("deb {} {suite} main", mirror())));
        if !told.ends_with("exit status: 0\n") {
            tools::skip(&format!("mmdebstrap cannot make {suite}: {told}"));
        }
        cp("-a", root, folder);
    });
    static NEAR: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut near = NEAR.lock().unwrap();
    near.entry(suite.to_owned()).or_insert_with(|| beside_copies(kept, made, suite)).clone()
}

/// The root itself, or one on the file system of its later copies, so that they can share its files: the one
/// that was `made` just now, or a copy.
fn beside_copies(kept: PathBuf, made: Option<PathBuf>, suite: &str) -> PathBuf {
    if device(&kept) == device(&tempfile::env::temp_dir()) {
        return kept;
    }
    made.unwrap_or_else(|| {
        let folder = scratch(suite);
        cp("-a", &kept, &folder);
        folder
    })
}

fn cp(how: &str, from: &Path, to: &Path) {
    tools::run(Command::new("cp").arg(how).arg("-T").arg(from).arg(to));
}

fn device(path: &Path) -> u64 {
    fs::metadata(path).unwrap().dev()
}

/// The URI from which this machine gets Debian packages.
fn mirror() -> String {
    let mut apt = Command::new("apt-get");
    apt.args(["indextargets", "--no-release-info", "--format", "$(REPO_URI)"]);
    let places = tools::succeed(&mut apt);
    let debian = places.lines().find(|place| place.ends_with("/debian/"));
    debian.unwrap_or_else(|| tools::skip("needs a mirror of Debian in apt's sources")).to_owned()
}

/// A folder with the base package of an rpm system, made from this machine once in a run.
pub fn rpm() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = scratch("rpm-base");
        build_rpm(RPM, &folder);
        folder
    })
}

/// Builds the packages of a specification with rpmbuild, from files that need no treatment.
pub fn build_rpm(specification: &str, folder: &Path) {
    let work = tempfile::tempdir().unwrap();
    let file = work.path().join("package.spec");
    fs::write(&file, specification).unwrap();
    let defines = [
        format!("_topdir {}", work.path().display()),
        format!("_rpmdir {}", folder.display()),
        "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm".to_owned(),
        "_build_id_links none".to_owned(),
        "__os_install_post %{nil}".to_owned(),
        "_binary_payload w3.zstdio".to_owned(),
    ];
    let mut command = Command::new("rpmbuild");
    for define in defines {
        command.arg("--define").arg(define);
    }
    tools::run(command.args(["-bb", "--quiet"]).arg(&file));
}

/// The folders, with most of a root, in which package managers replace files and never overwrite any.
const NEVER_WRITTEN: [&str; 2] = ["usr", "var/lib/dpkg/info"];

/// The folder of the rpm and dnf5 databases on some machines, which do get overwritten.
const DATABASES: &str = "usr/lib/sysimage";

/// debconf's hook of apt, which looks for questions of packages. Ours ask none, and apt goes on if it fails.
const QUESTIONS: &str = "etc/apt/apt.conf.d/70debconf";

/// Copies a root with owners, modes and devices. If both are on one file system, files that are never
/// overwritten are hard links. The hook of debconf is left out.
pub fn copy(from: &Path, to: &Path) {
    copy_all(from, to);
    let _ = fs::remove_file(to.join(QUESTIONS));
}

fn copy_all(from: &Path, to: &Path) {
    if device(from) != device(to.parent().unwrap()) {
        return cp("-a", from, to);
    }
    cp("-al", from, to);
    unshare(to, &NEVER_WRITTEN.map(|folder| to.join(folder)));
    let databases = to.join(DATABASES);
    if fs::symlink_metadata(&databases).is_ok_and(|metadata| metadata.is_dir()) {
        unshare(&databases, &[]);
    }
}

/// Replaces every file below `folder` that is not below one of `shared` with a copy.
fn unshare(folder: &Path, shared: &[PathBuf]) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() && !shared.contains(&path) {
            unshare(&path, shared);
        } else if metadata.is_file() {
            let copied = path.with_extension("copied-by-tests");
            let modified = metadata.modified().unwrap();
            fs::copy(&path, &copied).unwrap();
            chown(&copied, Some(metadata.uid()), Some(metadata.gid())).unwrap();
            fs::set_permissions(&copied, metadata.permissions()).unwrap();
            File::options().write(true).open(&copied).unwrap().set_modified(modified).unwrap();
            fs::rename(copied, path).unwrap();
        }
    }
}
