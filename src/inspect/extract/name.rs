//! The names of extracted files.
//!
//! ```text
//! <binary>-<index>-<target>.hsaco        a code object
//! <binary>-bundle<offset>-<target>.hsaco of a bundle that no wrapper points to; offset in hex
//! <binary>-<target>.hsaco                of an archive whose key has no index
//! ```
//!
//! The binary is the name in an archive's key (`lib/librocblas.so.5`), else the name of the file.
//! Its characters are letters, digits and `.`, `_`, `-`, `+`; every other byte is written as `%` and
//! two hexadecimal digits (`lib%2Flibrocblas.so.5`), as in URLs, so that two binaries never share
//! a name. The target is spelled as Tensile does, with `-` before each feature
//! (`gfx90a-sramecc+-xnack-`). SPIR-V ends in `.spv` instead.

use rockpack_core::gfx::SPIRV;

/// The part of a binary that a code object belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BinaryPart {
    /// The wrapper, or the bundle, with this index.
    Index(u32),
    /// A bundle at this offset that no wrapper points to.
    Unreferenced(u64),
    /// The binary as a whole.
    Whole,
}

impl BinaryPart {
    /// The index, if it has one.
    pub fn index(self) -> Option<u32> {
        match self {
            Self::Index(index) => Some(index),
            Self::Unreferenced(_) | Self::Whole => None,
        }
    }
}

/// The name of the file that gets the code object.
pub(super) fn file_name(binary: &str, part: &BinaryPart, target: &str) -> String {
    let binary = escaped(binary);
    let part = match part {
        BinaryPart::Index(index) => format!("-{index}"),
        BinaryPart::Unreferenced(offset) => format!("-bundle{offset:x}"),
        BinaryPart::Whole => String::new(),
    };
    let ending = if target.ends_with(SPIRV) { "spv" } else { "hsaco" };
    format!("{binary}{part}-{}.{ending}", escaped(&target.replace(':', "-")))
}

fn escaped(text: &str) -> String {
    let mut name = String::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            // A leading dot would hide the file.
            b'.' if at == 0 => name.push_str("%2E"),
            b'.' | b'_' | b'-' | b'+' => name.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            byte => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_tell_binaries_apart() {
        for (binary, part, target, expected) in [
            ("lib/libx.so.1", BinaryPart::Index(2), "gfx1100", "lib%2Flibx.so.1-2-gfx1100.hsaco"),
            (
                "x",
                BinaryPart::Index(0),
                "gfx90a:sramecc+:xnack-",
                "x-0-gfx90a-sramecc+-xnack-.hsaco",
            ),
            ("x.so", BinaryPart::Unreferenced(0x9000), "gfx906", "x.so-bundle9000-gfx906.hsaco"),
            ("x", BinaryPart::Whole, "gfx906", "x-gfx906.hsaco"),
            ("../x\n", BinaryPart::Index(0), "amdgcnspirv", "%2E.%2Fx%0A-0-amdgcnspirv.spv"),
            ("a%2Fb", BinaryPart::Index(0), "../x", "a%252Fb-0-%2E.%2Fx.hsaco"),
        ] {
            assert_eq!(file_name(binary, &part, target), expected);
        }
    }
}
