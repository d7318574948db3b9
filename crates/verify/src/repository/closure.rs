//! Dependencies within a repository.
//!
//! A dependency counts as one within the repository if the suite, or the rpm repository, has a package or
//! capability of that name at all, or if it asks for exactly one version, as packages of one set do of each
//! other. It must then be met by a package for the same architecture, in the same suite. All
//! others are on packages of the distribution, and are counted.

use std::collections::BTreeMap;

use rockpack_core::error::{Error, Kind, Result};

use super::context::Context;
use crate::problem::Problem;
use rockpack_package::Format;
use rockpack_package::offered::Offered;
use rockpack_package::resolver::{Origin, each_unmet};
use rockpack_report::words::either;

/// Bytes that a relation takes at least, on the average of a list of packages: lists of distributions
/// have more than a hundred. In memory it takes some hundred.
const SHORTEST: usize = 32;

/// Relations that any list may have, and those of one package: ten and more times what packages have.
const ASIDE: usize = 100_000;

/// Relations that a list of packages can still have.
pub(super) struct RelationsLeft(usize);

impl RelationsLeft {
    /// The bounds for a list of `len` bytes.
    pub fn of(len: usize) -> Self {
        Self(len / SHORTEST + ASIDE)
    }

    /// Takes one.
    pub fn take(&mut self) -> Result<()> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| {
            let message = "states more relations of packages than its bytes can describe";
            Error::new(Kind::Limit, message)
                .hint("the index is corrupt or hostile: publish it again")
        })?;
        Ok(())
    }
}

/// Reports the dependencies of `offered` that no package for the same machine meets. `machines` has the
/// positions of the packages for each, and `path` gives the path of a package by its position.
pub(super) fn check<'p>(
    context: &mut Context<'_>,
    format: Format,
    offered: &[Offered<'_>],
    machines: &BTreeMap<&str, Vec<usize>>,
    path: impl Fn(usize) -> &'p str,
) {
    each_unmet(format, offered, machines, |machine, unmet| {
        if unmet.origin == Origin::Elsewhere {
            context.report.elsewhere += 1;
            return;
        }
        let wanted = either(unmet.requirement.alternatives(), 5);
        let file = path(unmet.package).to_owned();
        // An index that is in no architecture's folder is for none.
        let machine = match machine {
            "" => String::new(),
            machine => format!(" for {machine}"),
        };
        let reason = format!("depends on {wanted}, which no package{machine} is");
        context.problems.add(Problem::DependencyOpen { file, reason });
    });
}
