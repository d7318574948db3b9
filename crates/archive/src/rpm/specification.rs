//! The content of a package's header as values, before they become tags.
//!
//! Refused: names, versions and texts that would change the structure of the header. Scriptlets and the changelog are
//! texts of the header that rpm runs or shows:
//!
//! ```text
//! 1023 PREIN …    the text of a scriptlet; 1085 PREINPROG …, its interpreter, with arguments
//! 5076 TRANSFILETRIGGERSCRIPTS …   the same of a file trigger, one element each: 5077 its interpreter, 5079 the
//!                                 folder that it watches; numbers of no meaning with a single trigger
//! 1080 CHANGELOGTIME, 1081 CHANGELOGNAME, 1082 CHANGELOGTEXT   one element per entry, newest first
//! ```

use derive_more::Deref;
use rpm::{DependencyFlags, IndexData, IndexTag};
use serde::Serialize;

use super::dependencies::LISTS;
use super::header::{Tag, repeated_text, text};
use super::signature::HeaderSigner;
use crate::payload::PayloadEntry;
use crate::relation::Relation;
use rockpack_core::compression::{Compression, Workers};
use rockpack_core::error::{Error, Result};

/// The priority that rpmbuild gives file triggers.
const TRIGGER_PRIORITY: u32 = 1_000_000;

/// Everything of a package that only an `.rpm` has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RpmControl {
    pub name: String,
    pub epoch: Option<u32>,
    pub version: String,
    pub release: String,
    /// `x86_64` or `noarch`.
    pub arch: String,
    /// Group tag, e.g. `System Environment/Libraries`.
    pub group: String,
    pub license: String,
    pub vendor: Option<String>,
    pub packager: Option<String>,
    /// Relations. Emission adds the package's own name-version Provides.
    pub relations: Vec<Relation>,
    /// Relations that rpmbuild would itself find in the files, marked as such.
    pub discovered: Vec<Relation>,
    /// Relocatable prefixes, e.g. `/opt/rocm-7.1`.
    pub prefixes: Vec<String>,
    /// Name in a spec file (`%pre`, `%transfiletriggerin -- /folder`) → interpreter and text of a scriptlet.
    pub scripts: Vec<(String, (String, String))>,
    /// The changelog, the newest entry first.
    pub changes: Vec<RpmChange>,
}

impl RpmControl {
    /// The full version, `[epoch:]version-release`.
    pub fn evr(&self) -> String {
        let epoch = self.epoch.map(|epoch| format!("{epoch}:")).unwrap_or_default();
        format!("{epoch}{}-{}", self.version, self.release)
    }

    pub(super) fn all_relations(&self) -> impl Iterator<Item = &Relation> + Clone {
        self.relations.iter().chain(&self.discovered)
    }

    /// The name of the package file, without the epoch, like rpmbuild.
    pub fn file_name(&self) -> String {
        format!("{}-{}-{}.{}.rpm", self.name, self.version, self.release, self.arch)
    }
}

/// An `.rpm` without the content of its files.
#[derive(Debug, Clone, Deref)]
pub struct RpmSpecification {
    #[deref]
    pub control: RpmControl,
    pub summary: String,
    /// Description, in lines joined by line feeds.
    pub description: String,
    pub url: Option<String>,
    /// The scripts of `control` as scriptlets, at most one per phase.
    pub scriptlets: Vec<Scriptlet>,
    pub entries: Vec<PayloadEntry>,
    /// Modification time of every entry, seconds since 1970.
    pub mtime: u32,
    /// BUILDTIME, seconds since 1970.
    pub build_time: u32,
    /// The signer of the header; `None` leaves it unsigned.
    pub signer: Option<HeaderSigner>,
    pub compression: Compression,
    pub workers: Workers,
}

impl RpmSpecification {
    pub(super) fn has_large_files(&self) -> bool {
        self.entries.iter().any(|entry| entry.size > u64::from(u32::MAX))
    }

    /// Refuses values that would change the structure of the header, and values that rpm refuses.
    pub(super) fn check(&self) -> Result<()> {
        let mut faults = Vec::new();
        for (what, text) in [("name", &self.name), ("arch", &self.arch)] {
            if text.is_empty() || !is_word(text) {
                faults.push(fault(format!("{what} `{}` is not one word", text.escape_debug())));
            }
        }
        for (what, text) in [("version", &self.version), ("release", &self.release)] {
            if text.is_empty() || !is_word(text) || text.contains(['-', ':']) {
                faults.push(fault(format!("{what} `{}` is not valid", text.escape_debug())));
            }
        }
        if self.texts().any(|text| text.contains('\0')) {
            faults.push(fault("a text contains a NUL".to_owned()));
        }
        for (index, scriptlet) in self.scriptlets.iter().enumerate() {
            if self.scriptlets[..index].iter().any(|other| other.phase == scriptlet.phase) {
                faults.push(fault(format!("{} has two scriptlets", scriptlet.phase.name)));
            }
        }
        let has_list = |relation: &&Relation| LISTS.iter().any(|(kind, ..)| *kind == relation.kind);
        let foreign = self.all_relations().filter(|relation| !has_list(relation));
        faults.extend(foreign.map(|relation| {
            Error::bug(format!("{:?} {} has no tag in an .rpm", relation.kind, relation.name))
        }));
        // rpm looks files up by path and needs them sorted, each once.
        let pairs = self.entries.windows(2).filter(|pair| pair[0].path >= pair[1].path);
        faults.extend(
            pairs.map(|pair| Error::bug(format!("/{} is listed twice or too late", pair[1].path))),
        );
        Error::gather(faults).map_or(Ok(()), Err)
    }

    fn texts(&self) -> impl Iterator<Item = &String> {
        let plain = [&self.summary, &self.description, &self.group, &self.license];
        let optional = [&self.url, &self.vendor, &self.packager];
        let scripts = self.scriptlets.iter();
        plain
            .into_iter()
            .chain(optional.into_iter().flatten())
            .chain(&self.prefixes)
            .chain(self.all_relations().map(|relation| &relation.name))
            .chain(scripts.clone().flat_map(|script| [&script.interpreter, &script.text]))
            .chain(scripts.filter_map(|script| script.folder.as_ref()))
            .chain(self.changes.iter().flat_map(|change| [&change.author, &change.text]))
    }
}

fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_graphic() && c != '/')
}

pub(crate) fn fault(message: String) -> Error {
    Error::malformed(message).structure("rpm header")
}

/// The time at which a scriptlet runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptletPhase {
    name: &'static str,
    tags: [IndexTag; 2],
    pub(super) flag: DependencyFlags,
}

/// All phases, by their names in specification files. A script of `%transfiletriggerin` runs at the end of each
/// transaction that installs files below a folder.
const PHASES: [(&str, [IndexTag; 2], DependencyFlags); 7] = {
    use DependencyFlags as Flags;
    use IndexTag::*;
    [
        ("%pretrans", [RPMTAG_PRETRANS, RPMTAG_PRETRANSPROG], Flags::PRETRANS),
        ("%pre", [RPMTAG_PREIN, RPMTAG_PREINPROG], Flags::SCRIPT_PRE),
        ("%post", [RPMTAG_POSTIN, RPMTAG_POSTINPROG], Flags::SCRIPT_POST),
        ("%preun", [RPMTAG_PREUN, RPMTAG_PREUNPROG], Flags::SCRIPT_PREUN),
        ("%postun", [RPMTAG_POSTUN, RPMTAG_POSTUNPROG], Flags::SCRIPT_POSTUN),
        ("%posttrans", [RPMTAG_POSTTRANS, RPMTAG_POSTTRANSPROG], Flags::POSTTRANS),
        (
            "%transfiletriggerin",
            [RPMTAG_TRANSFILETRIGGERSCRIPTS, RPMTAG_TRANSFILETRIGGERSCRIPTPROG],
            Flags::ANY,
        ),
    ]
};

impl ScriptletPhase {
    /// The phase of a name in specification files, such as `%post`.
    pub fn of_name(name: &str) -> Option<Self> {
        let (name, tags, flag) = PHASES.into_iter().find(|(known, ..)| *known == name)?;
        Some(Self { name, tags, flag })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scriptlet {
    pub phase: ScriptletPhase,
    /// `/bin/sh`, `<lua>`, or a program with arguments, separated by blanks.
    pub interpreter: String,
    /// The script; empty if only the interpreter is to run (`/sbin/ldconfig`).
    pub text: String,
    /// The folder that a file trigger watches, with its leading slash; `None` in other phases.
    pub folder: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RpmChange {
    /// Time of the change, seconds since 1970.
    pub time: u32,
    /// The author, `Name <address>`; in a package, followed by ` - version-release`.
    pub author: String,
    pub text: String,
}

pub(super) fn scriptlets(scriptlets: &[Scriptlet]) -> Vec<Tag> {
    let mut tags = Vec::new();
    for scriptlet in scriptlets {
        let [of_text, of_interpreter] = scriptlet.phase.tags;
        if let Some(folder) = &scriptlet.folder {
            let script = scriptlet.text.trim_end_matches('\n');
            let number = |number| IndexData::Int32(vec![number]);
            let flags = DependencyFlags::TRIGGERIN.bits();
            // The only file trigger.
            tags.extend([
                (of_text, repeated_text(script, 1)),
                (of_interpreter, repeated_text(&scriptlet.interpreter, 1)),
                (IndexTag::RPMTAG_TRANSFILETRIGGERNAME, repeated_text(folder, 1)),
                (IndexTag::RPMTAG_TRANSFILETRIGGERINDEX, number(0)),
                (IndexTag::RPMTAG_TRANSFILETRIGGERVERSION, repeated_text("", 1)),
                (IndexTag::RPMTAG_TRANSFILETRIGGERFLAGS, number(flags)),
                (IndexTag::RPMTAG_TRANSFILETRIGGERPRIORITIES, number(TRIGGER_PRIORITY)),
            ]);
            continue;
        }
        if !scriptlet.text.is_empty() {
            tags.push((of_text, text(scriptlet.text.trim_end_matches('\n'))));
        }
        let words: Vec<String> = scriptlet.interpreter.split(' ').map(str::to_owned).collect();
        let data = match words.len() {
            1 => text(&scriptlet.interpreter),
            _ => IndexData::StringArray(words),
        };
        tags.push((of_interpreter, data));
    }
    tags
}

pub(super) fn changelog(changes: &[RpmChange]) -> Vec<Tag> {
    if changes.is_empty() {
        return Vec::new();
    }
    let times = changes.iter().map(|change| change.time).collect();
    let authors = changes.iter().map(|change| change.author.clone()).collect();
    let texts = changes.iter().map(|change| change.text.clone()).collect();
    vec![
        (IndexTag::RPMTAG_CHANGELOGTIME, IndexData::Int32(times)),
        (IndexTag::RPMTAG_CHANGELOGNAME, IndexData::StringArray(authors)),
        (IndexTag::RPMTAG_CHANGELOGTEXT, IndexData::StringArray(texts)),
    ]
}
