//! Archives, markers and targets as a runtime reads them: damaged, in unusual forms, and of hostile sizes.

#![allow(clippy::unwrap_used, reason = "a failed expectation of a test is a failure")]

mod damage;
mod lenient;
mod memory;
mod support;
