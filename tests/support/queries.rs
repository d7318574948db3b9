//! Queries of packages by dpkg and rpm.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::example::{files, names};
use crate::tools::{succeed, unpack};

/// A field of a `.deb`.
pub fn deb_field(package: &Path, field: &str) -> String {
    let text = succeed(Command::new("dpkg-deb").arg("-f").arg(package).arg(field));
    text.trim().to_owned()
}

/// Tags of an `.rpm` in rpm's query format: `%{NAME} %{VERSION}`.
pub fn rpm_tags(package: &Path, format: &str) -> String {
    rpm(package, &["--qf", format])
}

/// An rpm query of an `.rpm` with one option: `--requires`.
pub fn rpm_list(package: &Path, option: &str) -> String {
    rpm(package, &[option])
}

fn rpm(package: &Path, query: &[&str]) -> String {
    succeed(Command::new("rpm").args(["-qp", "--nosignature"]).args(query).arg(package))
}

/// The packages of a format in a folder: `deb`, `rpm`.
pub fn packages(folder: &Path, format: &str) -> Vec<PathBuf> {
    let files = names(folder).into_iter().map(|name| folder.join(name));
    files.filter(|file| file.extension().is_some_and(|ending| ending == format)).collect()
}

/// The files that the packages of a format in a folder install, by path.
pub fn installed(folder: &Path, format: &str) -> BTreeMap<String, Vec<u8>> {
    let root = tempfile::tempdir().unwrap();
    packages(folder, format).iter().for_each(|package| unpack(package, root.path()));
    files(root.path())
}

/// A field of every `.deb` in a folder, by package.
pub fn deb_fields(folder: &Path, field: &str) -> BTreeMap<String, String> {
    let form = format!("--showformat=${{Package}}\n${{{field}}}");
    let read = |deb: PathBuf| {
        let text = succeed(Command::new("dpkg-deb").arg("-W").arg(&form).arg(deb));
        let (name, value) = text.split_once('\n').unwrap();
        (name.to_owned(), value.trim().to_owned())
    };
    packages(folder, "deb").into_iter().map(read).collect()
}

/// An rpm query of every `.rpm` in a folder with one option, by package.
pub fn rpm_lists(folder: &Path, option: &str) -> BTreeMap<String, String> {
    let mut query = Command::new("rpm");
    query.args(["-qp", "--nosignature", "--qf", "\u{1d}%{NAME}\u{1e}", option]);
    let files = packages(folder, "rpm");
    let listed = succeed(query.args(&files));
    let one = listed.split('\u{1d}').skip(1).map(|one| one.split_once('\u{1e}').unwrap());
    let lists: BTreeMap<_, _> =
        one.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    assert_eq!(lists.len(), files.len(), "{listed}");
    lists
}
