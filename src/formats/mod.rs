//! Bytes ↔ types. Each module opens with its byte table and the source of that knowledge; none
//! decides policy and none touches a path.

pub mod ccob;
pub mod code_object;
pub mod elf_sections;
pub mod fatbin;
pub mod loaded_code;
pub mod offload_bundle;
