//! Builds that share their work: with earlier ones, by a cache, and with other machines, by parts.

mod cache;
mod logs;
mod partition;
