//! Subjects of findings and problems: component, package and library names, artifacts, files and ELF machines.

use std::borrow::Borrow;
use std::fmt;

use derive_more::{Deref, Display, From};
use rockpack_core::content::Sha256Digest;
use rockpack_core::tree::{ArtifactName, TreePath};
use serde::Serialize;

/// Declares newtypes of names, which JSON represents as strings.
macro_rules! names {
    ($($(#[$about:meta])* $Name:ident;)*) => { $(
        $(#[$about])*
        #[derive(
            Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deref, Display, From,
        )]
        #[from(forward)]
        pub struct $Name(String);

        impl Borrow<str> for $Name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )* };
}

names! {
    /// The name of a component, from any shard: `blas_lib`.
    ComponentName;
    /// The name of a package without its version: `rocm-blas`.
    PackageName;
    /// The soname of a library: `librocblas.so.5`.
    Soname;
}

/// An artifact of a shard, written as `<shard>/<artifact>`, a wheel, or a tree that is thinned. Artifacts and wheels
/// are named without the path of the input, because findings are part of reproducible output.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(untagged)]
pub enum InputArtifact {
    /// An artifact, e.g. `blas_lib_gfx1151`.
    #[display("{shard}/{artifact}")]
    Artifact { shard: String, artifact: ArtifactName },
    /// A wheel, by its file name.
    #[display("{wheel}")]
    Wheel { wheel: String },
    /// A tree, by its path.
    #[display("{tree}")]
    Tree { tree: String },
}

impl InputArtifact {
    /// `shard` is the name of a shard, the file name of a wheel, or the path of a tree.
    pub fn new(shard: &str, artifact: &ArtifactName) -> Self {
        match artifact.is_wheel() {
            true if shard.ends_with(".whl") => Self::Wheel { wheel: shard.to_owned() },
            true => Self::Tree { tree: shard.to_owned() },
            false => Self::Artifact { shard: shard.to_owned(), artifact: artifact.clone() },
        }
    }

    /// The name of the shard, the file name of the wheel, or the path of the tree.
    pub fn shard(&self) -> &str {
        let (Self::Artifact { shard, .. }
        | Self::Wheel { wheel: shard }
        | Self::Tree { tree: shard }) = self;
        shard
    }

    pub fn file(&self, path: &TreePath) -> InputFile {
        InputFile { owner: self.clone(), path: path.clone() }
    }
}

/// The name of a file of an artifact or component, or of a wheel.
fn file_name(owner: &str, path: &TreePath) -> String {
    if owner.ends_with(".whl") { format!("{owner}({path})") } else { format!("{owner}/{path}") }
}

/// A file or folder of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[display("{}", file_name(&owner.to_string(), path))]
pub struct InputFile {
    #[serde(flatten)]
    pub owner: InputArtifact,
    /// Relative to the prefix, or to the folder where the wheel is installed.
    pub path: TreePath,
}

/// A file or folder of a component, from any shard.
#[derive(Debug, Clone, Serialize, Display)]
#[display("{}", file_name(component.as_str(), path))]
pub struct ComponentFile {
    /// The name of the component, e.g. `blas_lib`, or the file name of a wheel.
    pub component: ComponentName,
    /// Relative to the prefix.
    pub path: TreePath,
}

impl ComponentFile {
    pub fn new(component: impl Into<ComponentName>, path: &TreePath) -> Self {
        Self { component: component.into(), path: path.clone() }
    }
}

/// A file, and the amount of its device code that is left out.
#[derive(Debug, Serialize, Display)]
#[display("{file}: {count}")]
pub struct LeftOutFile {
    /// `<component>/<path>`, or the path alone if the component is not known.
    pub file: String,
    /// Number of code objects, or 1 for a database file.
    pub count: usize,
}

/// One of several merged files.
#[derive(Debug, Serialize, Display)]
#[display("{artifact} ({sha256})")]
pub struct MergedPart {
    pub artifact: InputArtifact,
    pub sha256: Sha256Digest,
}

/// A package of an earlier set.
#[derive(Debug, Serialize, Display)]
#[display("{package} {version}")]
pub struct EarlierPackage {
    pub package: PackageName,
    /// The version in the earlier set.
    pub version: String,
}

/// `EI_CLASS` of 32-bit and 64-bit files.
const CLASSES: [(u8, u8); 2] = [(1, 32), (2, 64)];
/// `EI_DATA` of little-endian and big-endian files.
const LITTLE_ENDIAN: u8 = 1;
const BIG_ENDIAN: u8 = 2;
/// `e_machine` of x86-64, the machine that packages are for.
const X86_64: u16 = 62;
/// `e_machine` of AMDGPU: device code, which has other rules.
const AMDGPU: u16 = 224;

/// Machine names by `e_machine`, sorted. Machines that differ only in word size share a name.
const NAMES: [(u16, &str); 24] = [
    (2, "SPARC"),
    (3, "x86"),
    (4, "Motorola 68000"),
    (8, "MIPS"),
    (15, "PA-RISC"),
    (18, "SPARC v8plus"),
    (20, "PowerPC"),
    (21, "PowerPC"),
    (22, "S/390"),
    (40, "Arm"),
    (42, "SuperH"),
    (43, "SPARC"),
    (50, "Itanium"),
    (X86_64, "x86-64"),
    (83, "AVR"),
    (94, "Xtensa"),
    (164, "Hexagon"),
    (183, "AArch64"),
    (190, "CUDA"),
    (AMDGPU, "AMDGPU"),
    (243, "RISC-V"),
    (247, "BPF"),
    (252, "C-SKY"),
    (258, "LoongArch"),
];

/// The machine that an ELF file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ElfMachine {
    /// `e_machine`.
    pub number: u16,
    /// Width of addresses in bits: 32 or 64.
    pub bits: u8,
    pub big_endian: bool,
}

impl ElfMachine {
    /// From `EI_CLASS`, `EI_DATA` and the bytes of `e_machine`; `None` if one of the first two is invalid.
    pub fn new(class: u8, data: u8, machine: [u8; 2]) -> Option<Self> {
        let (_, bits) = CLASSES.into_iter().find(|(known, _)| *known == class)?;
        let (number, big_endian) = match data {
            LITTLE_ENDIAN => (u16::from_le_bytes(machine), false),
            BIG_ENDIAN => (u16::from_be_bytes(machine), true),
            _ => return None,
        };
        Some(Self { number, bits, big_endian })
    }

    /// Whether packages may contain files for this machine without `other_machines`: x86-64 and AMDGPU.
    pub fn is_packaged(self) -> bool {
        [X86_64, AMDGPU].contains(&self.number) && self.bits == 64 && !self.big_endian
    }
}

impl fmt::Display for ElfMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.big_endian {
            f.write_str("big-endian ")?;
        }
        if self.bits == 32 {
            f.write_str("32-bit ")?;
        }
        match NAMES.iter().find(|(number, _)| *number == self.number) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "machine {}", self.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_by_number() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn class_and_byte_order_are_part_of_the_name() {
        for (class, data, machine, name, packaged) in [
            (2, 1, [62, 0], "x86-64", true),
            (2, 1, [224, 0], "AMDGPU", true),
            (1, 1, [62, 0], "32-bit x86-64", false),
            (1, 1, [224, 0], "32-bit AMDGPU", false),
            (2, 2, [0, 62], "big-endian x86-64", false),
            (1, 1, [3, 0], "32-bit x86", false),
            (2, 1, [183, 0], "AArch64", false),
            (2, 2, [0, 21], "big-endian PowerPC", false),
            (2, 1, [21, 0], "PowerPC", false),
            (1, 2, [0, 20], "big-endian 32-bit PowerPC", false),
            (2, 1, [247, 0], "BPF", false),
            (2, 1, [0, 0], "machine 0", false),
            (2, 1, [0x34, 0x12], "machine 4660", false),
        ] {
            let found = ElfMachine::new(class, data, machine).unwrap();
            assert_eq!((found.to_string().as_str(), found.is_packaged()), (name, packaged));
        }
        for (class, data) in [(0, 1), (3, 1), (2, 0), (2, 3)] {
            assert_eq!(ElfMachine::new(class, data, [62, 0]), None);
        }
    }
}
