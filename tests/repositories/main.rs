//! Repositories from outside: `rockpack repo` on packages of several tools, judged by the tools
//! that index packages and by the clients that install from repositories.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail by panics")]

#[macro_use]
extern crate support;

mod again;
mod broken_off;
mod budget;
mod client_files;
mod clients_apt;
mod clients_rpm;
mod deb_fields;
mod digests;
mod figures;
mod flips;
mod follows;
mod foreign;
mod hardware;
mod interrupted;
mod judged;
mod key_lives;
mod members;
mod modes;
mod others;
mod owners;
mod page;
mod parity_apt;
mod parity_rpm;
mod pool;
mod python;
mod receipts;
mod refused;
mod server;
mod signed;
mod signers;
mod states;
mod twice;
mod two_keys;
mod unsigned;
mod updates;
mod upload;
mod verified;
mod versions;
mod weak_keys;

support::main!();
