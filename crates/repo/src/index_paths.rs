//! The paths of the indexes of a repository.

use rockpack_archive::apt_index::IndexFile;

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

/// Path of the METADATA that lies beside the wheel at `wheel`.
pub(super) fn metadata_path(wheel: &str) -> String {
    format!("{wheel}.metadata")
}

/// The folder of a suite.
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
