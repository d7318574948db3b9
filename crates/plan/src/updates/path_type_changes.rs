//! Handles folders that become another kind of file in an update, and the reverse. No package manager
//! replaces a folder by a link or a link by a folder; the packages' scripts do.
//!
//! | before | now | `.deb` | `.rpm` |
//! |---|---|---|---|
//! | folder of this package alone | link | `dpkg-maintscript-helper dir_to_symlink` | `%pretrans` |
//! | folder of several packages | link | `postinst`, when dpkg has removed the files of all | `%pretrans` |
//! | link of this package | folder | `dpkg-maintscript-helper symlink_to_dir` | `%pretrans` |
//! | link of another package | folder | `preinst`, as the helper would | `%pretrans` |
//! | folder | file | by dpkg | `%pretrans` |
//! | file | folder | by dpkg | by rpm |
//!
//! The helper does nothing if this package is not installed yet, and refuses folders with files of other
//! packages, so it cannot be used if packages share a path. Relations to these packages ([`super::since`])
//! make sure that their earlier versions do not stay.
//!
//! rpm looks for conflicts after `%pretrans` and before `%pre`. `%pretrans` is in Lua
//! ([`lua_scriptlet`](crate::scripts::lua_scriptlet)): a shell may not be installed yet.
//!
//! Source: dpkg-maintscript-helper(1), Debian policy 6.6, Fedora's packaging guidelines on the replacement of
//! directories; tried with dpkg 1.21.23 and rpm 4.18.0.

use std::collections::BTreeMap;

use minijinja::{Value, context};
use rockpack_core::error::Result;

use crate::outcome::PlannedPackage;
use crate::scripts::{DEB_START, lua_scriptlet, lua_text};
use crate::settings::PlanSettings;
use rockpack_package::{DebControl, Format, MemberKind, PathChange, RpmControl};

/// The maintainer scripts of a `.deb` in the order in which packages list them.
const PHASES: [&str; 4] = ["preinst", "postinst", "prerm", "postrm"];

/// The changes of one package in one format, by absolute path.
type PathChanges = BTreeMap<String, PathChange>;

#[derive(Debug, Default)]
pub(super) struct PathTypeChanges(BTreeMap<(usize, Format), PathChanges>);

impl PathTypeChanges {
    pub fn add(&mut self, package: (usize, Format), change: PathChange) {
        let changes = self.0.entry(package).or_default();
        let Some(known) = changes.get_mut(&change.path) else {
            changes.insert(change.path.clone(), change);
            return;
        };
        known.is_shared |= change.is_shared;
        known.members.extend(change.members);
        if change.was == MemberKind::Link && known.was != change.was {
            known.was = change.was;
            known.target = change.target;
        } else if known.target != change.target {
            known.target = None;
        }
    }

    /// Repeats a change of an earlier package of this version, if the package still has the resulting kind and no
    /// newer change of the path is known.
    pub fn inherit(&mut self, at: (usize, Format), package: &PlannedPackage, change: PathChange) {
        let exists = package.entries.iter().any(|entry| {
            entry.formats.has(at.1)
                && change.path.strip_prefix('/') == Some(entry.path.as_str())
                && entry.node.kind() == change.is
        });
        if exists {
            self.0.entry(at).or_default().entry(change.path.clone()).or_insert(change);
        }
    }

    pub fn of(&self, at: (usize, Format)) -> impl Iterator<Item = &PathChange> {
        self.0.get(&at).into_iter().flat_map(BTreeMap::values)
    }

    pub fn add_scripts(
        &self,
        setting: &PlanSettings,
        packages: &mut [PlannedPackage],
    ) -> Result<()> {
        for ((index, format), changes) in &self.0 {
            let Some(package) = packages.get_mut(*index) else { continue };
            match (format, &mut package.deb, &mut package.rpm) {
                (Format::Deb, Some(control), _) => add_to_deb(setting, control, changes)?,
                (Format::Rpm, _, Some(control)) => add_to_rpm(setting, control, changes)?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn add_to_deb(
    setting: &PlanSettings,
    control: &mut DebControl,
    changes: &PathChanges,
) -> Result<()> {
    let (mut helped, mut folders, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for (path, change) in changes {
        let own = change.target.as_deref().filter(|_| !change.is_shared);
        let path = shell_word(path);
        match (change.was, change.is, own) {
            (MemberKind::Directory, MemberKind::Link, Some(target)) => {
                helped.push(format!("dir_to_symlink {path} {}", shell_word(target)));
            }
            (MemberKind::Link, MemberKind::Directory, Some(target)) => {
                helped.push(format!("symlink_to_dir {path} {}", shell_word(target)));
            }
            (MemberKind::Directory, MemberKind::Link, None) => {
                let target = shell_word(change.target.as_deref().unwrap_or_default());
                folders.push(context! { path, target });
            }
            (MemberKind::Link, MemberKind::Directory, None) => links.push(path),
            _ => {}
        }
    }
    let (package, before) = (&control.name, format!("{}~", control.version));
    let values = context! { package, before, helped, folders, links };
    for phase in ["preinst", "postinst", "postrm"] {
        let text = setting.texts.render(&format!("path-type-change-{phase}"), values.clone())?;
        if !text.is_empty() {
            put(&mut control.scripts, phase, &text);
        }
    }
    Ok(())
}

/// Adds `text` to the script of a phase, before everything except the guard of `preinst`, which prevents
/// writes through a link of the prefix.
fn put(scripts: &mut Vec<(String, String)>, phase: &str, text: &str) {
    match scripts.iter_mut().find(|(known, _)| known == phase) {
        Some((_, script)) if phase == "preinst" => script.push_str(text),
        Some((_, script)) => {
            let rest = script.strip_prefix(DEB_START).unwrap_or(script);
            *script = format!("{DEB_START}{text}{rest}");
        }
        None => scripts.push((phase.to_owned(), format!("{DEB_START}{text}"))),
    }
    scripts.sort_by_key(|(phase, _)| PHASES.iter().position(|known| known == phase));
}

fn add_to_rpm(
    setting: &PlanSettings,
    control: &mut RpmControl,
    changes: &PathChanges,
) -> Result<()> {
    let prefix = setting.prefix.absolute();
    let (mut folders, mut links): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    for (path, change) in changes {
        let inside = path.strip_prefix(&prefix).filter(|inside| inside.starts_with('/'));
        let Some(path) = inside.map(lua_text) else { continue };
        match (change.was, change.is) {
            (MemberKind::Directory, _) => {
                // The content of a folder is removed before the folder.
                let members: Vec<String> =
                    change.members.iter().rev().map(|member| lua_text(member)).collect();
                folders.push(context! { path, members });
            }
            (MemberKind::Link, _) => links.push(path),
            (MemberKind::File, _) => {}
        }
    }
    if folders.is_empty() && links.is_empty() {
        return Ok(());
    }
    let pretrans = lua_scriptlet(
        setting,
        "%pretrans",
        "path-type-change-pretrans",
        context! { folders, links },
    )?;
    control.scripts.insert(0, pretrans);
    Ok(())
}

fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_for_each_language() {
        assert_eq!(shell_word("/a b's"), r"'/a b'\''s'");
        assert_eq!(lua_text(r#"/a "b" \c"#), r#""/a \"b\" \\c""#);
    }

    #[test]
    fn a_script_comes_after_the_guard_and_before_all_else() {
        let mut scripts = vec![
            ("preinst".to_owned(), format!("{DEB_START}guard\n")),
            ("postrm".to_owned(), format!("{DEB_START}rest\n")),
        ];
        for phase in ["preinst", "postinst", "postrm"] {
            put(&mut scripts, phase, "own\n");
        }
        let texts = [("preinst", "guard\nown\n"), ("postinst", "own\n"), ("postrm", "own\nrest\n")];
        let expected = texts.map(|(phase, text)| (phase.to_owned(), format!("{DEB_START}{text}")));
        assert_eq!(scripts, expected);
    }
}
