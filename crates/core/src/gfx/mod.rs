//! GPU targets: their names, and their groups.
//!
//! [`rockpack_kpack::target`] defines target IDs. This module owns the tables of processors and products, and
//! the spellings in names of files and ids of bundle entries. It opens no file.

mod gpu_family;
mod groups;
mod schema;
mod spelling;
mod table;
mod windows;

pub use gpu_family::GpuFamily;
pub use groups::{Group, product_groups};
pub use rockpack_kpack::target::{BaseArch, FEATURES, NoTarget, SPIRV, Target};
pub use schema::BaseArchSchema;
pub use spelling::{
    arch_at_start, arch_family_label, arch_of_sanitized, archs_of_label, entry_target_text,
    members_of_arch_family, split_entry_id,
};
pub use table::{
    KNOWN_ARCHS, Processor, archs_in, describe, generic_of, is_known, is_plausible, known_archs,
    mach_of, plain, processor, processors,
};
pub use windows::archs_in_windows;

use crate::error::Error;

/// Makes an error for a text that is no target ID.
pub fn no_target(fault: NoTarget) -> Error {
    Error::malformed(fault.to_string()).hint(fault.hint())
}
