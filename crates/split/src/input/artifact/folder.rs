//! An artifact that is a folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rockpack_core::content::Inputs;
use rockpack_core::error::{Error, Faults, Result};
use rockpack_core::tree::{Tree, TreePath};

use super::contents::{Contents, PrefixContent};
use super::listing::list;
use super::manifest::{ArtifactManifest, MANIFEST_NAME};
use super::prefix::{PrefixWalk, locate, refuse_leaving};

/// The folder, and the inputs in which everything read from it is noted.
pub(super) struct ArtifactDirectory<'a> {
    pub root: &'a Path,
    pub inputs: &'a mut Inputs,
}

impl Contents for ArtifactDirectory<'_> {
    fn manifest(&mut self, faults: &mut Faults) -> Option<ArtifactManifest> {
        let manifest = open_manifest(self.root, self.inputs);
        faults.keep(manifest)
    }

    fn prefix(&mut self, prefix: &TreePath, faults: &mut Faults) -> PrefixContent {
        match faults.keep(locate(self.root, prefix)) {
            None => PrefixContent::Faulty,
            Some(None) => PrefixContent::Absent,
            Some(Some(folder)) => {
                let mut walk = PrefixWalk { tree: Tree::new(), inputs: self.inputs, faults };
                walk.folder(&folder, None);
                let tree = walk.tree;
                refuse_leaving(&tree, faults, |place| folder.join(place.as_str()));
                PrefixContent::Tree(tree)
            }
        }
    }

    fn outside(&mut self, prefixes: &[TreePath], faults: &mut Faults) -> Vec<String> {
        let prefixes: BTreeSet<PathBuf> =
            prefixes.iter().map(|prefix| self.root.join(prefix.as_str())).collect();
        let mut files = Vec::new();
        self.outside_of(self.root, &prefixes, &mut files, faults);
        files.retain(|file| *file != self.root.join(MANIFEST_NAME));
        let names = files.iter().map(|file| file.strip_prefix(self.root).unwrap_or(file));
        names.map(|name| name.display().to_string()).collect()
    }
}

impl ArtifactDirectory<'_> {
    fn outside_of(
        &mut self,
        folder: &Path,
        prefixes: &BTreeSet<PathBuf>,
        files: &mut Vec<PathBuf>,
        faults: &mut Faults,
    ) {
        for entry in list(folder, self.inputs, faults) {
            if prefixes.contains(&entry.path) {
                continue;
            }
            if entry.metadata.is_dir() {
                self.outside_of(&entry.path, prefixes, files, faults)
            } else {
                files.push(entry.path)
            }
        }
    }
}

fn open_manifest(root: &Path, inputs: &mut Inputs) -> Result<ArtifactManifest> {
    let path = root.join(MANIFEST_NAME);
    match std::fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_symlink() => Err(Error::unsupported(
            "is a symbolic link, and what a link leads to is nothing that the artifact says",
        )
        .file(path)
        .hint("put the manifest itself into the artifact, as its files are in it")),
        Ok(metadata) if metadata.is_file() => {
            ArtifactManifest::read(&inputs.content(&path)?, &path)
        }
        Ok(_) => Err(Error::malformed("is no regular file").file(path)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(Error::malformed("the artifact has no manifest")
                .file(path)
                .hint("the manifest lists the stage prefixes of an artifact, one per line"))
        }
        Err(e) => Err(Error::io(path, "inspect", e)),
    }
}
