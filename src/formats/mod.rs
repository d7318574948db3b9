//! Bytes ↔ types. Each module opens with its byte table and the source of that knowledge; none
//! decides policy and none touches a path.

pub mod ar;
pub mod compression;
pub mod deb;
pub mod payload;
pub mod rpm;
