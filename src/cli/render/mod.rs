//! The results of every subcommand in words, with one common style.
//!
//! Most lines have names and texts from input. Every such line goes through `text_line!` and every cell
//! through a table, which escape control characters.

#[macro_use]
mod text_line;

mod build;
mod command;
mod difference;
mod directories;
mod discover;
mod explain;
mod extract;
mod inspect;
pub mod kpm;
mod plan;
mod repo;
mod settings;
mod summary;
mod table;
pub mod units;
mod verify;
mod wheels;

pub use build::{build_end, build_text};
pub use difference::difference_text;
pub use directories::{DirectoriesReport, directories_text};
pub use discover::{discovery_text, proposal_reasons};
pub use explain::{EXPLAIN, codes_text, explanation_text};
pub use extract::extract_text;
pub use inspect::inspect_text;
pub use plan::{plan_dot, plan_text};
pub use repo::{published_end, published_text};
pub use settings::settings_text;
pub use summary::{stage_text, summary_text};
pub use verify::verify_text;
pub use wheels::wheels_text;
