//! The plan by which a repository is uploaded to a server that replaces files one by one, such as an object store.
//!
//! ```text
//! packages     in any order: no index lists the new ones yet
//! indexes      in any order: their names contain their digest, and no client refers to the new ones
//! visible      one after another: files under the names that clients read, in the order of a publication
//! deletions    an hour later: what this publication removed
//! ```
//!
//! The first three phases list every file of the repository, so that they also complete a server that missed a plan.
//! A page of wheels that a publication replaces twice (`python`) is listed twice, the first time with its text, because
//! the folder has only the last one. `docs/reference/repository.md` describes what clients see meanwhile.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;
use rockpack_core::content::{Content, list};
use rockpack_core::error::{Error, Faults, Result};
use rockpack_files::new_file::write_single;
use serde_json::{Value, json};

use super::catalog::recorded_file;
use super::channels::{Channels, ShownContent, ShownFile};
use super::next::GRACE;
use super::options::RepoOptions;
use super::store::{PRIVATE, Store};

const PAGES: &str = "simple/";

/// A file to upload. The derived order, by the fields in turn, is the order of upload.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct UploadFile<'a> {
    turn: usize,
    /// The position among the files of this publication; `None` for other files.
    place: Option<usize>,
    path: &'a String,
    /// The content, if this publication replaced the file again later.
    text: Option<&'a String>,
}

/// Writes the plan, if one is requested, of a publication that wrote `shown`, in this order, and removed `removed`.
pub(super) fn write_plan(
    store: &dyn Store,
    options: &RepoOptions<'_>,
    channels: &Channels,
    shown: &[ShownFile],
    removed: &[String],
) -> Result<()> {
    let Some(plan) = &options.upload_plan else { return Ok(()) };
    let mut paths = Vec::new();
    add_files(&options.out, "", &mut paths)?;
    let last: HashMap<_, _> = shown.iter().enumerate().map(|(at, (path, _))| (path, at)).collect();
    let kept = paths.iter().map(|path| (last.get(path).copied(), path, None));
    let replaced = shown.iter().enumerate().filter_map(|(at, (path, content))| match content {
        ShownContent::Text(text) if path.starts_with(PAGES) && last.get(path) != Some(&at) => {
            Some((Some(at), path, Some(text)))
        }
        _ => None,
    });
    let files = kept.chain(replaced).map(|(place, path, text)| {
        let turn = turn(channels, path);
        UploadFile { turn, place, path, text }
    });
    let mut files: Vec<UploadFile<'_>> = files.collect();
    files.sort();
    let entries: Vec<_> = files.par_iter().map(|file| file.entry(store, channels)).collect();
    let entries = Faults::all(entries)?;
    let phase = |name: &str, turns: Range<usize>| {
        let own = files.iter().zip(&entries).filter(|(file, _)| turns.contains(&file.turn));
        let own: Vec<&Value> = own.map(|(_, entry)| entry).collect();
        json!({ "name": name, "files": own })
    };
    let text = json!({
        "schema": 1,
        "phases": [
            phase("packages", 0..1),
            phase("indexes", 1..2),
            phase("visible", 2..usize::MAX),
            { "name": "deletions", "after_seconds": GRACE, "files": removed },
        ],
    });
    write_single(plan, &Content::of_bytes(format!("{text:#}\n"))).map(drop)
}

/// Adds the paths of all files in `folder`, which is empty or ends with a slash. Links are left out.
fn add_files(root: &Path, folder: &str, paths: &mut Vec<String>) -> Result<()> {
    for entry in list(&root.join(folder))? {
        let entry = entry?;
        let kind = entry.file_type().map_err(|e| Error::io(entry.path(), "inspect", e))?;
        // rockpack writes only names in UTF-8.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{folder}{name}");
        if kind.is_file() {
            paths.push(path);
        } else if kind.is_dir() && path != PRIVATE {
            add_files(root, &format!("{path}/"), paths)?;
        }
    }
    Ok(())
}

/// The SHA-256 of a package that a channel has, or has retired but not yet removed.
fn package_digest<'a>(channels: &'a Channels, path: &str) -> Option<&'a str> {
    channels.0.values().find_map(|state| recorded_file(state, path)).map(|(sha256, _)| sha256)
}

/// 0 for packages, 1 for indexes whose names contain their digest, and more for files under names that clients read.
fn turn(channels: &Channels, path: &str) -> usize {
    const LAST: [&str; 5] =
        ["/Release.gpg", "/Release", "/InRelease", "/repomd.xml.asc", "/repomd.xml"];
    if package_digest(channels, path).is_some() {
        return 0;
    }
    let from_end: Vec<&str> = path.rsplit('/').collect();
    let says_content = match from_end[..] {
        [_, "SHA256" | "SHA512", "by-hash", ..] => true,
        [name, "repodata"] => !name.starts_with("repomd.xml"),
        _ => path.ends_with(".whl.metadata"),
    };
    match LAST.iter().position(|last| path.ends_with(last)) {
        _ if says_content && channels.uses(path) => 1,
        _ if path.starts_with(PAGES) => LAST.len() + 4,
        Some(at) => at + 4,
        // Keys and files for clients come before the indexes of apt.
        None => 2 + usize::from(path.starts_with("dists/")),
    }
}

impl UploadFile<'_> {
    /// The entry in the plan. Reads all files except packages, whose digests are known.
    fn entry(&self, store: &dyn Store, channels: &Channels) -> Result<Value> {
        let content = match self.text {
            Some(text) => Content::of_bytes(text.as_bytes()),
            None => store.open(self.path)?,
        };
        let sha256 = match package_digest(channels, self.path) {
            Some(sha256) => sha256.to_owned(),
            None => content.digest()?.to_string(),
        };
        let cache_control = match self.turn {
            // The path of a removed package may be used again an hour after it left the index.
            0 if !self.path.starts_with("wheels/") => "public, max-age=3600",
            0 | 1 => "public, max-age=31536000, immutable",
            _ => "no-cache",
        };
        let mut entry = json!({
            "path": self.path,
            "size": content.len(),
            "sha256": sha256,
            "content_type": content_type(self.path),
            "cache_control": cache_control,
        });
        if let Some(text) = self.text {
            entry["text"] = json!(text);
        }
        Ok(entry)
    }
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit(['/', '.']).next().unwrap_or_default() {
        "asc" if path.ends_with("keyring.asc") => "application/pgp-keys",
        "asc" | "gpg" => "application/pgp-signature",
        "deb" => "application/vnd.debian.binary-package",
        "gz" => "application/gzip",
        "html" => "text/html; charset=utf-8",
        "json" if path.starts_with(PAGES) => "application/vnd.pypi.simple.v1+json",
        "rpm" => "application/x-rpm",
        "sh" => "text/x-shellscript; charset=utf-8",
        "whl" | "zip" => "application/zip",
        "xml" => "application/xml",
        "yml" => "application/yaml",
        "zst" => "application/zstd",
        "InRelease" | "Packages" | "Release" | "metadata" | "pref" | "repo" | "sources" => {
            "text/plain; charset=utf-8"
        }
        _ => "application/octet-stream",
    }
}
