//! What a run is given: artifacts as build jobs leave them, Python wheels, and which of their files belong
//! to the databases of kernels that libraries read at run time.

pub mod artifact;
pub mod database;
pub mod wheel;
