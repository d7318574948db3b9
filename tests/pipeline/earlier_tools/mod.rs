//! Failures of earlier tools, shown from outside to be impossible, where no test of a feature does.
//! `tests/relapses/README.md` lists all of them with their tests; each `tests/relapses/*.patch` takes one fix away.

mod generic;
mod output;
mod units;
