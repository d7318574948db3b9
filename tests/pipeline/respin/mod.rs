//! Builds that share work: with earlier ones through a cache, with other machines through parts.

mod arrays;
mod cache;
mod logs;
mod many;
mod partition;
