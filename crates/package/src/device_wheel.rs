//! The names by which host wheels and device wheels know each other.
//!
//! ```text
//! amd-torch-device-gfx942        {host}-device-{group}, and what else a configuration calls it
//! device-gfx942, device-all      extras of the host: device-{group}
//! ```

use rockpack_archive::python_index::WheelPackage;
use rockpack_archive::wheel::Requirement;

/// The start of the names of extras that bring device wheels.
pub const EXTRA: &str = "device-";

/// The extra that brings all device wheels.
pub const ALL: &str = "device-all";

/// The text between host and group in the names of device wheels.
pub const DEVICE: &str = "-device-";

/// The group of a device wheel, by its normalized name; none if it is called otherwise.
pub fn group(name: &str) -> Option<&str> {
    name.rsplit_once(DEVICE).map(|(_, group)| group)
}

/// Whether a device wheel is called after `host`, both normalized: `amd-torch-device-gfx942` after `torch`.
pub fn is_named_after(name: &str, host: &str) -> bool {
    let stem = name.rsplit_once(DEVICE).and_then(|(stem, _)| stem.strip_suffix(host));
    stem.is_some_and(|rest| rest.is_empty() || rest.ends_with('-'))
}

/// Whether a wheel was split: a device wheel requires its host in one version, and a host its device wheels by extras.
pub fn is_of_split(package: &WheelPackage) -> bool {
    let is_device = group(&package.project).is_some();
    let mut requires = package.requires.iter().filter_map(|line| Requirement::parse(line).ok());
    requires.any(|it| {
        let mut extras = it.condition.extras().iter();
        it.exact().is_some() && (is_device || extras.any(|extra| extra.starts_with(EXTRA)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_wheels_are_called_after_their_host() {
        for (name, host, expected) in [
            ("torch-device-gfx942", "torch", true),
            ("amd-torch-device-gfx942", "torch", true),
            ("amd-torch-device-gfx942", "orch", false),
            ("my-device-tools", "click", false),
            ("torch-gfx942", "torch", false),
        ] {
            assert_eq!(is_named_after(name, host), expected, "{name} {host}");
        }
    }
}
