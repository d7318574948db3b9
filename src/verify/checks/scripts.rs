//! Scripts of packages: what is done where they are installed and removed has to be, word for word, what
//! the templates say.

use crate::package::Format;
use crate::verify::own::installed::Installed;
use crate::verify::own::maintainer::InstalledScript;
use crate::verify::own::wording::{self, LDCONFIG, Subject};
use crate::verify::problem::{Problem, Problems, ScriptFault};

/// The line by which a `.deb` has the loader's cache made anew.
const TRIGGER: &str = "activate-noawait ldconfig";

/// Adds every script of a package, whose install prefix is `prefix`, that no template has.
pub(in crate::verify) fn check(package: &Installed, prefix: &str, problems: &mut Problems) {
    for script in &package.scripts {
        if let Some(fault) = fault(package, prefix, script) {
            problems.add(Problem::ScriptForeign { package: package.file.clone(), fault });
        }
    }
}

fn fault(package: &Installed, prefix: &str, script: &InstalledScript) -> Option<ScriptFault> {
    let InstalledScript { phase, interpreter, text } = script;
    let has = |path: &str| package.paths.contains_key(path);
    let language = wording::language(phase);
    let subject = Subject { package: &package.name, prefix, has: &has, language };
    let (is_known, is_run) = match (package.format, interpreter.as_str()) {
        (Some(Format::Deb), _) if phase == "triggers" => (text.trim_end() == TRIGGER, true),
        (Some(Format::Deb), _) if !wording::is_phase(phase) => {
            return Some(ScriptFault::ControlFile { name: phase.clone() });
        }
        (_, LDCONFIG) => (text.is_empty(), ["%post", "%postun"].contains(&phase.as_str())),
        (_, "<lua>") => (wording::is_known(phase, text, subject), phase == "%pretrans"),
        (_, other) => (wording::is_known(phase, text, subject), ["", "/bin/sh"].contains(&other)),
    };
    if !is_run {
        let (phase, interpreter) = (phase.clone(), interpreter.clone());
        return Some(ScriptFault::Interpreter { phase, interpreter });
    }
    (!is_known).then(|| ScriptFault::Text { phase: phase.clone() })
}
