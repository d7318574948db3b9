//! Findings as a maintainer sees them: an error's explaining findings come before it, and accepted ones are
//! marked.

mod accepted;
mod explained;
