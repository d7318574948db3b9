//! The names by which host wheels and device wheels know each other.
//!
//! ```text
//! amd-torch-device-gfx942        {host}-device-{group}, and what else a configuration calls it
//! device-gfx942, device-all      extras of the host: device-{group}
//! ```

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

/// Tells if a device wheel is called after `host`, both normalized: `amd-torch-device-gfx942` after `torch`.
pub fn is_named_after(name: &str, host: &str) -> bool {
    let stem = name.rsplit_once(DEVICE).and_then(|(stem, _)| stem.strip_suffix(host));
    stem.is_some_and(|rest| rest.is_empty() || rest.ends_with('-'))
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
