//! GPU targets: target IDs, base archs, features, and the code that a device can run.
//!
//! Source: the AMDGPU chapter of LLVM's user guide ("Processors", "Target ID"), and code objects of two
//! compiler generations.

mod compatible;
mod features;
mod id;

pub use compatible::{CompatibleTarget, TRIPLE_PREFIX, compatible};
pub use id::{BaseArch, FEATURES, NoTarget, SPIRV, Target, last_feature};
