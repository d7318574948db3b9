//! The HIP runtime that loads the device code of a wheel.
//!
//! Reading kernel archives is a build option of the runtime. A runtime with it uses `librocm_kpack`, either
//! linked or built in; a built-in one contains the names of the library's environment variables.

use std::collections::BTreeSet;

use rockpack_base::content::{Content, WINDOW};
use rockpack_base::error::{Error, Kind, Result};

use crate::input::wheel::Wheel;
use crate::recombine::Component;
use crate::report::{Finding, Findings, Soname};
use crate::split::HostBinary;

/// Prefix of the runtime's file names; a tool may have added a digest.
const RUNTIME: &str = "libamdhip64";

/// Texts of a runtime that reads archives, which has one of them: a needed soname, or a variable's name.
const SIGNS: [&[u8]; 2] = [b"librocm_kpack.so", b"ROCM_KPACK_PATH"];

/// The fate of a wheel whose own HIP runtime cannot read kernel archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimePolicy {
    /// Refuse the wheel.
    HasToRead,
    /// Split the wheel, with a finding.
    Any,
}

/// Looks for the runtime in `wheel`, and checks whether it can read archives.
pub(super) fn check(
    wheel: &Wheel,
    component: &Component,
    policy: RuntimePolicy,
    findings: &mut Findings,
) -> Result<()> {
    if component.kernels.is_empty() {
        return Ok(());
    }
    let mut inside = 0;
    let mut unable = Vec::new();
    for (name, member) in &wheel.members {
        let file = name.rsplit('/').next().unwrap_or_default();
        if file.starts_with(RUNTIME) && file.contains(".so") {
            inside += 1;
            if !has_sign(&member.content)? {
                unable.push(name.clone());
            }
        }
    }
    let own = wheel.name.to_string();
    if inside == 0 {
        let libraries = runtimes_needed(component)?;
        findings.add(Finding::WheelRuntimeOutside { wheel: own, libraries });
    } else if !unable.is_empty() && policy == RuntimePolicy::Any {
        findings.add(Finding::WheelRuntimeCannotRead { wheel: own, files: unable });
    } else if !unable.is_empty() {
        let message =
            format!("its HIP runtime cannot read kernel archives ({})", unable.join(", "));
        let hint = "build the wheel with a runtime that reads them (ROCM_KPACK_ENABLED), or split it \
                    all the same with --any-runtime, where another runtime takes its place";
        return Err(Error::new(Kind::Conflict, message).file(&wheel.path).hint(hint));
    }
    Ok(())
}

/// The runtimes that fat binaries are linked to.
fn runtimes_needed(component: &Component) -> Result<Vec<Soname>> {
    let mut needed = BTreeSet::new();
    for fat in component.host.iter().filter_map(|(_, node)| node.data()?.fat()) {
        if let HostBinary::Fat(analysis) = &fat.binary {
            let own = analysis.needed()?.into_iter();
            needed.extend(own.filter(|soname| soname.starts_with(RUNTIME)));
        }
    }
    Ok(needed.into_iter().map(Soname::from).collect())
}

/// Whether one of the signs is in `content`.
fn has_sign(content: &Content) -> Result<bool> {
    let longest = SIGNS.iter().map(|sign| sign.len()).max().unwrap_or_default();
    let mut at = 0;
    let mut window = vec![0; WINDOW];
    loop {
        let left = usize::try_from(content.len() - at).unwrap_or(WINDOW);
        let bytes = window.get_mut(..left.min(WINDOW)).unwrap_or_default();
        content.read_at(at, bytes)?;
        let bytes: &[u8] = bytes;
        if SIGNS.iter().any(|sign| bytes.windows(sign.len()).any(|part| part == *sign)) {
            return Ok(true);
        }
        if left <= WINDOW {
            return Ok(false);
        }
        // A sign may cross the end of a window.
        at += (WINDOW - longest) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_found_wherever_they_lie() {
        for at in [0, 9, WINDOW - 8, WINDOW - 1, WINDOW, 2 * WINDOW + 5] {
            for sign in SIGNS {
                let bytes = [vec![b'R'; at], sign.to_vec(), vec![b'l'; 3]].concat();
                assert!(has_sign(&Content::of_bytes(bytes)).unwrap(), "{at}");
            }
        }
        assert!(!has_sign(&Content::of_bytes(vec![b'R'; WINDOW + 9])).unwrap());
        assert!(!has_sign(&Content::default()).unwrap());
    }
}
