//! Findings in the hands of a maintainer: those that explain an error are shown before it, and those
//! that are accepted are shown as such.

mod accepted;
mod explained;
