//! Bytes ↔ types. Each module opens with its byte table and the source of that knowledge; none
//! decides policy and none touches a path.

pub mod elf;
pub mod hip_wrapper;
pub mod marker;
