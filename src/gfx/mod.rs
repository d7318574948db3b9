//! GPU targets: target IDs, base archs, features.
//!
//! Source: the AMDGPU chapter of LLVM's user guide ("Processors", "Target ID"), and code objects
//! of two compiler generations. This module owns spellings and comparison of targets; it knows
//! nothing of files.

mod family;
mod features;
mod groups;
mod spelling;
mod table;
mod target;

pub use family::Family;
pub use groups::{ProductGroup, product_groups};
pub use spelling::{arch_at_start, arch_of_sanitized, family_members};
pub use table::{Processor, archs_in, describe, mach_of, processor, processors};
pub use target::{BaseArch, FEATURES, SPIRV, Target};
