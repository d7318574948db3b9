//! GPUs: products, PCI ids, and the targets that their code is compiled for.
//!
//! `table` is `config/gpus.toml`; `machine` reads the GPUs of a machine from sysfs. A GPU that neither the driver nor
//! the table knows has no target.

mod machine;
mod table;

pub use machine::{Gpu, KnownBy, Machine, Skipped};
pub use table::{
    Device, GpuTarget, VENDOR, device_by_pci_id, find_by_name, hardware, modaliases,
    names_with_prefix, product_and_chip_names, products, target_row,
};
