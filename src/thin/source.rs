//! An input of `thin`: a folder, a tarball or a file, read into one tree.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockpack_archive::tarball::Tarball;
use rockpack_core::content::{BlockStore, Content, Inputs, real_path};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::{Node, Tree, TreePath};
use rockpack_elf::code_object::is_code_object;
use rockpack_elf::fatbin::starts_bundle;
use rockpack_files::new_file;
use rockpack_split::host_binary::device_sections;
use rockpack_split::input::artifact::read_folder;
use rockpack_split::input::tree::parse_tarball;
use rockpack_split::thin::Thinned;

use super::name_of;

/// Endings of packages, which are refused as inputs: they must be unpacked first.
const PACKED: [&[u8]; 4] = [b".deb", b".rpm", b".whl", b".zip"];

pub(super) enum Form {
    Folder,
    Tarball(Tarball),
    File,
}

pub(super) struct Source {
    pub path: PathBuf,
    pub real: PathBuf,
    pub form: Form,
    pub tree: Tree<Content>,
    /// Unfinished files of earlier runs in a folder; not in `tree`.
    pub unfinished: Vec<TreePath>,
    pub inputs: Inputs,
}

impl Source {
    pub fn read(path: &Path, store: &Arc<BlockStore>) -> Result<Self> {
        let real = path.canonicalize();
        let real = real.map_err(|fault| Error::io(path, "open", fault).named_by_user())?;
        let mut inputs = Inputs::within(store.budget());
        let (form, mut tree) = if real.is_dir() {
            (Form::Folder, read_folder(&real, &mut inputs)?)
        } else if let Some((_, method)) = parse_tarball(name_of(&real)?) {
            let tarball = Tarball::read(&inputs.content(&real)?, method, path, store);
            let read = tarball.and_then(|tarball| Ok((tarball.tree()?, tarball)));
            let (tree, tarball) = inputs.explain(read).map_err(|error| error.file(path))?;
            (Form::Tarball(tarball), tree)
        } else if PACKED.iter().any(|ending| real.as_os_str().as_bytes().ends_with(ending)) {
            let error = Error::new(Kind::Usage, "is a package or wheel").file(path);
            return Err(error.hint("install or unpack it, and give the folder"));
        } else {
            let mut tree = Tree::new();
            let node = Node::File { data: inputs.content(&real)?, mode: 0o644 };
            tree.insert(TreePath::new(name_of(&real)?)?, node)?;
            (Form::File, tree)
        };
        let is_unfinished = |(path, node): &(&TreePath, &Node<Content>)| {
            node.data().is_some() && path.name().starts_with(new_file::PREFIX)
        };
        let unfinished = tree.iter().filter(is_unfinished);
        let unfinished: Vec<TreePath> = unfinished.map(|(path, _)| path.clone()).collect();
        unfinished.iter().for_each(|path| drop(tree.remove(path)));
        Ok(Self { path: path.to_path_buf(), real, form, tree, unfinished, inputs })
    }

    /// The path on disk of a file of the tree; for the members of a tarball, that of the tarball.
    pub fn place(&self, path: &TreePath) -> PathBuf {
        match self.form {
            Form::Folder => self.real.join(path.as_str()),
            Form::Tarball(_) | Form::File => self.real.clone(),
        }
    }

    /// Fails if these changes cannot be written into the tarball.
    pub fn check(&self, thinned: &Thinned) -> Result<()> {
        match &self.form {
            Form::Tarball(tarball) => tarball.changed(&thinned.changes).map(drop),
            Form::Folder | Form::File => Ok(()),
        }
    }
}

/// Refuses sources that contain each other, and links to folders or device code outside of all sources.
pub(super) fn refuse_overlap(sources: &[Source]) -> Result<()> {
    let mut seen: BTreeSet<&Path> = BTreeSet::new();
    let mut faults = Faults::default();
    for source in sources {
        let overlaps =
            |other: &&Path| source.real.starts_with(other) || other.starts_with(&source.real);
        if let Some(other) = seen.iter().copied().find(overlaps) {
            let message = format!("overlaps {}, which is also given", other.display());
            faults
                .add(Error::new(Kind::Usage, message).file(&source.path).hint("give one of them"));
        }
        seen.insert(&source.real);
    }
    for source in sources.iter().filter(|source| matches!(source.form, Form::Folder)) {
        for (link, _) in source.tree.outside_links() {
            faults.keep(check_link(source, link, sources));
        }
    }
    faults.finish()
}

/// Fails if a link leads to a folder or device code outside of all sources, which would not be thinned.
fn check_link(source: &Source, link: &TreePath, sources: &[Source]) -> Result<()> {
    let place = source.place(link);
    let Some(real) = real_path(&place)? else { return Ok(()) };
    // If the source is the root of an image, absolute links start at that root.
    let in_root = match source.tree.get(link) {
        Some(Node::Link { target }) => TreePath::new(target.trim_start_matches('/')).ok(),
        _ => None,
    };
    let is_inside = in_root.is_some_and(|path| source.tree.get(&path).is_some());
    if is_inside || sources.iter().any(|other| real.starts_with(&other.real)) {
        return Ok(());
    }
    let what = if real.is_dir() {
        "a folder"
    } else if real.is_file() && has_code(&Content::open(&real, source.inputs.budget())?)? {
        "device code"
    } else {
        return Ok(());
    };
    let message = format!("the link leads out of the tree to {what}: {}", real.display());
    let hint =
        "its target would not be thinned: add the target as another PATH, or remove the link";
    Err(Error::unsupported(message).file(place).hint(hint))
}

fn has_code(content: &Content) -> Result<bool> {
    Ok(starts_bundle(content)? || is_code_object(content)? || !device_sections(content)?.is_empty())
}
