//! Refuses a publication after which packages need what the repository does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::error::{Error, Kind, Result};

use super::channel::Channel;
use super::input::GivenPackage;
use super::options::RepoOptions;
use super::releases;
use super::state::PoolRecords;
use super::updates::offered;
use rockpack_package::requirement::Bound;
use rockpack_package::resolver::{Origin, Resolver, by_machine, each_unmet};
use rockpack_report::words::{counted, few};

/// The hint for requirements that nothing meets.
pub(super) const UNMET_HINT: &str = "give what is needed to the same run of `repo`, or take out what needs it, too (--remove NAME, for each); \
     --allow-unmet publishes all the same";

/// The packages that have a requirement, by the requirement and the package of their receipt that it is on.
type Needed<'a> = BTreeMap<(String, Option<&'a String>), BTreeSet<String>>;

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
    let mut needed = Needed::new();
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
    Error::gather(faults(channel, needed)).map_or(Ok(()), Err)
}

/// One error for all requirements that the same packages have on the same package.
fn faults(channel: &Channel, needed: Needed<'_>) -> Vec<Error> {
    let mut together: BTreeMap<(Option<&String>, BTreeSet<String>), Vec<String>> = BTreeMap::new();
    for ((requirement, sibling), by) in needed {
        together.entry((sibling, by)).or_default().push(requirement);
    }
    let faults = together.into_iter().map(|((sibling, by), requirements)| {
        let file = sibling.map(|file| format!("; {file} is not given")).unwrap_or_default();
        let by: Vec<String> = by.into_iter().collect();
        let (count, by) = (counted(by.len(), "package"), few(&by, 3));
        let needed = requirements.join(" and ");
        let message =
            format!("the repository would not have {needed}, needed by {count} ({by}){file}");
        Error::new(Kind::Conflict, message).structure(channel.name()).hint(UNMET_HINT)
    });
    faults.collect()
}
