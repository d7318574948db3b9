//! Files of packages that no artifact has and no rule makes.
//!
//! Rules make kernel archives and their manifests, documents, and the loader's file. These are
//! recognised by their place, and those that run or configure something also by their content.

use std::collections::BTreeSet;

use rockpack_base::tree::TreePath;

use super::inputs::Plain;
use super::plain::same;
use super::{SetComparison, debug_files};
use crate::verify::own::digest::{self, Sha};
use crate::verify::own::facts::{Claimed, Class};
use crate::verify::own::installed::{Installed, InstalledNode};
use crate::verify::problem::{FileLoss, Problem, Problems};

/// The known files, independent of their place.
struct KnownFiles<'a> {
    /// The digests of all files of the artifacts.
    digests: BTreeSet<Sha>,
    /// The paths of archives that components ship themselves.
    shipped: BTreeSet<&'a str>,
}

impl SetComparison<'_> {
    /// Adds every file, link and empty folder of unknown origin. The prefix has to be known.
    pub(in crate::verify) fn check_uninvited(&self, problems: &mut Problems) {
        let known = self.known_files();
        for package in self.packages {
            for (path, node) in &package.paths {
                if !self.is_invited(package, path, node, &known) {
                    let (file, kind) = (package.at(path), node.kind().to_owned());
                    problems.add(Problem::FileForeign { file, kind });
                } else if let Some(loss) = self.other_mode(path, node) {
                    problems.add(Problem::FileLost { path: path.clone(), loss });
                }
            }
        }
    }

    /// How the mode of a folder, or of a file that a rule makes, is another one than rules give.
    fn other_mode(&self, path: &str, node: &InstalledNode) -> Option<FileLoss> {
        let is_of_input = self.is_of_inputs(path);
        let (mode, wanted) = match node {
            InstalledNode::Directory { mode } => (*mode, 0o755),
            // Modes of files of the artifacts, and of debug files, are held against those.
            InstalledNode::File { mode, .. } if !is_of_input && !debug_files::is_place(path) => {
                (*mode, 0o644)
            }
            _ => return None,
        };
        (mode != wanted).then_some(FileLoss::OtherMode { mode, wanted })
    }

    /// Whether the artifacts have something at an absolute path.
    fn is_of_inputs(&self, path: &str) -> bool {
        let inside = path.strip_prefix(self.prefix).and_then(|path| path.strip_prefix('/'));
        inside.and_then(|path| TreePath::new(path).ok()).is_some_and(|it| self.inputs.has(&it))
    }

    fn known_files(&self) -> KnownFiles<'_> {
        let plain = self.inputs.plain.values().flatten();
        let digests = plain.filter_map(|plain| match plain {
            Plain::File { sha256, .. } => Some(*sha256),
            _ => None,
        });
        KnownFiles { digests: digests.collect(), shipped: self.shipped() }
    }

    fn is_invited(
        &self,
        package: &Installed,
        path: &str,
        node: &InstalledNode,
        known: &KnownFiles<'_>,
    ) -> bool {
        let is_folder = matches!(node, InstalledNode::Directory { .. });
        if is_folder && (has_below(package, path) || is_above(path, self.prefix)) {
            return true;
        }
        match path.strip_prefix(self.prefix).and_then(|path| path.strip_prefix('/')) {
            Some(inside) => self.is_made_inside(inside, node, known.shipped.contains(path)),
            None => self.is_made_outside(package, path, node, &known.digests),
        }
    }

    /// Whether the artifacts have something at this install-relative path, or a rule makes it; none makes
    /// archives that a component ships.
    fn is_made_inside(&self, path: &str, node: &InstalledNode, is_shipped: bool) -> bool {
        let Ok(path) = TreePath::new(path) else { return false };
        let is_made = node.facts().is_some_and(|facts| {
            let class = &facts.class;
            // What cannot be read as one is named for that.
            matches!(class, Class::Manifest(_) | Class::Broken(Claimed::Manifest, _))
                || class.claims_to_be_archive() && !is_shipped
        });
        self.inputs.has(&path) || is_made || self.is_moved_here(&path, node)
    }

    /// Whether it is a file of a folder above, as a finding says of that folder.
    fn is_moved_here(&self, path: &TreePath, node: &InstalledNode) -> bool {
        let mut above = std::iter::successors(path.parent(), TreePath::parent);
        above.any(|folder| {
            let Ok(from) = folder.join(path.name()) else { return false };
            let variants = self.inputs.plain.get(&from);
            let is_same = variants.is_some_and(|all| all.iter().any(|plain| same(plain, node)));
            let is_merged = variants.is_some() && self.excuses.merged.contains(&from);
            self.excuses.moved.contains(&folder) && (is_same || is_merged)
        })
    }

    fn is_made_outside(
        &self,
        package: &Installed,
        path: &str,
        node: &InstalledNode,
        known: &BTreeSet<Sha>,
    ) -> bool {
        let name = &package.name;
        let documents = format!("/usr/share/doc/{name}");
        match node {
            InstalledNode::File { facts, mode } if mode & 0o111 == 0 => {
                let texts = [
                    format!("{documents}/copyright"),
                    format!("{documents}/changelog.Debian.gz"),
                    format!("/usr/share/licenses/{name}/copyright"),
                ];
                let is_text = matches!(facts.class, Class::Other);
                let is_debug = debug_files::is_place(path) && known.contains(&facts.sha256);
                let is_loader = match &facts.class {
                    Class::LoaderFolders(folders) => self.is_loader_file(folders, &facts.sha256),
                    _ => false,
                };
                is_debug || is_loader || (is_text && texts.iter().any(|text| text == path))
            }
            InstalledNode::File { facts, .. } => {
                debug_files::is_place(path) && known.contains(&facts.sha256)
            }
            // The documents of another package of the set.
            InstalledNode::Link { target } => path == documents && !target.contains('/'),
            InstalledNode::Directory { .. } | InstalledNode::Special { .. } => false,
        }
    }

    /// Whether a file tells the loader of one folder of the set, and of nothing else.
    fn is_loader_file(&self, folders: &[String], sha256: &Sha) -> bool {
        let [folder] = folders else { return false };
        let inside = folder.strip_prefix(self.prefix);
        let is_own = inside.is_some_and(|it| it.starts_with('/') && !it.contains("/.."));
        let whole = digest::hash(&mut format!("{folder}\n").as_bytes());
        is_own && whole.is_ok_and(|whole| whole == *sha256)
    }
}

fn has_below(package: &Installed, folder: &str) -> bool {
    let below = format!("{}/", folder.trim_end_matches('/'));
    let next = package.paths.range(below.clone()..).next();
    next.is_some_and(|(path, _)| path.starts_with(&below))
}

/// Whether a folder is the prefix, or above it.
fn is_above(folder: &str, prefix: &str) -> bool {
    prefix.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
