//! The index of wheels: made by `rockpack repo`, read by pip and uv.

mod archives;
pub mod clients;
mod kept;
pub mod order;
mod pages;
mod passed_over;
mod refused;
mod sources;
pub mod wheels;
