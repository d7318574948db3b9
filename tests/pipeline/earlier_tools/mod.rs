//! Failures of earlier tools that no feature's test rules out, shown from outside to be impossible.
//! `tests/relapses/README.md` lists all such failures with their tests; each `tests/relapses/*.patch` undoes
//! one fix.

mod generic;
mod output;
mod units;
