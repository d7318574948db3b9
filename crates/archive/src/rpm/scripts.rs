//! Scriptlets and the changelog: texts of the header that rpm runs or shows.
//!
//! ```text
//! 1023 PREIN …    the text of a scriptlet; 1085 PREINPROG …, its interpreter, with arguments
//! 1080 CHANGELOGTIME, 1081 CHANGELOGNAME, 1082 CHANGELOGTEXT   one element per entry, newest first
//! ```

use rpm::{IndexData, IndexTag};

use super::tags::{Tag, text};

/// The time at which a scriptlet runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptletPhase {
    /// `%pretrans`.
    PreTransaction,
    /// `%pre`.
    Pre,
    /// `%post`.
    Post,
    /// `%preun`.
    PreUninstall,
    /// `%postun`.
    PostUninstall,
    /// `%posttrans`.
    PostTransaction,
}

impl ScriptletPhase {
    /// The phase of a name in specification files, such as `%post`.
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "%pretrans" => Self::PreTransaction,
            "%pre" => Self::Pre,
            "%post" => Self::Post,
            "%preun" => Self::PreUninstall,
            "%postun" => Self::PostUninstall,
            "%posttrans" => Self::PostTransaction,
            _ => return None,
        })
    }

    /// The tags of the text and of the interpreter.
    fn tags(self) -> [IndexTag; 2] {
        match self {
            Self::PreTransaction => [IndexTag::RPMTAG_PRETRANS, IndexTag::RPMTAG_PRETRANSPROG],
            Self::Pre => [IndexTag::RPMTAG_PREIN, IndexTag::RPMTAG_PREINPROG],
            Self::Post => [IndexTag::RPMTAG_POSTIN, IndexTag::RPMTAG_POSTINPROG],
            Self::PreUninstall => [IndexTag::RPMTAG_PREUN, IndexTag::RPMTAG_PREUNPROG],
            Self::PostUninstall => [IndexTag::RPMTAG_POSTUN, IndexTag::RPMTAG_POSTUNPROG],
            Self::PostTransaction => [IndexTag::RPMTAG_POSTTRANS, IndexTag::RPMTAG_POSTTRANSPROG],
        }
    }
}

/// A script that rpm runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scriptlet {
    /// The phase in which the scriptlet runs.
    pub phase: ScriptletPhase,
    /// `/bin/sh`, `<lua>`, or a program with arguments, separated by blanks.
    pub interpreter: String,
    /// The script; empty if only the interpreter is to run (`/sbin/ldconfig`).
    pub text: String,
}

/// An entry of the changelog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpmChange {
    /// Time of the change, seconds since 1970.
    pub time: u32,
    /// The author, `Name <address> - version-release`.
    pub author: String,
    /// The changes, in lines.
    pub text: String,
}

/// The tags of scriptlets.
pub(super) fn scriptlets(scriptlets: &[Scriptlet]) -> Vec<Tag> {
    let mut tags = Vec::new();
    for scriptlet in scriptlets {
        let [of_text, of_interpreter] = scriptlet.phase.tags();
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

/// The tags of the changelog; none without an entry.
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
