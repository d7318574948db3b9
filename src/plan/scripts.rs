//! Maintainer scripts: what is done where a package is installed, upgraded and removed.
//!
//! | what | `.deb` | `.rpm` |
//! |---|---|---|
//! | a link on the way to the prefix is refused | `preinst` | `%pre` |
//! | the loader's cache is made anew | `triggers`: `activate-noawait ldconfig` | `%post`, `%postun`: `/sbin/ldconfig` |
//! | programs are alternatives | `postinst`, `prerm` | `%post`, `%postun` |
//! | the loader's configuration follows a moved prefix | a `.deb` is not moved | `%post` of the common package |
//!
//! rpm distributions run ldconfig by a file trigger of glibc's, but only for the system's own
//! folders, so packages below `/opt` have to ask for it.
//!
//! Source: Debian policy 6.5 and 8.1.1, update-alternatives(1), rpm's manual on relocatable
//! packages.

use minijinja::context;

use super::common;
use super::drafts::Draft;
use super::package::{Format, Relation, RelationKind};
use super::setting::Setting;
use crate::config::Alternatives;
use crate::error::Result;
use crate::report::{Code, Finding, Findings};
use crate::tree::{Node, TreePath};

/// What makes the loader's cache.
const LDCONFIG: &str = "/sbin/ldconfig";

/// What keeps alternatives; distributions that are packaged as rpm have it at this path.
const UPDATE_ALTERNATIVES: &str = "/usr/sbin/update-alternatives";

/// The folder of programs, relative to the prefix.
const PROGRAM_FOLDER: &str = "bin";

/// The trigger that Debian's libc waits for.
const TRIGGER: &str = "activate-noawait ldconfig";

/// An rpm scriptlet: phase, interpreter and text.
type Scriptlet = (String, (String, String));

/// The scripts of one package.
pub(super) struct Scripts<'a> {
    setting: &'a Setting<'a>,
    draft: &'a Draft,
    programs: Vec<&'a str>,
    /// Whether the loader's cache changes with the package.
    loader: bool,
}

impl<'a> Scripts<'a> {
    pub fn new(setting: &'a Setting<'a>, draft: &'a Draft) -> Self {
        let programs = match setting.config.alternatives {
            Alternatives::None => Vec::new(),
            Alternatives::Programs => programs(draft).filter(|name| is_plain(name)).collect(),
        };
        let loader = common::is_common(draft) || common::has_linker_libraries(setting, draft);
        Self { setting, draft, programs, loader }
    }

    /// Lines of a `.deb`'s `triggers`.
    pub fn triggers(&self) -> Vec<String> {
        self.loader.then(|| TRIGGER.to_owned()).into_iter().collect()
    }

    /// The maintainer scripts of a `.deb`.
    pub fn deb(&self) -> Result<Vec<(String, String)>> {
        let mut scripts = Vec::new();
        let mut add = |name: &str, text| scripts.push((name.to_owned(), text));
        if self.is_guarded() {
            add("preinst", self.guard(Format::Deb)?);
        }
        if !self.programs.is_empty() {
            add("postinst", self.render("alternatives-postinst")?);
            add("prerm", self.render("alternatives-prerm")?);
        }
        Ok(scripts)
    }

    /// The scriptlets of an `.rpm`.
    pub fn rpm(&self) -> Result<Vec<Scriptlet>> {
        let mut scripts = Vec::new();
        if self.is_guarded() {
            // In %pre and not in %pretrans: that one has to be Lua where no shell is installed
            // yet, and the dependency on `<lua>` that it brings is one that nothing satisfies.
            scripts.push(shell("%pre", self.guard(Format::Rpm)?));
        }
        let mut post = String::new();
        let mut postun = String::new();
        if common::is_common(self.draft) {
            post.push_str(&self.render("loader-post")?);
        }
        if !self.programs.is_empty() {
            post.push_str(&self.render("alternatives-post")?);
            postun.push_str(&self.render("alternatives-postun")?);
        }
        scripts.extend(self.with_loader("%post", post));
        scripts.extend(self.with_loader("%postun", postun));
        Ok(scripts)
    }

    /// What the programs of an `.rpm`'s scriptlets need beyond their interpreters.
    pub fn rpm_needs(&self) -> Vec<Relation> {
        let alternatives = (!self.programs.is_empty()).then_some(UPDATE_ALTERNATIVES);
        let in_shell = self.loader && (alternatives.is_some() || common::is_common(self.draft));
        let needed = in_shell.then_some(LDCONFIG).into_iter().chain(alternatives);
        let relation = |name: &str| Relation {
            kind: RelationKind::Depends,
            name: name.to_owned(),
            version: None,
        };
        needed.map(relation).collect()
    }

    /// `text` with the loader's cache behind it; without text the program alone.
    fn with_loader(&self, phase: &str, mut text: String) -> Option<Scriptlet> {
        match (self.loader, text.is_empty()) {
            (false, true) => None,
            (false, false) => Some(shell(phase, text)),
            (true, true) => Some((phase.to_owned(), (LDCONFIG.to_owned(), String::new()))),
            (true, false) => {
                text.push_str(&format!("{LDCONFIG}\n"));
                Some(shell(phase, text))
            }
        }
    }

    /// Only packages with files below the prefix can write through a link.
    fn is_guarded(&self) -> bool {
        !self.draft.files.is_empty()
    }

    fn guard(&self, format: Format) -> Result<String> {
        let name = self.draft.names.of(format);
        self.setting.texts.guard(name, &self.setting.prefix, format)
    }

    fn render(&self, script: &str) -> Result<String> {
        let file = common::loader_file(self.setting, &self.draft.names.rpm)?;
        let programs: Vec<String> = self.programs.iter().map(|name| (*name).to_owned()).collect();
        let values = context! {
            prefix => self.setting.prefix.absolute(),
            libdir => self.setting.folders.libraries.as_str(),
            programs,
            priority => self.setting.version.priority(),
            file => format!("/{file}"),
        };
        self.setting.texts.script(script, values)
    }
}

fn shell(phase: &str, text: String) -> Scriptlet {
    (phase.to_owned(), ("/bin/sh".to_owned(), text))
}

/// Notes programs that cannot be alternatives.
pub(super) fn note_odd_programs(setting: &Setting<'_>, drafts: &[Draft], findings: &mut Findings) {
    if setting.config.alternatives == Alternatives::None {
        return;
    }
    for draft in drafts {
        for name in programs(draft).filter(|name| !is_plain(name)) {
            let message = "has a name that update-alternatives or a shell could misread, and is \
                           no alternative";
            let subject = format!("{} of {}", name.escape_debug(), draft.names.deb);
            findings.add(Finding::new(Code::ProgramWithoutAlternative, subject, message));
        }
    }
}

/// The programs that users run, and links to programs, by name.
fn programs(draft: &Draft) -> impl Iterator<Item = &str> {
    let files = draft.files.iter().filter(|_| draft.is_main);
    let inside = files
        .filter(|(path, _)| path.parent().is_some_and(|folder| folder.as_str() == PROGRAM_FOLDER));
    let runs = |node: &Node<_>| match node {
        Node::File { mode, .. } => mode & 0o111 != 0,
        Node::Link { .. } => true,
        Node::Directory { .. } => false,
    };
    inside.filter(move |(_, node)| runs(node)).map(|(path, _): (&TreePath, _)| path.name())
}

fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain)
}
