//! Channels, the units that a repository publishes: apt suites, the rpm repository and the Python index. The paths of
//! their indexes, and files in the folder of a repository that no state knows.

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
    /// The channels that a run for this apt suite may be about.
    pub fn all(suite: &str) -> [Self; 3] {
        [Self::Apt(suite.to_owned()), Self::Rpm, Self::Python]
    }

    /// The name in states and reports.
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

    /// The format of its packages, if a package manager of a system installs them. Only such channels have
    /// signatures, keys, and packages that own paths.
    pub fn format(&self) -> Option<Format> {
        self.kind().format()
    }
}

/// Path of the file that makes the lists valid.
pub(super) const REPOMD: &str = "repodata/repomd.xml";

/// The folder of the pages for pip and uv.
pub(super) const PYTHON_FOLDER: &str = "simple";

/// The lists of projects, for people and for programs.
pub(super) const PROJECT_LISTS: [&str; 2] = ["simple/index.html", "simple/index.json"];

/// Paths of the pages of a project, for people and for programs.
pub(super) fn project_pages(project: &str) -> [String; 2] {
    ["html", "json"].map(|ending| format!("{PYTHON_FOLDER}/{project}/index.{ending}"))
}

pub(super) fn suite_folder(suite: &str) -> String {
    format!("dists/{suite}")
}

/// The paths of an index: those that say its content, and the one that `Release` lists.
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

/// Refuses to publish `channel` over indexes, or signatures of indexes, that its state does not know: of another tool,
/// or of rockpack before `.rockpack` was lost. They stay as they are.
pub(super) fn refuse_indexes(
    store: &dyn Store,
    channel: &Channel,
    channels: &Channels,
) -> Result<()> {
    let state = channels.0.get(&channel.name());
    for (path, is_signature) in first_files(channel) {
        let known = state.is_some_and(|state| state.signed || !is_signature);
        if !known && store.stat(&path)?.is_some() {
            if state.is_none() {
                return Err(unknown_index(&path, channel));
            }
            let message = format!("{path} is there, and rockpack published without a signature");
            return Err(Error::new(Kind::Conflict, message).hint(
                "new indexes beside an old signature are refused by clients: remove it, and give \
                 --sign-key, --gpg-key-id or --sign-command",
            ));
        }
    }
    Ok(())
}

/// The files that clients begin with, and whether each is a signature.
fn first_files(channel: &Channel) -> Vec<(String, bool)> {
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

/// The index at `path` is of another tool, or of a repository without its `.rockpack`.
pub(super) fn unknown_index(path: &str, channel: &Channel) -> Error {
    let message = format!("{path} is there already, and rockpack remembers nothing of it");
    let folder = match channel {
        Channel::Apt(suite) => suite_folder(suite),
        Channel::Rpm => "repodata".to_owned(),
        Channel::Python => PYTHON_FOLDER.to_owned(),
    };
    Error::new(Kind::Conflict, message).hint(format!(
        "the repository of another tool stays as it is: name another folder; where it is rockpack's \
         own and .rockpack was lost, move its packages out of it, remove {folder}/, and publish all \
         of them again, signed as they were"
    ))
}

/// The pool's file at the path of a package that is to be published is another one.
pub(super) fn other_file(path: &str, given: &GivenPackage) -> Error {
    let message =
        format!("is not the {path} that is there already, which rockpack did not publish");
    Error::new(Kind::Conflict, message)
        .file(&given.file)
        .hint("somebody else's file is not replaced: move it away, or publish to another folder")
}
