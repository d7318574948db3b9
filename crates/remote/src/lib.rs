//! Artifacts in object stores and on web servers: addresses, listings, and the bytes of objects.
//!
//! ```text
//! s3://BUCKET/PREFIX       a bucket of Amazon S3, or of the server that AWS_ENDPOINT_URL names
//! https://HOST/PATH/       a listing of a bucket, an index page in HTML, or a text of addresses
//! ```
//!
//! Nothing is asked of any host but those of the addresses, the endpoint and the proxy. Requests fail at once, or are
//! repeated for a while, as [`Patience`] says; what arrived is not asked for again. The size and the entity tag of an
//! object are noted when it is first seen, and an object with other ones is an error of
//! [`Kind::Changed`](rockpack_core::error::Kind::Changed).
//!
//! Messages name addresses without their queries, which may have signatures.

mod address;
mod client;
mod copy;
mod credentials;
mod listing;
mod object;
#[cfg(test)]
mod tests;

pub use address::Address;
pub use client::{Patience, Remote};
pub use copy::is_copy;
pub use listing::{Listing, addresses};
pub use object::{Object, ObjectReader};
