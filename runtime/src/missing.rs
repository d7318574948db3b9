//! Lines for users of devices without kernels, which the HIP runtime skips silently.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

use rockpack_kpack::target::TRIPLE_PREFIX;

use crate::report::{self, LineEnd, Shown, Text};

/// The target ID of a device for texts; `None` if it names no device.
fn name(arch: &CStr) -> Option<&[u8]> {
    let arch = arch.to_bytes();
    let name = arch.strip_prefix(TRIPLE_PREFIX).unwrap_or(arch);
    (!name.is_empty()).then_some(name)
}

/// The devices for which `is_wanted`, as a list for texts.
fn listed(arches: &[&CStr], is_wanted: impl Fn(&[u8]) -> bool) -> Text {
    let mut text = Text::new();
    for device in arches.iter().filter_map(|arch| name(arch)).filter(|name| is_wanted(name)) {
        let or = if text.as_bytes().is_empty() { "" } else { " or " };
        text.append(format_args!("{or}{}", Shown(device)));
    }
    text
}

/// The devices of a load, as a list for texts.
pub fn devices(arches: &[&CStr]) -> Text {
    listed(arches, |_| true)
}

/// Writes a line about the devices not reported before for which the archives of a binary have no kernels.
pub fn tell(arches: &[&CStr], binary: &[u8], looked: &Text) {
    let devices = listed(arches, is_new);
    if devices.as_bytes().is_empty() {
        return;
    }
    let binary = Shown(binary);
    let text =
        format_args!("rocm-kpack: no archive has {devices} for {binary}; looked in {looked}");
    report::line(text, LineEnd::SILENCED);
}

/// The reported devices of this process, by hash; 0 is a free entry. When all entries are taken, reports
/// stop.
static TOLD: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Records a device, and tells whether it is new.
fn is_new(device: &[u8]) -> bool {
    // FNV-1a: a collision of hashes costs one line, no more.
    let hash = device
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        })
        .max(1);
    for slot in &TOLD {
        match slot.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(there) if there == hash => return false,
            Err(_) => {}
        }
    }
    false
}
