//! Refuses a publication after which packages need what the repository does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_base::error::{Error, Kind, Result};

use super::channel::Channel;
use super::input::GivenPackage;
use super::options::RepoOptions;
use super::releases;
use super::state::PoolRecords;
use super::updates::offered;
use crate::package::requirement::Bound;
use crate::package::resolver::{Origin, Resolver, by_machine, each_unmet};
use crate::report::words::{counted, few};

/// The hint for requirements that nothing meets.
pub(super) const UNMET_HINT: &str = "publish what is needed in the same run, or remove what needs it as well (--remove NAME, for each); \
     --allow-unmet publishes all the same";

/// Fails if packages of `next` have requirements that no package of the channel meets and that only this
/// repository can meet: new packages on their own source or on a member of their receipt, packages that stay on
/// one that is removed. `verify` reports requirements that were not met in `earlier` either.
pub(super) fn check(
    channel: &Channel,
    earlier: &PoolRecords,
    next: &PoolRecords,
    given: &[&GivenPackage],
    options: &RepoOptions<'_>,
) -> Result<()> {
    if options.changes.allow_unmet || earlier.keys().eq(next.keys()) {
        return Ok(());
    }
    let Some(format) = channel.format() else { return releases::check_hosts(earlier, next) };
    let siblings = given.iter().map(|given| &given.siblings);
    let paths = given.iter().map(|given| given.indexed.facts.pool_path(&options.component));
    let siblings: BTreeMap<String, _> = paths.zip(siblings).collect();
    let removes = earlier.keys().any(|path| !next.contains_key(path));
    let [before, after] = [earlier, next]
        .map(|records| offered(&records.values().map(Arc::as_ref).collect::<Vec<_>>()));
    let [old, new] = [earlier, next].map(|records| records.keys().collect::<Vec<_>>());
    let had = Resolver::new(format, before.iter().collect());
    let mut open = BTreeSet::new();
    each_unmet(format, &before, &by_machine(format, &before), |_, it| {
        open.insert((old[it.package], it.requirement));
    });
    let mut needed: BTreeMap<(String, Option<&String>), BTreeSet<String>> = BTreeMap::new();
    each_unmet(format, &after, &by_machine(format, &after), |_, it| {
        let (path, package) = (new[it.package], &after[it.package]);
        let named = siblings.get(path);
        let sibling_of = |bound: &Bound<'_>| named?.get(&(format, bound.name.to_string()));
        let is_own = |bound: &Bound<'_>| sibling_of(bound).is_some() || had.knows(&bound.name);
        // Another alternative may be in the distribution.
        let asks_others = it.requirement.holds(&|bound| is_own(bound).then_some(false)).is_none();
        let sibling = it.requirement.bounds().into_iter().find_map(sibling_of);
        let is_fault = if earlier.contains_key(path) {
            removes && !asks_others && !open.contains(&(path, it.requirement))
        } else {
            it.origin == Origin::SameSource || sibling.is_some() && !asks_others
        };
        if is_fault {
            let by = needed.entry((it.requirement.to_string(), sibling)).or_default();
            by.insert(package.name_and_version());
        }
    });
    let faults = needed.into_iter().map(|((requirement, sibling), by)| {
        let file = sibling.map(|file| format!("; {file} is not given")).unwrap_or_default();
        let by: Vec<String> = by.into_iter().collect();
        let (count, by) = (counted(by.len(), "package"), few(&by, 3));
        let message = format!(
            "{requirement} is needed by {count} ({by}), and the repository would not have it{file}"
        );
        Error::new(Kind::Conflict, message).structure(channel.name()).hint(UNMET_HINT)
    });
    Error::gather(faults.collect()).map_or(Ok(()), Err)
}
