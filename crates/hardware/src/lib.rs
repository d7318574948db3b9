//! GPUs as people and machines know them: products, PCI ids, and the targets that their code is compiled for.
//!
//! `table` is `config/gpus.toml`; `machine` reads the GPUs of a machine from sysfs. Nothing here guesses: a GPU
//! that neither the driver nor the table names has no target.

mod machine;
mod table;

pub use machine::{Gpu, KnownBy, Machine, Skipped};
pub use table::{
    Device, GpuTarget, VENDOR, beginning, hardware, known_as, modaliases, named, of_arch, of_pci,
    products,
};
