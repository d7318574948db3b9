//! The `rockpack` command.

fn main() {}
