//! Python wheels: what the wheels of a split one are (`plan`), the bytes of their members (`pack`), and the
//! files (`emit`).

pub mod emit;
pub mod pack;
pub mod plan;
