//! Failures of earlier tools that no feature's test rules out, shown from outside to be impossible.

mod generic;
mod output;
mod units;
