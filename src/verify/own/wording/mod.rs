//! The scripts that a package has to have, made of the templates anew.
//!
//! Nearly all that scripts say follows from what a package installs: programs, libraries, debug files, the
//! loader's file, and the install prefix. What an earlier version had is known from the script alone; it
//! is taken over where the package has at that path what the script makes of it ([`changes`]).

mod changes;

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Environment, Value, context};
use rockpack_base::error::{Error, Result};
use rockpack_base::tree::TreePath;

use super::facts::Class;
use super::installed::{Installed, InstalledNode};
use super::maintainer::InstalledScript;
use crate::package::{Format, RoleKind, Version, system_folders, templates};
use changes::{DebChanges, RpmChanges};

/// The beginning of every maintainer script of a `.deb`.
const START: &str = "#!/bin/sh\nset -e\n";

/// How the loader's file begins where rpm moved the packages to.
const MOVED: &str =
    "# Written where rpm moved the packages to; as it is, the next version writes it anew:";

/// The program that makes the loader's cache.
pub(in crate::verify) const LDCONFIG: &str = "/sbin/ldconfig";

/// The line by which a `.deb` has the loader's cache made anew.
const TRIGGER: &str = "activate-noawait ldconfig";

/// The folder of the loader's configuration.
const LOADER_FOLDER: &str = "/etc/ld.so.conf.d/";

/// The command that registers alternatives, as scripts call it.
const ALTERNATIVES: &str = "update-alternatives --install ";

/// The templates of each phase of a `.deb`, in the order of its script.
const DEB_PARTS: [(&str, [&str; 3]); 3] = [
    ("postinst", ["kinds", "alternatives", "debug"]),
    ("prerm", ["", "alternatives", "debug"]),
    ("postrm", ["kinds", "alternatives", ""]),
];

/// The facts of a set that the scripts of its packages state.
pub(in crate::verify) struct SetWords<'a> {
    /// The install prefix, absolute.
    prefix: &'a str,
    /// The loader's file, where a package of the set has one.
    loader: Option<LoaderFile<&'a str>>,
    /// Whether programs are alternatives.
    alternatives: bool,
}

impl<'a> SetWords<'a> {
    /// Reads the facts of the packages of one format.
    pub(in crate::verify) fn of(
        prefix: &'a str,
        packages: impl IntoIterator<Item = &'a Installed>,
    ) -> Self {
        let mut words = Self { prefix, loader: None, alternatives: false };
        for package in packages {
            words.loader = words.loader.or_else(|| loader(package, prefix));
            words.alternatives |= has_alternatives(package);
        }
        words
    }

    /// The scripts that a build writes for `package`; none where the prefix is one that no build takes.
    pub(in crate::verify) fn scripts(&self, package: &Installed) -> Result<Vec<InstalledScript>> {
        let path = self.prefix.strip_prefix('/').and_then(|path| TreePath::new(path).ok());
        let Some(path) = path.filter(|path| is_plain_path(path.as_str())) else {
            return Ok(Vec::new());
        };
        let own = PackageWords::new(self, package, path)?;
        match package.format {
            Some(Format::Deb) => own.deb(),
            Some(Format::Rpm) => own.rpm(),
            None => Ok(Vec::new()),
        }
    }
}

/// The loader's file, which names a folder of libraries.
#[derive(Debug, Clone, Copy, Default)]
struct LoaderFile<T> {
    /// Absolute path of the file.
    file: T,
    /// The folder of libraries, below the prefix.
    libdir: T,
}

/// The loader's file of a package that has one.
fn loader<'a>(package: &'a Installed, prefix: &str) -> Option<LoaderFile<&'a str>> {
    package.files().find_map(|(path, facts)| {
        let Class::LoaderFolders(folders) = &facts.class else { return None };
        let [folder] = folders.as_slice() else { return None };
        let libdir = folder.strip_prefix(prefix)?.strip_prefix('/')?;
        let is_own = path.starts_with(LOADER_FOLDER) && is_plain_path(&path[1..]);
        (is_own && is_plain_path(libdir)).then_some(LoaderFile { file: path, libdir })
    })
}

fn has_alternatives(package: &Installed) -> bool {
    package.scripts.iter().any(|script| script.text.contains(ALTERNATIVES))
}

/// Whether a path has no empty, `.` or `..` parts, and every shell takes it for one word.
fn is_plain_path(path: &str) -> bool {
    TreePath::new(path).is_ok()
        && path.chars().all(|c| c.is_ascii_alphanumeric() || "/._+~-".contains(c))
}

/// The words in the scripts of one package.
struct PackageWords<'a> {
    package: &'a Installed,
    prefix: &'a str,
    path: TreePath,
    /// The known parts of the loader's file.
    loader: Option<LoaderFile<&'a str>>,
    /// Whether the package has the loader's file.
    is_common: bool,
    /// Whether it has files below the prefix.
    is_guarded: bool,
    programs: Vec<&'a str>,
    templates: Environment<'static>,
}

impl<'a> PackageWords<'a> {
    fn new(set: &SetWords<'a>, package: &'a Installed, path: TreePath) -> Result<Self> {
        let prefix = set.prefix;
        let own = loader(package, prefix);
        let asks =
            has_alternatives(package) || (set.alternatives && package.role == Some(RoleKind::Host));
        let below = format!("{prefix}/");
        let next = package.paths.range(below.clone()..).next();
        Ok(Self {
            package,
            prefix,
            path,
            loader: own.or(set.loader),
            is_common: own.is_some(),
            is_guarded: next.is_some_and(|(path, _)| path.starts_with(&below)),
            programs: if asks { programs(package, prefix) } else { Vec::new() },
            templates: templates::environment().map_err(fault)?,
        })
    }

    fn deb(&self) -> Result<Vec<InstalledScript>> {
        let changes = DebChanges::of(self.package, self.prefix);
        let mut texts = BTreeMap::new();
        let preinst = match self.is_guarded {
            true => self.render("guard", self.guard(Format::Deb))?,
            false => START.to_owned(),
        };
        texts.insert("preinst", preinst + &self.kinds("preinst", &changes)?);
        for (phase, parts) in DEB_PARTS {
            let mut text = START.to_owned();
            for part in parts {
                text += &match part {
                    "kinds" => self.kinds(phase, &changes)?,
                    "alternatives" if !self.programs.is_empty() => self.part(part, phase)?,
                    "debug" if self.has_debug_files() => self.part(part, phase)?,
                    _ => String::new(),
                };
            }
            texts.insert(phase, text);
        }
        texts.retain(|_, text| text != START);
        if self.is_loaded() {
            texts.insert("triggers", TRIGGER.to_owned());
        }
        Ok(texts.into_iter().map(|(phase, text)| script(phase, "", text)).collect())
    }

    fn rpm(&self) -> Result<Vec<InstalledScript>> {
        let mut scripts = Vec::new();
        let changes = RpmChanges::of(self.package, self.prefix, self.loader);
        if let Some(changes) = changes.filter(RpmChanges::are_some) {
            let values = changes.values(self.prefix, system_folders::is_add_on(&self.path), MOVED);
            scripts.push(script("%pretrans", "<lua>", self.render("kinds-pretrans", values)?));
        }
        if self.is_guarded {
            let text = self.render("guard", self.guard(Format::Rpm))?;
            scripts.push(script("%pre", "/bin/sh", text));
        }
        let (mut post, mut postun) = (String::new(), String::new());
        for (part, is_there) in
            [("loader", self.is_common), ("alternatives", !self.programs.is_empty())]
        {
            if is_there {
                post += &self.part(part, "post")?;
                postun += &self.part(part, "postun")?;
            }
        }
        if self.is_guarded && !system_folders::of_vendors_above(&self.path).is_empty() {
            postun += &self.part("folders", "postun")?;
        }
        for (phase, text) in [("%post", post), ("%postun", postun)] {
            match (self.is_loaded(), text.is_empty()) {
                (false, true) => {}
                (false, false) => scripts.push(script(phase, "/bin/sh", text)),
                (true, true) => scripts.push(script(phase, LDCONFIG, text)),
                (true, false) => {
                    scripts.push(script(phase, "/bin/sh", format!("{text}{LDCONFIG}\n")));
                }
            }
        }
        Ok(scripts)
    }

    /// The values of the script that refuses links in the prefix.
    fn guard(&self, format: Format) -> Value {
        let (package, prefix) = (&self.package.name, self.prefix);
        let system = system_folders::search_ends(&self.path, format).join(" | ");
        let (shebang, root, path) = match format {
            Format::Deb => (true, "\"${DPKG_ROOT:-}\"", format!("\"$root{prefix}\"")),
            Format::Rpm => (false, "\"\"", format!("\"${{RPM_INSTALL_PREFIX:-{prefix}}}\"")),
        };
        context! { package, shebang, root, path, system }
    }

    fn kinds(&self, phase: &str, changes: &DebChanges) -> Result<String> {
        let Installed { name, version, .. } = self.package;
        self.render(&format!("kinds-{phase}"), changes.values(name, version))
    }

    fn part(&self, what: &str, phase: &str) -> Result<String> {
        let LoaderFile { file, libdir } = self.loader.unwrap_or_default();
        let programs: Vec<String> = self.programs.iter().map(|it| (*it).to_owned()).collect();
        let values = context! {
            package => &self.package.name,
            prefix => self.prefix,
            libdir => libdir.to_owned(),
            programs,
            priority => priority(&self.package.version),
            file => file.to_owned(),
            moved => MOVED,
            folders => system_folders::of_vendors_above(&self.path),
        };
        self.render(&format!("{what}-{phase}"), values)
    }

    fn render(&self, name: &str, values: Value) -> Result<String> {
        let template = templates::SCRIPTS.iter().find(|(known, _)| *known == name);
        let (_, template) =
            template.ok_or_else(|| Error::bug(format!("there is no template `{name}`")))?;
        self.templates.render_str(template, values).map_err(fault)
    }

    /// Whether the loader's cache changes with the package. Where no package of the set names the folder
    /// of libraries, the script says whether it is a folder of this package.
    fn is_loaded(&self) -> bool {
        match self.loader {
            _ if self.is_common => true,
            Some(LoaderFile { libdir, .. }) => {
                let libraries = format!("{}/{libdir}", self.prefix);
                self.has_library_in(|folder| folder == libraries)
            }
            None => {
                let below = format!("{}/", self.prefix);
                self.asks_for_loader() && self.has_library_in(|folder| folder.starts_with(&below))
            }
        }
    }

    fn has_library_in(&self, is_folder: impl Fn(&str) -> bool) -> bool {
        self.package.paths.iter().any(|(path, node)| {
            let place = path.rsplit_once('/');
            place.is_some_and(|(folder, name)| is_folder(folder) && is_library(name, node))
        })
    }

    /// Whether a script of the package has the loader's cache made anew.
    fn asks_for_loader(&self) -> bool {
        let scripts = self.package.scripts.iter();
        let mut texts = scripts.flat_map(|script| [&script.interpreter, &script.text]);
        texts.any(|text| text.lines().any(|line| [LDCONFIG, TRIGGER].contains(&line)))
    }

    fn has_debug_files(&self) -> bool {
        let folder = format!("/usr/lib/debug/{}/.build-id/", self.package.name);
        self.package
            .paths
            .range(folder.clone()..)
            .next()
            .is_some_and(|(path, _)| path.starts_with(&folder))
    }
}

fn script(phase: &str, interpreter: &str, text: String) -> InstalledScript {
    InstalledScript { phase: phase.to_owned(), interpreter: interpreter.to_owned(), text }
}

/// Whether ldconfig looks at what has this name.
fn is_library(name: &str, node: &InstalledNode) -> bool {
    let is_one = match node {
        InstalledNode::File { .. } => name.ends_with(".so") || name.contains(".so."),
        InstalledNode::Link { .. } => name.contains(".so."),
        InstalledNode::Directory { .. } | InstalledNode::Special { .. } => false,
    };
    name.starts_with("lib") && is_one
}

/// The programs that users run, and links to programs, by name. A library among them has another mode in a
/// `.deb` than in the artifact: the script says whether that could be run.
fn programs<'a>(package: &'a Installed, prefix: &str) -> Vec<&'a str> {
    let folder = format!("{prefix}/bin/");
    let lines = package.scripts.iter().flat_map(|script| script.text.lines());
    let said: BTreeSet<&str> = lines
        .filter_map(|line| line.split_once(" --install /usr/bin/")?.1.split(' ').next())
        .collect();
    let all = package.paths.range(folder.clone()..);
    let inside = all.map_while(|(path, node)| Some((path.strip_prefix(&folder)?, node)));
    let programs = inside.filter(|(name, node)| is_program_name(name) && is_run(name, node, &said));
    programs.map(|(name, _)| name).collect()
}

fn is_run(name: &str, node: &InstalledNode, said: &BTreeSet<&str>) -> bool {
    match node {
        InstalledNode::File { mode, .. } if mode & 0o111 != 0 => true,
        InstalledNode::File { facts, .. } => {
            matches!(facts.class, Class::Host(_)) && said.contains(name)
        }
        InstalledNode::Link { .. } => true,
        InstalledNode::Directory { .. } | InstalledNode::Special { .. } => false,
    }
}

/// Whether programs of that name may be alternatives.
fn is_program_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
}

/// The priority of alternatives of a package of this full version.
fn priority(version: &str) -> u32 {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    let (upstream, release) = version.split_once('-').unwrap_or((version, ""));
    Version::new(upstream, release).map_or(0, |version| version.priority())
}

fn fault(error: minijinja::Error) -> Error {
    Error::bug("a template of scripts cannot be rendered").cause(error)
}

#[cfg(test)]
mod tests;
