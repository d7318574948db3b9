//! Reads folders of files: the facts of each file, as of those that a package installs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rockpack_core::content::{self, Content};
use rockpack_core::error::{Error, Result};
use rockpack_core::run::Budget;
use rockpack_core::tree::Node;

use crate::own::facts;
use crate::own::installed::{Installed, InstalledNode, Side};
use crate::problem::{PackagePath, Problem, ProblemPlace, Problems};
use crate::read_each;
use rockpack_report::Progress;

/// Files before they are looked into, by absolute install path.
pub(crate) type FilesByPath = BTreeMap<String, Node<Content>>;

/// Looks into all of `files`, which make up `name`; what cannot be read is a problem.
pub(crate) fn examine(
    name: String,
    side: Side,
    files: FilesByPath,
    progress: &dyn Progress,
    problems: &mut Problems,
) -> Installed {
    let files: Vec<(String, Node<Content>)> = files.into_iter().collect();
    let found = read_each(&files, |(_, node)| size_of(node), progress, examined);
    let mut paths = BTreeMap::new();
    for ((path, _), node) in files.into_iter().zip(found) {
        match node {
            Ok(node) => drop(paths.insert(path, node)),
            Err(error) => {
                problems.add_unread(ProblemPlace::File(PackagePath::new(&name, path)), &error);
            }
        }
    }
    Installed::of_files(name, side, paths)
}

fn size_of(node: &Node<Content>) -> u64 {
    match node {
        Node::File { data, .. } => data.len(),
        Node::Link { .. } | Node::Directory { .. } => 0,
    }
}

fn examined((path, node): &(String, Node<Content>)) -> Result<InstalledNode> {
    Ok(match node {
        // Modes of folders are the machine's that they lie on.
        Node::Directory { .. } => InstalledNode::Directory { mode: 0 },
        Node::Link { target } => InstalledNode::Link { target: target.clone() },
        Node::File { data, mode } => {
            InstalledNode::File { mode: *mode, facts: facts::examine_content(path, data)? }
        }
    })
}

/// Everything below `root`, as it would be found below `/`; what cannot be read is a problem.
pub(crate) fn below(root: &Path, budget: &Budget, problems: &mut Problems) -> FilesByPath {
    let mut files = FilesByPath::new();
    let mut waiting: Vec<(PathBuf, String)> = vec![(root.to_path_buf(), String::new())];
    while let Some((folder, at)) = waiting.pop() {
        if let Err(error) = list(&folder, &at, &mut files, &mut waiting, budget, problems) {
            problems.add_unread(ProblemPlace::Disk(folder.display().to_string()), &error);
        }
    }
    files
}

fn list(
    folder: &Path,
    at: &str,
    files: &mut FilesByPath,
    waiting: &mut Vec<(PathBuf, String)>,
    budget: &Budget,
    problems: &mut Problems,
) -> Result<()> {
    for entry in content::list(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let Some(name) = name.to_str() else {
            // Made legible, two names can be one.
            let name = name.as_encoded_bytes().escape_ascii();
            let place = ProblemPlace::Disk(format!("{}/{name}", folder.display()));
            problems.add(Problem::Unreadable { place, reason: "its name is no UTF-8".to_owned() });
            continue;
        };
        let place = format!("{at}/{name}");
        let kind = entry.file_type().map_err(|e| Error::io(&path, "inspect", e))?;
        if kind.is_dir() {
            files.insert(place.clone(), Node::Directory { mode: 0 });
            waiting.push((path, place));
        } else if kind.is_symlink() {
            let target = std::fs::read_link(&path).map_err(|e| Error::io(&path, "read", e))?;
            match target.into_os_string().into_string() {
                Ok(target) => drop(files.insert(place, Node::Link { target })),
                Err(_) => {
                    let place = ProblemPlace::Disk(path.display().to_string());
                    let reason = "its target is no UTF-8".to_owned();
                    problems.add(Problem::Unreadable { place, reason });
                }
            }
        } else if kind.is_file() {
            let data = Content::open(&path, budget)?;
            files.insert(place, Node::File { data, mode: 0 });
        }
    }
    Ok(())
}
