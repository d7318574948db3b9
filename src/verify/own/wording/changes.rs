//! The changes that scripts make to a folder or link of an earlier version. They are read from the scripts, and
//! trusted if the package has the result at that path.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Value, context};
use rockpack_base::tree::TreePath;

use super::LoaderFile;
use crate::verify::own::installed::{Installed, InstalledNode};

/// The changes that the maintainer scripts of a `.deb` make, by absolute path.
#[derive(Debug, Default)]
pub(super) struct DebChanges {
    /// Changes by dpkg-maintscript-helper, in its words.
    helped: BTreeMap<String, String>,
    /// Folders of this package that were links of others.
    links: BTreeSet<String>,
    /// Links of this package, with their texts, that were folders of several.
    folders: BTreeMap<String, String>,
}

impl DebChanges {
    pub(super) fn of(package: &Installed, prefix: &str) -> Self {
        let mut changes = Self::default();
        let end = format!(" {}~ {} -- \"$@\"", package.version, package.name);
        let own = Own { package, prefix };
        for line in lines(package, "preinst") {
            if let Some(change) = line.strip_prefix("dpkg-maintscript-helper ")
                && let Some(change) = change.strip_suffix(&end)
            {
                changes.helped.extend(own.helped(change));
            } else if let Some(path) = line.strip_prefix("link=\"${DPKG_ROOT:-}\"").and_then(word)
                && own.is_folder(&path)
            {
                changes.links.insert(path);
            }
        }
        for line in lines(package, "postinst") {
            if let Some(path) = line.strip_prefix("folder=\"${DPKG_ROOT:-}\"").and_then(word)
                && let Some(target) = own.target(&path)
            {
                changes.folders.insert(path.clone(), target.to_owned());
            }
        }
        changes
    }

    /// The values of templates for them.
    pub(super) fn values(&self, package: &str, version: &str) -> Value {
        let folders = self.folders.iter().map(|(path, target)| {
            context! { path => shell_word(path), target => shell_word(target) }
        });
        let links = self.links.iter().map(|path| shell_word(path));
        context! {
            package => package.to_owned(),
            before => format!("{version}~"),
            helped => self.helped.values().cloned().collect::<Vec<_>>(),
            links => links.collect::<Vec<_>>(),
            folders => folders.collect::<Vec<_>>(),
        }
    }
}

/// The changes that `%pretrans` of an `.rpm` makes, by paths relative to the prefix, with a slash in front.
#[derive(Debug, Default)]
pub(super) struct RpmChanges {
    /// Folders that become something else, with what earlier versions have in them.
    folders: BTreeMap<String, BTreeSet<String>>,
    /// Links that become folders.
    links: BTreeSet<String>,
    loader: Option<LoaderFile<String>>,
}

impl RpmChanges {
    /// Reads the changes of a package that has the script.
    pub(super) fn of(
        package: &Installed,
        prefix: &str,
        loader: Option<LoaderFile<&str>>,
    ) -> Option<Self> {
        package.scripts.iter().find(|script| script.phase == "%pretrans")?;
        let own = Own { package, prefix };
        let mut changes = Self::default();
        let mut folder = None;
        for line in lines(package, "%pretrans") {
            if let Some(path) = behind(line, "clear(prefix .. ", ", {") {
                folder = own.below(&path).filter(|path| own.is_no_folder(path)).map(|_| path);
                let empty = folder.iter().map(|path| (path.clone(), BTreeSet::new()));
                changes.folders.extend(empty);
            } else if let Some(member) = behind(line, "  ", ",") {
                let members = folder.as_ref().and_then(|folder| changes.folders.get_mut(folder));
                let member = Some(member).filter(|member| TreePath::new(member).is_ok());
                members.into_iter().for_each(|members| members.extend(member.clone()));
            } else if let Some(path) = behind(line, "  os.remove(prefix .. ", ")")
                && own.below(&path).is_some_and(|path| own.is_folder(&path))
            {
                changes.links.insert(path);
            }
        }
        let given = loader.map(|LoaderFile { file, libdir }| LoaderFile {
            file: file.to_owned(),
            libdir: libdir.to_owned(),
        });
        changes.loader = given.or_else(|| said_loader(package));
        Some(changes)
    }

    /// Tells whether the script changes anything.
    pub(super) fn are_some(&self) -> bool {
        !self.folders.is_empty() || !self.links.is_empty()
    }

    /// The values of the template for them.
    pub(super) fn values(&self, prefix: &str, is_moved: bool, moved: &str) -> Value {
        let folders = self.folders.iter().map(|(path, members)| {
            // The content of a folder comes before it.
            let members: Vec<String> =
                members.iter().rev().map(|member| lua_text(member)).collect();
            context! { path => lua_text(path), members }
        });
        let LoaderFile { file, libdir } = self.loader.clone().unwrap_or_default();
        context! {
            prefix => lua_text(prefix),
            is_moved,
            file => lua_text(&file),
            moved => lua_text(&format!("{moved} ")),
            libdir => lua_text(&format!("/{libdir}")),
            folders => folders.collect::<Vec<_>>(),
            links => self.links.iter().map(|path| lua_text(path)).collect::<Vec<_>>(),
        }
    }
}

/// The loader's file as `%pretrans` has it, where no package of the set does.
fn said_loader(package: &Installed) -> Option<LoaderFile<String>> {
    let mut all = lines(package, "%pretrans");
    let libdir = all.find_map(|line| {
        let (_, libdir) = line.strip_prefix("local moved, libdir = ")?.rsplit_once(", ")?;
        Some(lua_word(libdir)?.strip_prefix('/')?.to_owned())
    })?;
    let file = all.find_map(|line| behind(line, "local loader = io.open(", ")"))?;
    let is_file = file.starts_with(super::LOADER_FOLDER) && file.ends_with(".conf");
    let plain = super::is_plain_path;
    (is_file && plain(&libdir) && plain(&file[1..])).then_some(LoaderFile { file, libdir })
}

/// A package and the paths at which its scripts may change something.
struct Own<'a> {
    package: &'a Installed,
    prefix: &'a str,
}

impl Own<'_> {
    /// `dir_to_symlink PATH TARGET` or the other way round, by its path.
    fn helped(&self, change: &str) -> Option<(String, String)> {
        let (what, words) = change.split_once(' ')?;
        let (path, rest) = quoted(words)?;
        let target = word(rest.strip_prefix(' ')?)?;
        let is_so = match what {
            "dir_to_symlink" => self.target(&path) == Some(&target),
            // The text of a link that was there may lead anywhere.
            "symlink_to_dir" => self.is_folder(&path),
            _ => false,
        };
        is_so.then(|| {
            let words = format!("{what} {} {}", shell_word(&path), shell_word(&target));
            (path, words)
        })
    }

    /// The node at a path that is this package's alone: below the prefix, or its documents.
    fn node(&self, path: &str) -> Option<&InstalledNode> {
        let documents = format!("/usr/share/doc/{}", self.package.name);
        let is_own = path == documents
            || [self.prefix, &documents]
                .into_iter()
                .any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')));
        self.package.paths.get(path).filter(|_| is_own)
    }

    fn is_folder(&self, path: &str) -> bool {
        matches!(self.node(path), Some(InstalledNode::Directory { .. }))
    }

    fn is_no_folder(&self, path: &str) -> bool {
        matches!(self.node(path), Some(InstalledNode::File { .. } | InstalledNode::Link { .. }))
    }

    fn target(&self, path: &str) -> Option<&str> {
        match self.node(path)? {
            InstalledNode::Link { target } => Some(target),
            _ => None,
        }
    }

    /// The absolute path of one relative to the prefix.
    fn below(&self, path: &str) -> Option<String> {
        path.starts_with('/').then(|| format!("{}{path}", self.prefix))
    }
}

fn lines<'a>(package: &'a Installed, phase: &str) -> impl Iterator<Item = &'a str> {
    let scripts = package.scripts.iter().filter(move |script| script.phase == phase);
    scripts.flat_map(|script| script.text.lines()).collect::<Vec<_>>().into_iter()
}

/// The string of Lua between two texts.
fn behind(line: &str, start: &str, end: &str) -> Option<String> {
    lua_word(line.strip_prefix(start)?.strip_suffix(end)?)
}

/// A text that is one word to a shell, in single quotes.
pub(super) fn word(value: &str) -> Option<String> {
    quoted(value).filter(|(_, rest)| rest.is_empty()).map(|(word, _)| word)
}

/// The word in single quotes at the start of a shell text, with `'\''` for a quote,
/// and the rest of the text.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (first, mut rest) = text.strip_prefix('\'')?.split_once('\'')?;
    let mut word = first.to_owned();
    while let Some(more) = rest.strip_prefix("\\''") {
        let (part, behind) = more.split_once('\'')?;
        word = word + "'" + part;
        rest = behind;
    }
    Some((word, rest))
}

/// `text` as one word of a shell.
pub(super) fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The text of a Lua string in double quotes, in which a backslash escapes a quote or another
/// backslash.
pub(super) fn lua_word(value: &str) -> Option<String> {
    let mut inside = value.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut text = String::new();
    while let Some(c) = inside.next() {
        match c {
            '"' => return None,
            '\\' => text.push(inside.next().filter(|next| ['"', '\\'].contains(next))?),
            other => text.push(other),
        }
    }
    Some(text)
}

/// `text` as a string of Lua.
pub(super) fn lua_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
