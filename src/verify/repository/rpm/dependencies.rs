//! The requirements of packages on each other, for each machine.

use super::lists::RpmEntry;
use super::names::REPOMD;
use crate::package::Format;
use crate::package::offered::Offered;
use crate::package::resolver::{for_all_machines, machines};
use crate::verify::repository::closure;
use crate::verify::repository::context::Context;

/// More than any repository has; packages for all machines are checked with those of each.
const MACHINES_MAX: usize = 64;

pub(super) fn check(context: &mut Context<'_>, primary: &[RpmEntry], offered: &[Offered<'_>]) {
    let machines = machines(Format::Rpm, offered.iter().map(|package| package.arch));
    if machines.len() > MACHINES_MAX {
        let count = machines.len();
        let reason = format!("has packages for {count} architectures, more than {MACHINES_MAX}");
        context.bad_index(REPOMD, reason);
        return;
    }
    let together = machines.into_iter().map(|machine| {
        let archs = [machine, for_all_machines(Format::Rpm)];
        let positions = (0..offered.len()).filter(|at| archs.contains(&offered[*at].arch));
        (machine, positions.collect())
    });
    let path = |at: usize| primary[at].path.as_str();
    closure::check(context, Format::Rpm, offered, together.collect(), path);
}
