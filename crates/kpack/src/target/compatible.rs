//! The targets that a device is compatible with, in the order in which the runtime asks for them.
//!
//! Source: AMD's `isa_target_match.h`. A device's target ID is not normalised: code for a subset of its
//! features runs on it, and generic targets count only if the caller names them.

use std::collections::TryReserveError;
use std::fmt;

/// The start of a device's target ID in the HIP runtime's reports.
pub const TRIPLE_PREFIX: &[u8] = b"amdgcn-amd-amdhsa--";

/// Maximum number of features that may be omitted: devices report two. AMD's loader has no limit, and would loop
/// practically for ever over a target ID with forty features.
const FEATURES_MAX: u32 = 16;

/// The targets whose code runs on a device that reports `target_id`, most specific first: for
/// `gfx90a:sramecc+:xnack-` that target itself, `gfx90a:sramecc+`, `gfx90a:xnack-`, and `gfx90a`. Features
/// beyond the sixteenth stay on every target, so that no target loses them.
pub fn compatible(target_id: &[u8]) -> impl Iterator<Item = CompatibleTarget<'_>> {
    let target_id = target_id.strip_prefix(TRIPLE_PREFIX).unwrap_or(target_id);
    let colon = target_id.iter().position(|byte| *byte == b':');
    let (processor, features) = target_id.split_at(colon.unwrap_or(target_id.len()));
    let count = u32::try_from(parts(features).count()).unwrap_or(u32::MAX);
    let free = count.min(FEATURES_MAX);
    let targets: u32 = if processor.is_empty() { 0 } else { 1 << free };
    (0..targets).rev().map(move |mask| CompatibleTarget { processor, features, free, mask })
}

/// Splits features. Empty parts are ignored: `gfx90a::xnack-` has one feature.
fn parts(features: &[u8]) -> impl Iterator<Item = &[u8]> {
    features.split(|byte| *byte == b':').filter(|part| !part.is_empty())
}

/// A target that a device is compatible with. It takes no memory: its text is written or compared.
#[derive(Debug, Clone, Copy)]
pub struct CompatibleTarget<'a> {
    processor: &'a [u8],
    features: &'a [u8],
    /// The number of features that may be left out, from the first on.
    free: u32,
    /// The features of the target among these, the first one as the highest bit.
    mask: u32,
}

impl<'a> CompatibleTarget<'a> {
    /// The text of the target in pieces.
    fn pieces(self) -> impl Iterator<Item = &'a [u8]> {
        let fixed = (0_u32..).zip(parts(self.features)).filter(move |(index, _)| {
            let bit = self.free.checked_sub(index + 1);
            bit.is_none_or(|bit| self.mask >> bit & 1 == 1)
        });
        [self.processor].into_iter().chain(fixed.flat_map(|(_, feature)| [&b":"[..], feature]))
    }

    /// Tells whether `name` is the text of the target.
    pub fn is(self, name: &[u8]) -> bool {
        let mut rest = Some(name);
        for piece in self.pieces() {
            rest = rest.and_then(|rest| rest.strip_prefix(piece));
        }
        rest.is_some_and(<[u8]>::is_empty)
    }

    /// Appends the text of the target to `bytes`. Fails if memory is refused.
    pub fn append_to(self, bytes: &mut Vec<u8>) -> Result<(), TryReserveError> {
        bytes.try_reserve(self.pieces().map(<[u8]>::len).sum())?;
        self.pieces().for_each(|piece| bytes.extend_from_slice(piece));
        Ok(())
    }
}

impl fmt::Display for CompatibleTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chunks = self.pieces().flat_map(<[u8]>::utf8_chunks);
        chunks.map(|chunk| chunk.valid()).try_for_each(|text| f.write_str(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(target_id: &str) -> Vec<String> {
        compatible(target_id.as_bytes()).map(|target| target.to_string()).collect()
    }

    /// The cases of AMD's `IsaTargetMatch`.
    #[test]
    fn subsets_of_the_features_in_their_order() {
        let both = ["gfx942:sramecc+:xnack-", "gfx942:sramecc+", "gfx942:xnack-", "gfx942"];
        assert_eq!(texts("gfx942:sramecc+:xnack-"), both);
        assert_eq!(texts("amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"), both);
        assert_eq!(texts("gfx942:xnack+"), ["gfx942:xnack+", "gfx942"]);
        assert_eq!(texts("gfx942:xnack-:sramecc+")[1..3], ["gfx942:xnack-", "gfx942:sramecc+"]);
        for alone in ["gfx1201", "gfx9-4-generic"] {
            assert_eq!(texts(alone), [alone]);
            assert_eq!(texts(&format!("amdgcn-amd-amdhsa--{alone}")), [alone]);
        }
        let three = ["p:a:b:c", "p:a:b", "p:a:c", "p:a", "p:b:c", "p:b", "p:c", "p"];
        assert_eq!(texts("p:a:b:c"), three);
        for nothing in ["", ":xnack+", "amdgcn-amd-amdhsa--"] {
            assert!(texts(nothing).is_empty(), "{nothing}");
        }
        assert_eq!(texts("gfx942::xnack-:"), ["gfx942:xnack-", "gfx942"]);
    }

    #[test]
    fn more_features_than_any_device_has_end() {
        let many: String = (0..100).map(|n| format!(":f{n}+")).collect();
        let targets = compatible(many.as_bytes());
        assert_eq!(targets.count(), 0, "no processor");
        let many = format!("gfx942{many}");
        assert_eq!(compatible(many.as_bytes()).count(), 1 << 16);
        let mut some = compatible(many.as_bytes()).step_by(1 << 12);
        assert!(some.all(|target| target.to_string().ends_with(":f99+")));
    }

    #[test]
    fn texts_are_compared_and_written_alike() {
        for target in compatible(b"gfx90a:sramecc+:xnack-") {
            let text = target.to_string();
            let mut bytes = b"x/".to_vec();
            target.append_to(&mut bytes).unwrap();
            assert_eq!(bytes, format!("x/{text}").as_bytes());
            assert!(target.is(text.as_bytes()));
            for other in ["", "gfx90", "gfx90a:", &format!("{text}:"), &text[1..]] {
                assert!(!target.is(other.as_bytes()), "{other}");
            }
        }
    }
}
