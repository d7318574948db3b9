//! Packages that are there twice.
//!
//! Of two versions of one package, one replaces the other, and checks may look at either. Of two
//! files of one version, nobody can tell which is installed: what is good in the one must not cover
//! what is bad in the other.

use std::collections::BTreeMap;

use super::installed::Installed;
use super::problem::{Check, Problems};

/// What makes a package one and the same to those who install it: name, architecture, version.
pub(super) type Identity<'a> = (&'a str, &'a str, &'a str);

/// An epoch of zero is that of a version without one.
pub(super) fn identity<'a>(name: &'a str, arch: &'a str, version: &'a str) -> Identity<'a> {
    (name, arch, version.strip_prefix("0:").unwrap_or(version))
}

/// Packages of one format, each once. The same bytes may be there several times, by a link or in two
/// folders.
pub(super) fn check(packages: &[&Installed], problems: &mut Problems) {
    let mut first: BTreeMap<Identity<'_>, &Installed> = BTreeMap::new();
    for package in packages {
        let own = identity(&package.name, &package.arch, &package.version);
        let other = *first.entry(own).or_insert(package);
        if other.sha256 != package.sha256 {
            let (name, arch, version) = own;
            let message = format!("is {name} {version} for {arch}, as {} is", other.file);
            problems.add(Check::PackageTwice, &package.file, message);
        }
    }
}
