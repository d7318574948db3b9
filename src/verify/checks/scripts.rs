//! Scripts of packages: they must be, word for word, the scripts that a build writes for the content of the
//! package, and none may be missing. Scripts of an `.rpm` use the
//! prefix that rpm passes for relocated packages.

use std::collections::BTreeMap;

use rockpack_base::error::Result;
use rockpack_base::tree::TreePath;

use crate::package::Format;
use crate::package::system_folders::is_add_on;
use crate::verify::own::installed::Installed;
use crate::verify::own::maintainer::InstalledScript;
use crate::verify::own::wording::{LDCONFIG, SetWords};
use crate::verify::problem::{HeaderFault, Problem, Problems, ScriptFault};

/// The phases at which dpkg runs scripts of packages of rockpack, and the file of triggers.
const DEB_PHASES: [&str; 5] = ["preinst", "postinst", "prerm", "postrm", "triggers"];

/// The interpreters of scripts in packages of rockpack; empty for those of a `.deb`, which name it.
const INTERPRETERS: [&str; 4] = ["", "/bin/sh", "<lua>", LDCONFIG];

/// Adds every script of the packages of a set, whose install prefix is `prefix`, that no build writes, and
/// every one that is missing.
pub(in crate::verify) fn check<'a>(
    packages: impl Iterator<Item = &'a Installed> + Clone,
    prefix: &'a str,
    problems: &mut Problems,
) -> Result<()> {
    for format in Format::ALL {
        let set = packages.clone().filter(|package| package.format == Some(format));
        let words = SetWords::of(prefix, set.clone());
        let path = prefix.strip_prefix('/').and_then(|path| TreePath::new(path).ok());
        let is_movable = format == Format::Rpm && path.is_some_and(|it| is_add_on(&it));
        let wanted: Vec<String> = is_movable.then(|| prefix.to_owned()).into_iter().collect();
        for package in set {
            if package.prefixes != wanted {
                let (stated, wanted) = (package.prefixes.clone(), wanted.clone());
                let fault = HeaderFault::Prefixes { stated, wanted };
                problems.add(Problem::BadHeader { package: package.file.clone(), fault });
            }
            for fault in faults(package, words.scripts(package)?) {
                problems.add(Problem::ScriptForeign { package: package.file.clone(), fault });
            }
        }
    }
    Ok(())
}

fn faults(package: &Installed, expected: Vec<InstalledScript>) -> Vec<ScriptFault> {
    let mut expected: BTreeMap<String, InstalledScript> =
        expected.into_iter().map(|script| (script.phase.clone(), script)).collect();
    let own = package.scripts.iter();
    let mut faults: Vec<ScriptFault> =
        own.filter_map(|script| fault(package, script, expected.remove(&script.phase))).collect();
    faults.extend(expected.into_keys().map(|phase| ScriptFault::Missing { phase }));
    faults
}

fn fault(
    package: &Installed,
    script: &InstalledScript,
    expected: Option<InstalledScript>,
) -> Option<ScriptFault> {
    let InstalledScript { phase, interpreter, text } = script;
    let is_deb = package.format == Some(Format::Deb);
    if is_deb && !DEB_PHASES.contains(&phase.as_str()) {
        return Some(ScriptFault::ControlFile { name: phase.clone() });
    }
    let is_run = match &expected {
        Some(expected) => expected.interpreter == *interpreter,
        None => INTERPRETERS.contains(&interpreter.as_str()),
    };
    if !is_run {
        let (phase, interpreter) = (phase.clone(), interpreter.clone());
        return Some(ScriptFault::Interpreter { phase, interpreter });
    }
    let same = expected.is_some_and(|expected| without_end(&expected.text) == without_end(text));
    (!same).then(|| ScriptFault::Text { phase: phase.clone() })
}

/// A text without the end of its last line, which formats keep or drop.
fn without_end(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}
