//! Settings: command line, environment, configuration, naming scheme and defaults, resolved to one value of
//! checked parts.
//!
//! [`Keys`](rockpack_plan::config::Keys) declares the keys of the configuration. Each command declares its other
//! options. Everything that can be refused without input is refused here, before a shard, a package or an
//! earlier set is opened. Faults of several settings are reported together, but the first fault ends the
//! reading of a file that cannot be parsed, of the templates of a naming scheme, and of the further keys of a
//! repository. The stage that knows the input refuses the rest, such as a primary shard that does not exist.

mod build;
mod cost;
mod discover;
mod environment;
mod given;
mod memory;
mod named;
mod origin;
mod output_path;
mod publish;
mod recombine;
mod repo;
mod schema;
mod set;
mod show;
mod signing;
mod split;
mod targets;
mod verify;
mod wheel;

pub use build::{BuildArguments, BuildSettings, CacheSettings, OutputSettings};
pub use cost::CostSettings;
pub use discover::{DiscoverArguments, DiscoverSettings, ProposalPlace};
pub use environment::{Environment, Now};
pub use given::GivenOptions;
pub use memory::MemoryArguments;
pub use origin::{Origin, Resolved};
pub use output_path::output_path;
pub use publish::{PublicationArguments, PublishRequest, PublishSettings};
pub use recombine::RecombineArguments;
pub use repo::{RepoArguments, RepoSettings};
pub use schema::{KeyDefault, KeyDocument, keys, schema, table};
pub use set::{SetArguments, SetSettings};
pub use signing::SigningArguments;
pub use split::SplitArguments;
pub use targets::target_id;
pub use verify::{VerifyArguments, VerifySettings};
pub use wheel::{WheelArguments, WheelSettings};
