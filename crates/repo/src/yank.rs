//! Yanked wheels, whose files stay (PEP 592): installers take
//! them only for requirements of exactly that version.

use std::sync::Arc;

use rockpack_archive::python_index::compare_versions;
use rockpack_archive::wheel::normalized;
use rockpack_core::error::{Error, Faults, Kind, Result};

use super::options::Changes;
use super::state::{PoolRecord, PoolRecords};
use rockpack_package::indexed::Facts;

/// A request of `--yank`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Yank {
    /// The wheels: `NAME=VERSION`, or a file name.
    pub wheels: String,
    /// Why; maybe empty.
    pub reason: String,
}

impl Yank {
    /// Parses `NAME=VERSION[=REASON]` or `FILE.whl[=REASON]`.
    pub fn parse(text: &str) -> Result<Self> {
        let (first, rest) = text.split_once('=').unwrap_or((text, ""));
        let (wheels, reason) = if is_file_name(first) {
            (first.to_owned(), rest)
        } else {
            let (version, reason) = rest.split_once('=').unwrap_or((rest, ""));
            (format!("{first}={version}"), reason)
        };
        if !names_some(&wheels) {
            return Err(names_none("--yank", text));
        }
        if reason.contains(char::is_control) {
            let message = format!("the reason of --yank {wheels} has control characters");
            return Err(Error::new(Kind::Usage, message));
        }
        Ok(Self { wheels, reason: reason.trim().to_owned() })
    }
}

/// Refuses what cannot name wheels.
pub fn check_wheels(option: &str, wheels: &str) -> Result<()> {
    if names_some(wheels) { Ok(()) } else { Err(names_none(option, wheels)) }
}

/// Whether the text is a file name, or `NAME=VERSION`.
fn names_some(text: &str) -> bool {
    is_file_name(text)
        || text.split_once('=').is_some_and(|(name, version)| {
            !name.is_empty() && !version.is_empty() && !version.contains('=')
        })
}

fn names_none(option: &str, text: &str) -> Error {
    let message = format!("{option} `{}` names no wheel", text.escape_debug());
    Error::new(Kind::Usage, message).hint(NAME_HINT)
}

const NAME_HINT: &str = "name wheels as in torch=2.13.0, or one by its file name; with --yank, a reason may follow behind =";

fn is_file_name(text: &str) -> bool {
    text.ends_with(".whl")
}

/// Whether `spec` is `NAME` or `NAME=VERSION` of the wheel, or its file name. Names are compared in their
/// normalized form, and versions as installers do.
pub(super) fn names_wheel(spec: &str, record: &PoolRecord) -> bool {
    let Facts::Wheel(package) = &record.indexed.facts else { return false };
    match spec.split_once('=') {
        _ if is_file_name(spec) => spec == package.file,
        Some((name, version)) => {
            normalized(name) == package.project
                && compare_versions(version, &package.version).is_eq()
        }
        None => normalized(spec) == package.project,
    }
}

/// Marks wheels as yanked, and those that are no longer so. Refuses names of wheels that are not there.
pub(super) fn mark(records: &mut PoolRecords, changes: &Changes) -> Result<()> {
    let Changes { yank, unyank, .. } = changes;
    let yank = yank.iter().map(|it| ("yank", &it.wheels, Some(&it.reason)));
    let unyank = unyank.iter().map(|it| ("unyank", it, None));
    let mut faults = Faults::default();
    for (doing, wheels, reason) in yank.chain(unyank) {
        let mut named =
            records.values_mut().filter(|record| names_wheel(wheels, record)).peekable();
        if named.peek().is_none() {
            faults.add(no_wheel(doing, wheels));
        }
        for record in named.filter(|record| record.yanked.as_ref() != reason) {
            Arc::make_mut(record).yanked = reason.cloned();
        }
    }
    faults.finish()
}

fn no_wheel(doing: &str, wheels: &str) -> Error {
    let message = format!("the repository has no wheel {wheels} to {doing}");
    Error::new(Kind::Usage, message).hint(NAME_HINT)
}

/// Refuses wheels that are to be marked where no index is published.
pub(super) fn refuse_without_index(changes: &Changes) -> Result<()> {
    mark(&mut PoolRecords::new(), changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_are_named_with_a_reason_or_without() {
        for (text, wheels, reason) in [
            ("demo=1.0", "demo=1.0", ""),
            ("demo=1!1.0+rocm7.1=wrong code = bad", "demo=1!1.0+rocm7.1", "wrong code = bad"),
            ("demo-1.0-py3-none-any.whl", "demo-1.0-py3-none-any.whl", ""),
            ("demo-1.0-py3-none-any.whl=old", "demo-1.0-py3-none-any.whl", "old"),
        ] {
            let yank = Yank::parse(text).unwrap();
            assert_eq!((yank.wheels.as_str(), yank.reason.as_str()), (wheels, reason));
        }
        for text in ["demo", "demo==1.0", "=1.0", "", "demo=", "demo=1.0=a\nb"] {
            assert_eq!(Yank::parse(text).unwrap_err().kind(), Kind::Usage, "{text}");
        }
        assert!(check_wheels("--unyank", "demo=1.0=reason").is_err());
    }
}
