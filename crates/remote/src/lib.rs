//! Artifacts in object stores and on web servers: addresses, listings, and the bytes of objects.
//!
//! ```text
//! s3://BUCKET/PREFIX       a bucket of Amazon S3, or of the server that AWS_ENDPOINT_URL names
//! https://HOST/PATH/       a listing of a bucket, an index page in HTML, or a text of addresses
//! ```
//!
//! Connects only to the hosts of the addresses, the endpoint and the proxy. Requests fail immediately or are retried,
//! as [`RetryPolicy`] defines, without requesting received bytes again. The size and the entity tag of an object are
//! recorded when it is first seen; if they change, that is an error of
//! [`Kind::Changed`](rockpack_core::error::Kind::Changed).
//!
//! Messages show addresses without their queries, which may contain signatures.

mod address;
mod client;
mod copy;
mod credentials;
mod listing;
mod object;
#[cfg(test)]
mod tests;

pub use address::Address;
pub use client::{Remote, RetryPolicy};
pub use copy::is_complete_copy;
pub use listing::{Listing, addresses};
pub use object::{Object, ObjectReader};
