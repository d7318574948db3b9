//! The record of a commit.
//!
//! ```text
//! <name>                 a name that appears, one a line, in their order
//! replaces/              the line before the entries below
//! f1000 <name>           an entry that the commit moves away: its kind (f file, d folder, l link,
//!                        o other), its owner, its name
//! ```
//!
//! Entries in the folder of an interrupted commit are not trusted: an entry is moved back only if the record has its
//! name, kind and owner.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rockpack_core::error::{Error, Result, abridged};

/// The line before the entries that are moved away. Names have no slash.
const SEPARATOR: &str = "replaces/";

const PUT_THERE: &str = "someone put it into the leftovers of an interrupted run: find out who, move it \
                         away, and run the same command again";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Journal {
    /// The names that appear, in order.
    pub names: Vec<String>,
    /// The entries that are moved away.
    pub displaced: Vec<DisplacedEntry>,
}

/// An entry that a commit moves away.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DisplacedEntry {
    name: String,
    kind: char,
    owner: u32,
}

impl DisplacedEntry {
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
    pub fn to_text(&self) -> String {
        let mut lines = self.names.clone();
        lines.push(SEPARATOR.to_owned());
        lines
            .extend(self.displaced.iter().map(|it| format!("{}{} {}", it.kind, it.owner, it.name)));
        lines.join("\n")
    }

    pub fn parse(text: &str, place: &Path) -> Result<Self> {
        let mut lines = text.lines();
        let names =
            lines.by_ref().take_while(|line| *line != SEPARATOR).map(str::to_owned).collect();
        let entries = lines.map(|line| {
            DisplacedEntry::parse(line).ok_or_else(|| no_name(OsStr::new(line), place))
        });
        Ok(Self { names, displaced: entries.collect::<Result<_>>()? })
    }

    /// Refuses the entry called `name` in `folder` unless the commit moved it there.
    pub fn check(&self, folder: &Path, name: &str) -> Result<()> {
        let found = DisplacedEntry::of(folder, name)?;
        let what = match self.displaced.iter().find(|known| known.name == name) {
            None => "was not moved there by the run",
            Some(known) if *known == found => return Ok(()),
            Some(_) => "has another type or owner than the entry that the run moved there",
        };
        let error = Error::unsupported(format!("{what}, and is not put back"));
        Err(error.file(folder.join(name)).hint(PUT_THERE))
    }
}

/// Whether a name has one line, and no slash.
pub(super) fn is_plain(name: &str) -> bool {
    Path::new(name).file_name() == Some(OsStr::new(name)) && !name.contains(['\n', '\r', '\0'])
}

pub(super) fn no_name(name: &OsStr, place: &Path) -> Error {
    let name = name.to_string_lossy();
    let message =
        format!("`{}` is not a valid file name for a commit", abridged(&name).escape_debug());
    Error::malformed(message)
        .file(place)
        .hint("rockpack did not write it: remove the folder that it is in")
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
        let cases: [&[&str]; 2] = [&[], &["a b", "l"]];
        for moved in cases {
            let displaced = displaced_entries(room.path(), moved);
            let names = ["x", "y"].map(str::to_owned).to_vec();
            let journal = Journal { names, displaced };
            assert_eq!(Journal::parse(&journal.to_text(), room.path()).unwrap(), journal);
        }
        for line in ["", "x", "f0", "f0 ", "q0 x", "f x", "f-1 x", "f0 a/b", "f0 .."] {
            let text = format!("x\n{SEPARATOR}\n{line}\n");
            assert!(Journal::parse(&text, room.path()).is_err(), "{line}");
        }
    }

    fn displaced_entries(folder: &Path, names: &[&str]) -> Vec<DisplacedEntry> {
        names.iter().map(|name| DisplacedEntry::of(folder, name).unwrap()).collect()
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
        assert!(refused.contains("was not moved there by the run"));
        let mut other = all;
        for it in &mut other.displaced {
            (it.kind, it.owner) =
                if it.name == "file" { ('f', it.owner + 1) } else { ('f', it.owner) };
        }
        for name in ["file", "folder", "link"] {
            assert!(refusal(&other, here, name).contains("another type or owner"), "{name}");
        }
    }

    fn journal_of(folder: &Path, names: &[&str]) -> Journal {
        Journal { names: Vec::new(), displaced: displaced_entries(folder, names) }
    }

    fn refusal(journal: &Journal, folder: &Path, name: &str) -> String {
        match journal.check(folder, name) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }
}
