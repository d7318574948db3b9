//! Builds that share their work: with earlier ones, by a cache, and with other machines, by parts.

mod arrays;
mod cache;
mod logs;
mod partition;
