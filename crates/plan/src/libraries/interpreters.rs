//! Checks the interpreters of a set's scripts and programs, and adds the dependencies on them.
//!
//! An interpreter below the prefix is looked up in the set, through links, and others among the known
//! programs of the distribution. The configuration's `interpreters` has priority: it replaces the interpreter
//! in the first line of scripts, or leaves the scripts unchanged.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Error, Result};
use rockpack_core::tree::{LINK_LIMIT, Node, TreePath, resolved_names};

use super::Linkage;
use super::library_set::LinkedFile;
use crate::config::InterpreterSchema;
use crate::contents::Portion;
use crate::layout::file_mode;
use crate::relations::{parse_deb, plain};
use crate::scripts::PROGRAM_FOLDER;
use crate::settings::PlanSettings;
use rockpack_package::RelationKind;
use rockpack_package::dependencies::rpm;
use rockpack_package::dependencies::script::{FirstLine, Start};
use rockpack_report::{Findings, InterpreterFault, found};
use rockpack_split::HostFile;
use rockpack_split::input::database::matches_path;

pub(super) struct InterpreterNeeds<'a> {
    setting: &'a PlanSettings,
    paths: SetPaths<'a>,
    portions: BTreeMap<usize, PortionNeeds>,
    /// Path → its first line with the interpreter of the configuration.
    replaced: BTreeMap<TreePath, FirstLine>,
}

#[derive(Default)]
struct PortionNeeds {
    /// Packages of the distribution, in the form of a `.deb`'s dependencies.
    deb: BTreeSet<String>,
    rpm: BTreeSet<String>,
    portions: BTreeSet<usize>,
    /// Interpreter and its fault → files.
    faults: BTreeMap<(String, InterpreterFault), BTreeSet<TreePath>>,
    /// Interpreter and its replacement, if any → files.
    configured: BTreeMap<(String, Option<String>), BTreeSet<TreePath>>,
}

impl<'a> InterpreterNeeds<'a> {
    pub fn new(setting: &'a PlanSettings, portions: &'a [Portion<'a>]) -> Self {
        let paths = SetPaths::new(portions, setting.prefix.path());
        Self { setting, paths, portions: BTreeMap::new(), replaced: BTreeMap::new() }
    }

    pub fn add(&mut self, linked: &LinkedFile<'_>) {
        let linking = linked.needs.linking.as_ref().filter(|_| linked.needs.is_executable);
        if let Some(loader) = linking.and_then(|it| it.interpreter.as_deref()) {
            self.add_loader(linked, loader);
        }
        let Some(own) = &linked.needs.script else { return };
        match self.rule(&own.interpreter) {
            None => self.add_script(linked, own, false),
            Some(InterpreterSchema::Ignored) => self.note_rule(linked, &own.interpreter, None),
            Some(InterpreterSchema::Path(path)) if own.interpreter == *path => {
                self.note_rule(linked, path, Some(path));
                self.add_script(linked, own, true);
            }
            Some(InterpreterSchema::Path(path)) => match own.with_interpreter(path) {
                Some(new) if new != *own => {
                    self.note_rule(linked, &own.interpreter, Some(path));
                    self.add_replaced(linked, &new, path);
                    self.replaced.insert(linked.path.clone(), new);
                }
                _ => self.add_script(linked, own, false),
            },
        }
    }

    /// Adds a script that gets the first line `line`. Another entry may decide about its interpreter at `path`.
    fn add_replaced(&mut self, linked: &LinkedFile<'_>, line: &FirstLine, path: &str) {
        match self.rule(path) {
            Some(InterpreterSchema::Ignored) => {}
            Some(InterpreterSchema::Path(new)) => self.add_script(linked, line, new == path),
            None => self.add_script(linked, line, false),
        }
    }

    fn rule(&self, interpreter: &str) -> Option<&'a InterpreterSchema> {
        let mut rules = self.setting.config.keys.interpreters.0.iter();
        rules.find(|(glob, _)| matches_path(glob, interpreter)).map(|(_, rule)| rule)
    }

    /// Adds a script with this first line. `exists` means that the configuration asserts that the
    /// interpreter exists.
    fn add_script(&mut self, linked: &LinkedFile<'_>, line: &FirstLine, exists: bool) {
        let by_path = rpm::interpreters(&line.start);
        let fault = match &line.start {
            Start::Fails(fault) => Some(InterpreterFault::Start(*fault)),
            Start::Program(path) => self.add_program(linked.portion, path, &by_path),
            Start::ThroughShell { shell, program } => {
                let own = self.add_program(linked.portion, shell, &by_path);
                own.or_else(|| self.add_program(linked.portion, program, &by_path))
            }
            Start::ThroughEnv { env, program, .. } => {
                let own = self.add_program(linked.portion, env, &by_path);
                own.or_else(|| match program.starts_with('/') {
                    true => self.add_program(linked.portion, program, &by_path),
                    false => self.add_named(linked.portion, program),
                })
            }
        };
        let is_settled = exists && matches!(fault, Some(InterpreterFault::Unknown { .. }));
        if let Some(fault) = fault.filter(|_| !is_settled) {
            self.note(linked, &line.interpreter, fault);
        }
    }

    /// Adds the program at the absolute `path`. `by_path` collects those that an `.rpm` needs. Returns the
    /// fault of the program, if any.
    fn add_program(
        &mut self,
        portion: usize,
        path: &str,
        by_path: &[String],
    ) -> Option<InterpreterFault> {
        let place = self.paths.find(path);
        let needs = self.portions.entry(portion).or_default();
        let mut needed = path.to_owned();
        let fault = match place {
            ProgramLookup::InSet { portions, installed, is_executable } => {
                needs.portions.extend(portions.into_iter().filter(|other| *other != portion));
                needed = installed;
                (!is_executable).then_some(InterpreterFault::NotExecutable)
            }
            ProgramLookup::Outside(end) => match self.setting.known.program(&end) {
                Some(package) => {
                    needs.deb.extend(package.map(str::to_owned));
                    None
                }
                None => Some(InterpreterFault::Unknown {
                    distribution: self.setting.known.distribution.clone(),
                }),
            },
        };
        if by_path.iter().any(|known| known == path) {
            needs.rpm.insert(needed);
        }
        fault
    }

    /// Adds a program that `env` finds by its name: in the distribution, or among the programs of the set.
    fn add_named(&mut self, portion: usize, name: &str) -> Option<InterpreterFault> {
        if let Some(package) = self.setting.known.in_search_path(name) {
            let needs = self.portions.entry(portion).or_default();
            needs.deb.extend(package.map(str::to_owned));
            return None;
        }
        let path = format!("{}/{PROGRAM_FOLDER}/{name}", self.setting.prefix.absolute());
        self.add_program(portion, &path, &[])
    }

    fn add_loader(&mut self, linked: &LinkedFile<'_>, loader: &str) {
        let rule = self.rule(loader);
        if rule == Some(&InterpreterSchema::Ignored) {
            return self.note_rule(linked, loader, None);
        }
        let is_configured = matches!(rule, Some(InterpreterSchema::Path(path)) if path == loader);
        let fault = match self.paths.find(loader) {
            ProgramLookup::InSet { portions, is_executable, .. } => {
                let needs = self.portions.entry(linked.portion).or_default();
                needs.portions.extend(portions.into_iter().filter(|at| *at != linked.portion));
                (!is_executable).then_some(InterpreterFault::NotExecutable)
            }
            ProgramLookup::Outside(end) => {
                let is_known = self.setting.known.program(&end).is_some();
                let distribution = self.setting.known.distribution.clone();
                (!is_known).then_some(InterpreterFault::UnknownLoader { distribution })
            }
        };
        if is_configured {
            return self.note_rule(linked, loader, Some(loader));
        }
        if let Some(fault) = fault {
            self.note(linked, loader, fault);
        }
    }

    fn note(&mut self, linked: &LinkedFile<'_>, interpreter: &str, fault: InterpreterFault) {
        let needs = self.portions.entry(linked.portion).or_default();
        let files = needs.faults.entry((interpreter.to_owned(), fault)).or_default();
        files.insert(linked.path.clone());
    }

    fn note_rule(&mut self, linked: &LinkedFile<'_>, interpreter: &str, new: Option<&str>) {
        let needs = self.portions.entry(linked.portion).or_default();
        let key = (interpreter.to_owned(), new.map(str::to_owned));
        needs.configured.entry(key).or_default().insert(linked.path.clone());
    }

    /// Adds the collected needs to `linkage`. `name` gives the name of a portion, for findings.
    pub fn finish(
        self,
        name: impl Fn(usize) -> String,
        linkage: &mut Linkage,
        findings: &mut Findings,
    ) -> Result<()> {
        let has_deb = self.setting.distribution().is_some();
        for (portion, needs) in self.portions {
            needs.note(&name(portion), findings);
            linkage.needs.entry(portion).or_default().extend(needs.portions);
            let discovered = linkage.discovered.entry(portion).or_default();
            for text in needs.deb.iter().filter(|_| has_deb) {
                let relation = parse_deb(RelationKind::Depends, text).map_err(|error| {
                    Error::bug("a table of interpreters gives no relation").cause(error)
                })?;
                discovered.deb.insert(relation);
            }
            for path in needs.rpm {
                discovered.rpm.insert(plain(RelationKind::Depends, path));
            }
        }
        linkage.first_lines = self.replaced;
        Ok(())
    }
}

impl PortionNeeds {
    fn note(&self, package: &str, findings: &mut Findings) {
        for ((interpreter, fault), files) in &self.faults {
            findings.add(found::InterpreterUnresolved {
                package: package.into(),
                interpreter: interpreter.clone(),
                fault: fault.clone(),
                files: files.iter().cloned().collect(),
            });
        }
        for ((before, after), files) in &self.configured {
            findings.add(found::InterpreterSettled {
                package: package.into(),
                before: before.clone(),
                after: after.clone(),
                files: files.iter().cloned().collect(),
            });
        }
    }
}

/// The host files of a set by their paths below the prefix, to resolve paths through links.
struct SetPaths<'a> {
    prefix: &'a TreePath,
    by_path: BTreeMap<&'a str, (usize, &'a Node<HostFile>)>,
}

enum ProgramLookup {
    InSet {
        /// The portions of the file, and of the links to it.
        portions: BTreeSet<usize>,
        /// An absolute path at which a package has it: the requested one, unless a link to a folder leads there.
        installed: String,
        is_executable: bool,
    },
    /// A program outside of the set, with its absolute path.
    Outside(String),
}

impl<'a> SetPaths<'a> {
    pub fn new(portions: &'a [Portion<'a>], prefix: &'a TreePath) -> Self {
        let files = portions.iter().enumerate().flat_map(|(index, portion)| {
            let files = portion.files.iter();
            files.map(move |(path, owned)| (path.as_str(), (index, owned.node)))
        });
        Self { prefix, by_path: files.collect() }
    }

    pub fn find(&self, path: &str) -> ProgramLookup {
        let mut at = format!("/{}", resolved_names(path).join("/"));
        let asked = at.clone();
        let mut portions = BTreeSet::new();
        for _ in 0..LINK_LIMIT {
            let Some(inside) = self.inside(&at) else { break };
            if let Some((portion, next)) = self.link_on_the_way(inside) {
                portions.insert(portion);
                at = next;
                continue;
            }
            let Some((portion, Node::File { mode, .. })) = self.by_path.get(inside) else { break };
            portions.insert(*portion);
            let is_own = self.inside(&asked).is_some_and(|own| self.by_path.contains_key(own));
            let installed = if is_own { asked } else { at.clone() };
            let is_executable = file_mode(*mode) & 0o111 != 0;
            return ProgramLookup::InSet { portions, installed, is_executable };
        }
        ProgramLookup::Outside(at)
    }

    /// An absolute path below the prefix, relative to it.
    fn inside<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix('/')?.strip_prefix(self.prefix.as_str())?.strip_prefix('/')
    }

    /// The portion of the first link on the way to `inside`, and the absolute path with that link resolved.
    fn link_on_the_way(&self, inside: &str) -> Option<(usize, String)> {
        let ends = inside.match_indices('/').map(|(at, _)| at).chain([inside.len()]);
        for end in ends {
            let (folder, rest) = inside.split_at_checked(end)?;
            if let Some((portion, Node::Link { target })) = self.by_path.get(folder) {
                let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
                let next = format!("/{}/{above}/{target}/{rest}", self.prefix);
                return Some((*portion, format!("/{}", resolved_names(&next).join("/"))));
            }
        }
        None
    }
}
