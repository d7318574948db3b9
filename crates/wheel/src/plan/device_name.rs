//! The names of device wheels.

use std::str::FromStr;

use derive_more::Display;
use rockpack_archive::wheel::normalized;
use rockpack_core::error::{Error, Kind, Result};

use rockpack_plan::config::is_letter_or_digit;

/// The placeholder of the host wheel's distribution.
const NAME: &str = "{name}";
/// The placeholder of a group.
pub(super) const GROUP: &str = "{group}";

/// A pattern of names: `{name}` is the name of the host wheel, `{group}` the group. An owner's prefix stands for one.
#[derive(Debug, Clone, PartialEq, Eq, Display)]
pub struct DeviceName(String);

impl DeviceName {
    /// The name for a group, by its label, of the distribution `name`.
    pub fn of(&self, name: &str, label: &str) -> Result<String> {
        let made = self.0.replace(NAME, name).replace(GROUP, label);
        if is_name(&made) {
            return Ok(made);
        }
        let message =
            format!("`{made}`, made by the pattern `{self}`, is no name of a distribution");
        Err(Error::new(Kind::Config, message).hint(HINT))
    }

    /// Tells if the names have no owner's prefix.
    pub fn is_without_owner(&self) -> bool {
        self.0.starts_with('{')
    }

    /// Tells if the normalized name `own` is one for a group of the distribution `host`.
    pub(super) fn makes(&self, own: &str, host: &str) -> bool {
        let pattern = self.0.replace(NAME, host);
        let Some((before, after)) = pattern.split_once(GROUP) else { return false };
        let group = own.strip_prefix(&normalized(before));
        group
            .and_then(|rest| rest.strip_suffix(&normalized(after)))
            .is_some_and(|it| !it.is_empty())
    }
}

const HINT: &str = "names have letters, digits, `-`, `_` and `.`, and begin and end with a letter or \
                    digit: `{name}-device-{group}`, `amd-{name}-device-{group}`, or its prefix `amd`";

impl FromStr for DeviceName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if !text.contains('{') {
            let owner = text.trim_end_matches(['-', '_', '.']);
            return format!("{owner}-{NAME}-device-{GROUP}").parse();
        }
        let is_valid = is_name(&text.replace(NAME, "n").replace(GROUP, "g"));
        let message = match text.contains(GROUP) {
            true if is_valid => return Ok(Self(text.to_owned())),
            true => format!("`{text}` gives no names of distributions"),
            false => {
                format!("`{text}` has no {GROUP}, so that all device wheels would have one name")
            }
        };
        Err(Error::new(Kind::Usage, message).hint(HINT))
    }
}

/// Parses the name of a distribution, and normalizes it.
pub fn distribution(text: &str) -> Result<String, String> {
    is_name(text).then(|| normalized(text)).ok_or("not a name of a distribution".to_owned())
}

/// Whether PEP 508 allows the name for a distribution.
fn is_name(text: &str) -> bool {
    text.starts_with(is_letter_or_digit)
        && text.ends_with(is_letter_or_digit)
        && text.chars().all(|c| is_letter_or_digit(c) || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_make_names() {
        assert_eq!(name_by("{name}-device-{group}"), "torch-device-gfx942");
        assert_eq!(name_by("amd-{name}-device-{group}"), "amd-torch-device-gfx942");
        assert_eq!(name_by("acme"), "acme-torch-device-gfx942");
        assert_eq!(name_by("acme.ai-"), "acme.ai-torch-device-gfx942");
        assert_eq!(name_by("acme_"), "acme-torch-device-gfx942");
        let amd: DeviceName = "amd-{name}-device-{group}".parse().unwrap();
        assert!(!amd.is_without_owner());
        let bare: DeviceName = "{group}-{name}".parse().unwrap();
        assert!(bare.is_without_owner());
        assert!(amd.makes("amd-torch-device-common", "torch"));
        assert!(!amd.makes("amd-torch-device", "torch") && !amd.makes("torch-device-x", "torch"));
        for bad in [
            "",
            "-",
            "a b",
            "{name}-device",
            "-{group}",
            "{group} x",
            "{other}-{group}",
            "{name}/{group}",
        ] {
            assert!(bad.parse::<DeviceName>().is_err(), "{bad}");
        }
    }

    fn name_by(pattern: &str) -> String {
        pattern.parse::<DeviceName>().unwrap().of("torch", "gfx942").unwrap()
    }
}
