//! Whether what runs the scripts of a package comes with it, or is known to be on every system.
//!
//! An interpreter below the prefix has to be in the package itself or in one that its dependencies
//! bring; another one has to be among the programs that some distribution with a table is known to
//! have. What a finding of the build accounts for is excused: interpreters that are nowhere (`R066`), and
//! those that the configuration settles (`R068`).

use rockpack_base::error::Result;
use rockpack_base::tree::LINK_LIMIT;

use super::excuses::Excuses;
use super::needs::{Brought, InstalledSet, LibraryTables, normal};
use crate::dependencies::KnownNames;
use crate::verify::own::facts::Class;
use crate::verify::own::installed::{Installed, InstalledNode};
use crate::verify::own::script::Runner;
use crate::verify::problem::{InterpreterLack, PackagePath, Problem, Problems};

/// Checks the packages of a set, all of one format.
pub(in crate::verify) fn check(
    packages: &[&Installed],
    excuses: &Excuses,
    problems: &mut Problems,
) -> Result<()> {
    let (tables, known) = (LibraryTables::new(), KnownNames::all()?);
    let set = InstalledSet::new(packages, &tables, excuses);
    let scripts = Scripts { packages, known: &known };
    for package in packages {
        let mut brought = None;
        for (path, runner) in runners(package).filter(|(path, _)| !excuses.settles(path)) {
            let brought = brought.get_or_insert_with(|| Brought::of(&set, package));
            if let Some(lack) = scripts.lack(runner, package, brought) {
                let [package, path] = [&package.file, path].map(|text: &str| text.to_owned());
                problems.add(Problem::InterpreterMissing { package, path, lack });
            }
        }
    }
    Ok(())
}

/// The scripts of a package that somebody may run.
fn runners(package: &Installed) -> impl Iterator<Item = (&str, &Runner)> {
    package.paths.iter().filter_map(|(path, node)| match node {
        InstalledNode::File { mode, facts } if mode & 0o111 != 0 => match &facts.class {
            Class::Script(script) => Some((path.as_str(), &script.runner)),
            _ => None,
        },
        _ => None,
    })
}

/// The places where interpreters may be.
struct Scripts<'a> {
    packages: &'a [&'a Installed],
    known: &'a [KnownNames],
}

impl<'a> Scripts<'a> {
    /// Says why `runner` does not come with `package` and all that it brings. rpm finds a package by a
    /// path, too.
    fn lack(
        &self,
        runner: &Runner,
        package: &Installed,
        brought: &Brought<'_>,
    ) -> Option<InterpreterLack> {
        let (name, found) = match runner {
            Runner::Env => return None,
            Runner::Nothing => return Some(InterpreterLack::Unreadable),
            Runner::Path(path) => (path, self.at(path)),
            Runner::Named(name) if self.known.iter().any(|k| k.in_search_path(name).is_some()) => {
                return None;
            }
            Runner::Named(name) => (name, self.in_programs(name)),
        };
        match found {
            Found::InSet(holders) => {
                let strange = holders
                    .into_iter()
                    .find(|(holder, path)| !brought.has(holder) && !package.named.contains(*path));
                let (holder, path) = strange.filter(|_| !brought.is_cut)?;
                Some(InterpreterLack::NotBrought {
                    interpreter: name.clone(),
                    holder: PackagePath::new(&holder.file, path),
                })
            }
            Found::Outside(path) => {
                let is_known = self.known.iter().any(|known| known.program(&path).is_some());
                let lack = InterpreterLack::Nowhere { interpreter: name.clone() };
                (!is_known && !brought.is_cut).then_some(lack)
            }
        }
    }

    /// Finds what stands at an absolute path, with all links on the way.
    fn at(&self, path: &str) -> Found<'a> {
        let (mut at, mut holders) = (normal(path), Vec::new());
        for _ in 0..LINK_LIMIT {
            if let Some((link, next)) = self.link_on_the_way(&at) {
                holders.push(link);
                at = next;
            } else if let Some((holder, path)) = self.file(&at) {
                holders.push((holder, path));
                return Found::InSet(holders);
            } else {
                break;
            }
        }
        Found::Outside(at)
    }

    fn file(&self, path: &str) -> Option<(&'a Installed, &'a str)> {
        self.packages.iter().find_map(|package| match package.paths.get_key_value(path)? {
            (path, InstalledNode::File { .. }) => Some((*package, path.as_str())),
            _ => None,
        })
    }

    /// The first link on the way to a path, with its package, and the path that it leads to.
    fn link_on_the_way(&self, path: &str) -> Option<((&'a Installed, &'a str), String)> {
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        ends.filter_map(|end| path.split_at_checked(end)).find_map(|(folder, rest)| {
            let mut nodes = self.packages.iter().map(|p| (*p, p.paths.get_key_value(folder)));
            nodes.find_map(|(package, node)| match node? {
                (link, InstalledNode::Link { target }) => {
                    let above = link.rsplit_once('/').map_or("", |(above, _)| above);
                    let start = if target.starts_with('/') { "" } else { above };
                    let next = normal(&format!("{start}/{target}/{rest}"));
                    Some(((package, link.as_str()), next))
                }
                _ => None,
            })
        })
    }

    /// A program of the set that a user may have in the `PATH`.
    fn in_programs(&self, name: &str) -> Found<'a> {
        let end = format!("/bin/{name}");
        let paths = self.packages.iter().flat_map(|package| package.paths.keys());
        let mut found = paths.filter(|path| path.ends_with(&end)).map(|path| self.at(path));
        found.find(|found| matches!(found, Found::InSet(_))).unwrap_or(Found::Outside(end))
    }
}

/// The place where a program was found.
enum Found<'a> {
    /// The packages of the file and of the links to it, each with its path.
    InSet(Vec<(&'a Installed, &'a str)>),
    /// The path where it lies, if anywhere.
    Outside(String),
}
