//! Repositories from outside: `rockpack repo` on packages of several tools, judged by the tools
//! that index packages and by the clients that install from repositories.
#![allow(clippy::unwrap_used)] // a test that panics has failed

#[path = "../support/bases.rs"]
mod bases;
#[path = "../support/example.rs"]
mod example;
#[path = "../support/repo_fixture.rs"]
mod fixture;
#[path = "../support/keys.rs"]
mod keys;
#[path = "../support/packages.rs"]
mod packages;
#[path = "../support/published.rs"]
mod published;
#[path = "../support/tools.rs"]
mod tools;

mod again;
mod clients_apt;
mod clients_rpm;
mod faults;
mod figures;
mod foreign;
mod interrupted;
mod key_lives;
mod parity_apt;
mod parity_rpm;
mod pool;
mod refused;
mod server;
mod signed;
mod twice;
mod verified;
