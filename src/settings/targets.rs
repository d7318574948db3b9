//! Targets in options. Options cannot declare archs that are newer than this version of rockpack, so any
//! plausible arch is accepted.

use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{self, NoTarget, Target};

use rockpack_plan::config::meant_arch;

/// Parses `text`, a target in one of the spellings in use. Errors name the option `option`.
pub(super) fn in_any_spelling(text: &str, option: &str) -> Result<Target> {
    checked(text, Target::parse_spelling(text)).map_err(|NoArch { message, hint }| {
        Error::new(Kind::Usage, format!("{option}: {message}")).hint(hint)
    })
}

/// Parses the target ID `text`, for the parser of the command line.
pub fn target_id(text: &str) -> Result<Target, String> {
    checked(text, text.parse()).map_err(|NoArch { message, hint }| format!("{message}: {hint}"))
}

/// The fault of a target, and a hint.
struct NoArch {
    message: String,
    hint: String,
}

fn checked(text: &str, target: Result<Target, NoTarget>) -> Result<Target, NoArch> {
    match target {
        Ok(target) if gfx::is_plausible(target.base()) => Ok(target),
        Ok(target) => {
            let arch = target.base();
            let message = format!("`{arch}` is no GPU arch");
            Err(NoArch { message, hint: arch_hint(arch.as_str()) })
        }
        Err(fault) => Err(NoArch { message: fault.to_string(), hint: arch_hint(text) }),
    }
}

fn arch_hint(word: &str) -> String {
    let meant = meant_arch(word).map(|meant| format!("{meant}; "));
    meant.unwrap_or_default() + "give archs such as gfx1100 or gfx90a"
}
