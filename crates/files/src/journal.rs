//! The record of a commit.
//!
//! ```text
//! <name>                 a name that appears, one a line, in their order
//! replaces/              missing in records of rockpack 0.1
//! f1000 <name>           an entry that the commit moves out of the way: its kind (f file, d folder,
//!                        l link, o other), its owner, its name
//! ```
//!
//! An entry found where an interrupted commit moved things is not trusted: it goes back only if the record
//! has its name, with the recorded kind and owner. Without such records, files and folders of this user go
//! back.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rockpack_core::error::{Error, Result, abridged};
use rustix::process::geteuid;

/// The line before the entries that are moved out of the way. No name has a slash.
const SEPARATOR: &str = "replaces/";

/// The hint for an entry that the record lacks.
const PUT_THERE: &str = "somebody put it into what a run that was cut off left: look at who did, move it \
                         away, and run the same again";

/// The hint for an entry about which the record of an earlier version says nothing.
const UNTOLD: &str = "the record of that run, of an earlier rockpack, does not say what it moved there: if \
                      this was in the output folder, move it back by hand; if not, move it away; then run \
                      the same again";

/// The record of a commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Journal {
    /// The names that appear, in order.
    pub names: Vec<String>,
    /// The entries that are moved out of the way; `None` if the record does not list them.
    pub aside: Option<Vec<SetAside>>,
}

/// An entry that a commit moves out of the way.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SetAside {
    name: String,
    kind: char,
    owner: u32,
}

impl SetAside {
    /// Describes the entry called `name` in `folder`.
    pub fn of(folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(name);
        let metadata = fs::symlink_metadata(&path).map_err(|e| Error::io(&path, "inspect", e))?;
        let kind = match metadata.file_type() {
            kind if kind.is_file() => 'f',
            kind if kind.is_dir() => 'd',
            kind if kind.is_symlink() => 'l',
            _ => 'o',
        };
        Ok(Self { name: name.to_owned(), kind, owner: metadata.uid() })
    }

    fn parse(line: &str) -> Option<Self> {
        let (said, name) = line.split_once(' ')?;
        let kind = said.chars().next().filter(|kind| "fdlo".contains(*kind))?;
        let owner = said.get(1..)?.parse().ok()?;
        is_plain(name).then(|| Self { name: name.to_owned(), kind, owner })
    }
}

impl Journal {
    /// The text of the record.
    pub fn to_text(&self) -> String {
        let mut lines = self.names.clone();
        if let Some(aside) = &self.aside {
            lines.push(SEPARATOR.to_owned());
            lines.extend(aside.iter().map(|it| format!("{}{} {}", it.kind, it.owner, it.name)));
        }
        lines.join("\n")
    }

    /// Reads the record at `place`.
    pub fn parse(text: &str, place: &Path) -> Result<Self> {
        let mut lines = text.lines();
        let names =
            lines.by_ref().take_while(|line| *line != SEPARATOR).map(str::to_owned).collect();
        let is_told = text.lines().any(|line| line == SEPARATOR);
        let entries =
            lines.map(|line| SetAside::parse(line).ok_or_else(|| no_name(OsStr::new(line), place)));
        let aside = is_told.then(|| entries.collect::<Result<_>>()).transpose()?;
        Ok(Self { names, aside })
    }

    /// Refuses the entry called `name` in `folder` unless the commit moved it there.
    pub fn check(&self, folder: &Path, name: &str) -> Result<()> {
        let found = SetAside::of(folder, name)?;
        let is_own = "fd".contains(found.kind) && found.owner == geteuid().as_raw();
        let known = self.aside.as_ref().map(|all| all.iter().find(|known| known.name == name));
        let (what, hint) = match known {
            None if is_own => return Ok(()),
            None => ("is no file or folder of this user", UNTOLD),
            Some(None) => ("is nothing that the run moved there", PUT_THERE),
            Some(Some(known)) if *known == found => return Ok(()),
            Some(Some(_)) => {
                ("is of another kind or owner than what the run moved there", PUT_THERE)
            }
        };
        let error = Error::unsupported(format!("{what}, and is not put back"));
        Err(error.file(folder.join(name)).hint(hint))
    }
}

/// Tells whether a name is that of a direct entry of a folder, and fits on one line.
pub(super) fn is_plain(name: &str) -> bool {
    Path::new(name).file_name() == Some(OsStr::new(name)) && !name.contains(['\n', '\r', '\0'])
}

/// The error for an invalid file name in `place`.
pub(super) fn no_name(name: &OsStr, place: &Path) -> Error {
    let name = name.to_string_lossy();
    let message = format!("`{}` is no name to appear by", abridged(&name).escape_debug());
    Error::malformed(message)
        .file(place)
        .hint("if a run left this, it was not of rockpack: remove the folder that it is in")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_record_goes_out_and_comes_back() {
        let room = tempfile::tempdir().unwrap();
        fs::write(room.path().join("a b"), "").unwrap();
        symlink("x", room.path().join("l")).unwrap();
        let cases: [Option<&[&str]>; 3] = [None, Some(&[]), Some(&["a b", "l"])];
        for moved in cases {
            let aside = moved.map(|moved| set_aside(room.path(), moved));
            let names = ["x", "y"].map(str::to_owned).to_vec();
            let journal = Journal { names, aside };
            assert_eq!(Journal::parse(&journal.to_text(), room.path()).unwrap(), journal);
        }
        for line in ["", "x", "f0", "f0 ", "q0 x", "f x", "f-1 x", "f0 a/b", "f0 .."] {
            let text = format!("x\n{SEPARATOR}\n{line}\n");
            assert!(Journal::parse(&text, room.path()).is_err(), "{line}");
        }
    }

    fn set_aside(folder: &Path, names: &[&str]) -> Vec<SetAside> {
        names.iter().map(|name| SetAside::of(folder, name).unwrap()).collect()
    }

    #[test]
    fn nothing_goes_back_but_what_was_moved() {
        let room = tempfile::tempdir().unwrap();
        let here = room.path();
        fs::write(here.join("file"), "").unwrap();
        fs::create_dir(here.join("folder")).unwrap();
        symlink("file", here.join("link")).unwrap();
        let all = journal_of(here, &["file", "folder", "link"]);
        assert_eq!(["file", "folder", "link"].map(|name| refusal(&all, here, name)), ["", "", ""]);
        let without_link = journal_of(here, &["file"]);
        let refused = refusal(&without_link, here, "link");
        assert!(refused.contains("nothing that the run moved there"));
        let mut other = all;
        for it in other.aside.iter_mut().flatten() {
            (it.kind, it.owner) =
                if it.name == "file" { ('f', it.owner + 1) } else { ('f', it.owner) };
        }
        for name in ["file", "folder", "link"] {
            assert!(refusal(&other, here, name).contains("of another kind or owner"), "{name}");
        }
        let unknown = Journal { names: Vec::new(), aside: None };
        assert_eq!(["file", "folder"].map(|name| refusal(&unknown, here, name)), ["", ""]);
        assert!(refusal(&unknown, here, "link").contains("no file or folder of this user"));
    }

    fn journal_of(folder: &Path, names: &[&str]) -> Journal {
        Journal { names: Vec::new(), aside: Some(set_aside(folder, names)) }
    }

    fn refusal(journal: &Journal, folder: &Path, name: &str) -> String {
        match journal.check(folder, name) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }
}
