//! Channels, the units of publication: apt suites, the rpm repository and the Python index. Defines the paths of their
//! indexes, and refuses files in the repository's folder that no state has recorded.

use rockpack_archive::apt_index::IndexFile;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_package::Format;
use rockpack_package::indexed::PackageKind;

use super::channels::Channels;
use super::input::GivenPackage;
use super::store::Store;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Channel {
    Apt(String),
    Rpm,
    Python,
}

impl Channel {
    /// The channels that a run for this apt suite can change.
    pub fn all(suite: &str) -> [Self; 3] {
        [Self::Apt(suite.to_owned()), Self::Rpm, Self::Python]
    }

    pub fn name(&self) -> String {
        match self {
            Self::Apt(suite) => format!("apt-{suite}"),
            Self::Rpm => "rpm".to_owned(),
            Self::Python => "python".to_owned(),
        }
    }

    pub fn kind(&self) -> PackageKind {
        match self {
            Self::Apt(_) => PackageKind::Deb,
            Self::Rpm => PackageKind::Rpm,
            Self::Python => PackageKind::Wheel,
        }
    }

    /// The format of its packages, if a system package manager installs them. Only such channels have signatures,
    /// keys, and packages that own paths.
    pub fn format(&self) -> Option<Format> {
        self.kind().format()
    }
}

/// The index of the lists, which clients read first.
pub(super) const REPOMD: &str = "repodata/repomd.xml";

pub(super) const PYTHON_FOLDER: &str = "simple";

/// The lists of projects in HTML and in JSON.
pub(super) const PROJECT_LISTS: [&str; 2] = ["simple/index.html", "simple/index.json"];

/// Paths of the HTML and the JSON page of a project.
pub(super) fn project_pages(project: &str) -> [String; 2] {
    ["html", "json"].map(|ending| format!("{PYTHON_FOLDER}/{project}/index.{ending}"))
}

pub(super) fn suite_folder(suite: &str) -> String {
    format!("dists/{suite}")
}

/// The paths of an index: those under `by-hash`, then the one that `Release` lists.
pub(super) fn apt_index_paths(suite: &str, file: &IndexFile) -> Vec<String> {
    let path = format!("{}/{}", suite_folder(suite), file.path);
    let above = path.rsplit_once('/').map_or("", |(above, _)| above);
    let possible = [("SHA256", Some(&file.sha256)), ("SHA512", file.sha512.as_ref())];
    let digests = possible.into_iter().filter_map(|(name, digest)| Some((name, digest?)));
    let mut names: Vec<String> =
        digests.map(|(name, digest)| format!("{above}/by-hash/{name}/{digest}")).collect();
    names.push(path);
    names
}

/// Refuses to publish `channel` over indexes, or signatures of indexes, that its state has not recorded: those of
/// another tool, or of rockpack before `.rockpack` was lost.
pub(super) fn refuse_indexes(
    store: &dyn Store,
    channel: &Channel,
    channels: &Channels,
) -> Result<()> {
    let state = channels.0.get(&channel.name());
    for (path, is_signature) in entry_files(channel) {
        let known = state.is_some_and(|state| state.signed || !is_signature);
        if !known && store.stat(&path)?.is_some() {
            if state.is_none() {
                return Err(unknown_index(&path, channel));
            }
            let message = format!("{path} exists, but rockpack published without a signature");
            return Err(Error::new(Kind::Conflict, message).hint(
                "clients refuse new indexes next to an old signature: remove it, and give \
                 --sign-key, --gpg-key-id or --sign-command",
            ));
        }
    }
    Ok(())
}

/// The files that clients read first, and whether each is a signature.
fn entry_files(channel: &Channel) -> Vec<(String, bool)> {
    match channel {
        Channel::Apt(suite) => {
            let names = [("InRelease", true), ("Release.gpg", true), ("Release", false)];
            let folder = suite_folder(suite);
            names.map(|(name, signs)| (format!("{folder}/{name}"), signs)).into()
        }
        Channel::Rpm => vec![(format!("{REPOMD}.asc"), true), (REPOMD.to_owned(), false)],
        Channel::Python => PROJECT_LISTS.map(|path| (path.to_owned(), false)).into(),
    }
}

/// The error for an index at `path` of another tool, or of a repository whose `.rockpack` was lost.
pub(super) fn unknown_index(path: &str, channel: &Channel) -> Error {
    let message = format!("{path} already exists, and rockpack has no record of it");
    let folder = match channel {
        Channel::Apt(suite) => suite_folder(suite),
        Channel::Rpm => "repodata".to_owned(),
        Channel::Python => PYTHON_FOLDER.to_owned(),
    };
    Error::new(Kind::Conflict, message).hint(format!(
        "rockpack leaves repositories of other tools unchanged: name another folder; if this one is \
         rockpack's and .rockpack was lost, move its packages out of it, remove {folder}/, and publish \
         all of them again, signed as before"
    ))
}

/// The error for a foreign file at the pool path of a package to publish.
pub(super) fn foreign_file(path: &str, given: &GivenPackage) -> Error {
    let message = format!("differs from the existing {path}, which rockpack did not publish");
    Error::new(Kind::Conflict, message)
        .file(&given.file)
        .hint("rockpack replaces only its own files: move it away, or publish to another folder")
}
