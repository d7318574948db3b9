//! Maintainer scripts: the steps when a package is installed, upgraded or removed.
//!
//! | what | `.deb` | `.rpm` |
//! |---|---|---|
//! | a link in the prefix, below the system's own folders, is refused | `preinst` | `%pre`, in Lua |
//! | the loader's cache is rebuilt | `triggers`: `activate-noawait ldconfig` | `%post`, `%postun`: `/sbin/ldconfig` |
//! | programs are alternatives | `postinst`, `prerm`, `postrm` | `%post`, `%postun` |
//! | debug files are found by their build-ids | `postinst`, `prerm` | packages share the files |
//! | the loader's configuration follows a moved prefix | a `.deb` is not moved | `%post`, `%postun` of the common package |
//! | the link to the newest installed series | `postinst`, `postrm` of the common package | `%post`, `%postun` |
//! | a GPU of the machine without device code is reported | `triggers` and `postinst` of the common package | `%transfiletriggerin` |
//! | folders above the prefix are removed when empty | by dpkg | `%postun`; in Lua, if it has no other step |
//! | folders become links, and links folders | `updates::path_type_changes` | `updates::path_type_changes` |
//!
//! Kernel packages and metapackages need no program, so rpm may install them before a shell: their scripts are in
//! Lua, which is built into rpm.
//!
//! rpm distributions run ldconfig by a file trigger of glibc's, but only for the system's own folders, so
//! packages below `/opt` have to ask for it. Triggers watch the folder of kernel archives, where packages with
//! device code and those that need it have files; in a moved prefix rpm finds none there.
//!
//! Source: Debian policy 6.5 and 8.1.1, update-alternatives(1), rpm's manual on relocatable packages.

use minijinja::{Value, context};
use rockpack_core::error::Result;
use rockpack_core::tree::Node;

use crate::config::Alternatives;
use crate::drafts::Draft;
use crate::loader::{self, SERIES_MARKER};
use crate::relations::plain;
use crate::settings::PlanSettings;
use rockpack_package::{Format, Relation, RelationKind};
use rockpack_report::{Findings, found};

const LDCONFIG: &str = "/sbin/ldconfig";

/// First line of the loader's file after the prefix was moved; the second line names the folder. Packages
/// recognise a file that they may rewrite by the whole first line.
pub(crate) const MOVED: &str =
    "# Libraries of packages that rpm relocated. An update rewrites this file unless you edit it:";

/// The folder of programs, relative to the prefix, which is in users' `PATH`.
pub(crate) const PROGRAM_FOLDER: &str = "bin";

pub(crate) const DEB_START: &str = "#!/bin/sh\nset -e\n";

/// An rpm scriptlet: phase, interpreter and text.
type PlannedScriptlet = (String, (String, String));

pub(crate) struct Scripts<'a> {
    setting: &'a PlanSettings,
    draft: &'a Draft,
    programs: Vec<&'a str>,
    /// Whether the loader's cache changes with the package.
    loader: bool,
}

impl<'a> Scripts<'a> {
    pub fn new(setting: &'a PlanSettings, draft: &'a Draft) -> Self {
        let programs = match setting.config.keys.alternatives {
            Alternatives::None => Vec::new(),
            Alternatives::Programs => programs(draft).filter(|name| is_plain(name)).collect(),
        };
        let loader = draft.is_common || loader::has_linker_libraries(setting, draft);
        Self { setting, draft, programs, loader }
    }

    /// Lines of a `.deb`'s `triggers`: the trigger that Debian's libc waits for.
    pub fn triggers(&self) -> Vec<String> {
        let of_loader = self.loader.then(|| "activate-noawait ldconfig".to_owned());
        let of_gpus = self.has_gpu_script(Format::Deb);
        let of_gpus = of_gpus.then(|| format!("interest-noawait {}", self.watched_folder()));
        of_loader.into_iter().chain(of_gpus).collect()
    }

    pub fn deb(&self) -> Result<Vec<(String, String)>> {
        let mut scripts = Vec::new();
        if self.is_guarded() {
            scripts.push(("preinst".to_owned(), self.render("guard")?));
        }
        for phase in ["postinst", "prerm", "postrm"] {
            let mut text = String::new();
            if !self.programs.is_empty() {
                text.push_str(&self.render(&format!("alternatives-{phase}"))?);
            }
            if phase != "prerm" {
                text.push_str(&self.series_link(Format::Deb)?);
            }
            if self.has_gpu_script(Format::Deb) && phase == "postinst" {
                text.push_str(&self.render("gpu-postinst")?);
            }
            if !self.draft.extras.build_ids.is_empty() && phase != "postrm" {
                text.push_str(&self.render(&format!("debug-{phase}"))?);
            }
            if !text.is_empty() {
                scripts.push((phase.to_owned(), format!("{DEB_START}{text}")));
            }
        }
        Ok(scripts)
    }

    pub fn rpm(&self) -> Result<Vec<PlannedScriptlet>> {
        let mut scripts = Vec::new();
        if self.is_guarded() {
            // Not in %pretrans, where rpm does not pass the moved prefix.
            let system = self.setting.prefix.system_folders(Format::Rpm);
            let system: Vec<String> = system.iter().map(|folder| lua_text(folder)).collect();
            let values = context! { package => lua_text(&self.draft.names.rpm), system };
            scripts.push(lua_scriptlet(self.setting, "%pre", "guard-pre", values)?);
        }
        let mut post = String::new();
        let mut postun = String::new();
        if self.draft.is_common {
            post.push_str(&self.render("loader-post")?);
            postun.push_str(&self.render("loader-postun")?);
        }
        // rpm runs the old version's %postun after the new one's %post, so both check what is installed.
        let link = self.series_link(Format::Rpm)?;
        post.push_str(&link);
        postun.push_str(&link);
        if !self.programs.is_empty() {
            post.push_str(&self.render("alternatives-post")?);
            postun.push_str(&self.render("alternatives-postun")?);
        }
        let folders: Vec<String> = self.folders().iter().map(|folder| lua_text(folder)).collect();
        if !folders.is_empty() && self.runs_shell() {
            postun.push_str(&self.render("folders-postun")?);
        } else if !folders.is_empty() {
            let values = context! { prefix => lua_text(&self.setting.prefix.absolute()), folders };
            scripts.push(lua_scriptlet(self.setting, "%postun", "empty-folders-postun", values)?);
        }
        scripts.extend(self.with_loader("%post", post));
        scripts.extend(self.with_loader("%postun", postun));
        if self.has_gpu_script(Format::Rpm) {
            let trigger = format!("%transfiletriggerin -- {}", self.watched_folder());
            let script = loader::gpu_script(&self.draft.names.rpm)?;
            for (phase, is_single) in [(trigger.as_str(), ""), ("%posttrans", "yes")] {
                let values = context! { script => format!("/{script}"), is_single };
                scripts.push(shell(phase, self.setting.texts.render("gpu-rpm", values)?));
            }
        }
        Ok(scripts)
    }

    /// Dependencies of an `.rpm`'s scriptlets beyond their interpreters.
    pub fn rpm_needs(&self) -> Vec<Relation> {
        let (has_programs, is_common) = (!self.programs.is_empty(), self.draft.is_common);
        let has_link = is_common && self.setting.series_link.is_some();
        let removes_folders = self.runs_shell() && !self.folders().is_empty();
        let in_shell = self.loader && (has_programs || is_common || removes_folders);
        let possible: [(bool, &[&str]); 5] = [
            (in_shell, &[LDCONFIG]),
            // rpm-based distributions have it at this path.
            (has_programs, &["/usr/sbin/update-alternatives"]),
            (is_common, &["/usr/bin/rm"]),
            (removes_folders, &["/usr/bin/rmdir"]),
            // They read and replace the link, and read the administrator's choice.
            (has_link, &["/usr/bin/ln", "/usr/bin/mv", "/usr/bin/readlink", "/usr/bin/cat"]),
        ];
        let needed = possible.into_iter().filter(|(is_needed, _)| *is_needed);
        let names = needed.flat_map(|(_, names)| names);
        names.map(|name| plain(RelationKind::Depends, *name)).collect()
    }

    /// Whether `%postun` does what Lua cannot: rpm runs one script in each phase.
    fn runs_shell(&self) -> bool {
        self.loader || self.draft.is_common || !self.programs.is_empty()
    }

    /// Appends the loader's cache update to `text`; without text, runs the program directly.
    fn with_loader(&self, phase: &str, text: String) -> Option<PlannedScriptlet> {
        match (self.loader, text.is_empty()) {
            (false, true) => None,
            (false, false) => Some(shell(phase, text)),
            (true, true) => Some((phase.to_owned(), (LDCONFIG.to_owned(), String::new()))),
            (true, false) => Some(shell(phase, format!("{text}{LDCONFIG}\n"))),
        }
    }

    fn has_gpu_script(&self, format: Format) -> bool {
        self.draft.extras.gpu_scripts.iter().any(|entry| entry.formats.has(format))
    }

    /// The absolute path of the folder whose changes trigger a check of the GPUs: the prefix, or only the folder of
    /// kernel archives if the prefix is not below `/opt`.
    fn watched_folder(&self) -> String {
        let (prefix, config) = (&self.setting.prefix, &self.setting.config);
        let absolute = prefix.absolute();
        if prefix.is_add_on() { absolute } else { format!("{absolute}/{}", config.folders.kernels) }
    }

    /// The folders above the prefix that no other package owns, the innermost first.
    fn folders(&self) -> Vec<String> {
        if self.is_guarded() { self.setting.prefix.folders_above() } else { Vec::new() }
    }

    /// Whether the package needs the guard: it has files below the prefix, so it can write through a link.
    fn is_guarded(&self) -> bool {
        !self.draft.files.is_empty()
    }

    /// The script of the common package that makes the link to the newest installed series, moves it or removes
    /// it; empty if the set has no such link.
    fn series_link(&self, format: Format) -> Result<String> {
        let link = self.setting.series_link.as_deref().filter(|_| self.draft.is_common);
        let Some(link) = link else { return Ok(String::new()) };
        let (folder, name) = link.rsplit_once('/').unwrap_or_default();
        let values = context! {
            link,
            folder,
            name,
            root => format.select("\"${DPKG_ROOT:-}\"", ""),
            choice => format!("/etc{link}-series"),
            marker => SERIES_MARKER,
            package => self.draft.names.of(format),
        };
        self.setting.texts.render("series-link", values)
    }

    fn render(&self, script: &str) -> Result<String> {
        let file = loader::loader_file(self.setting, &self.draft.names.rpm)?;
        let gpu_script = loader::gpu_script(&self.draft.names.deb)?;
        let values = context! {
            package => &self.draft.names.deb,
            prefix => self.setting.prefix.absolute(),
            system => self.setting.prefix.system_folders(Format::Deb).join(" | "),
            libdir => self.setting.config.folders.libraries.as_str(),
            programs => self.programs.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(),
            priority => self.setting.version.priority(),
            file => format!("/{file}"),
            moved => MOVED,
            folders => self.folders(),
            watched => self.watched_folder(),
            script => format!("/{gpu_script}"),
        };
        self.setting.texts.render(script, values)
    }
}

fn shell(phase: &str, text: String) -> PlannedScriptlet {
    (phase.to_owned(), ("/bin/sh".to_owned(), text))
}

/// A scriptlet in Lua from the template `script`, after lines that set `prefix` to where rpm put the packages.
pub(crate) fn lua_scriptlet(
    setting: &PlanSettings,
    phase: &str,
    script: &str,
    values: Value,
) -> Result<PlannedScriptlet> {
    let loader_file = loader::loader_file(setting, &setting.names.system()?.rpm)?;
    let place = context! {
        prefix => lua_text(&setting.prefix.absolute()),
        is_moved => setting.prefix.is_add_on(),
        file => lua_text(&format!("/{loader_file}")),
        moved => lua_text(&format!("{MOVED} ")),
        libdir => lua_text(&format!("/{}", setting.config.folders.libraries)),
    };
    let text =
        setting.texts.render("lua-prefix", place)? + &setting.texts.render(script, values)?;
    Ok((phase.to_owned(), ("<lua>".to_owned(), text)))
}

/// `text`, which has no control characters, quoted as a Lua string.
pub(crate) fn lua_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

pub(crate) fn note_odd_programs(setting: &PlanSettings, drafts: &[Draft], findings: &mut Findings) {
    if setting.config.keys.alternatives == Alternatives::None {
        return;
    }
    for draft in drafts {
        for name in programs(draft).filter(|name| !is_plain(name)) {
            let (program, package) = (name.to_owned(), draft.names.deb.as_str().into());
            findings.add(found::ProgramWithoutAlternative { program, package });
        }
    }
}

/// The programs that users run, and links to programs, by name.
fn programs(draft: &Draft) -> impl Iterator<Item = &str> {
    let files = draft.files.iter().filter(|_| draft.is_main);
    let inside = files.filter(|(path, _)| path.folder() == Some(PROGRAM_FOLDER));
    let run = inside.filter(|(_, node)| match node {
        Node::File { mode, .. } => mode & 0o111 != 0,
        Node::Link { .. } => true,
        Node::Directory { .. } => false,
    });
    run.map(|(path, _)| path.name())
}

fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
}
