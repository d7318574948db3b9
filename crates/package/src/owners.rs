//! Finds packages of a repository that own one path, and so cannot be installed together, or updated.
//!
//! | | reported if | not reported if |
//! |---|---|---|
//! | the newest versions of both names have the path, or neither has it | both can be installed: dpkg stops midway, rpm stops if the files differ | one has Conflicts, Breaks, Replaces or Obsoletes for the other, or their dependencies on exact versions, followed once, exclude each other |
//! | the newest version of a name no longer has the path, and another name has it | the packages are `.deb`: dpkg stops at the update | the new owner Replaces the former one, or one conflicts with the other; the packages are `.rpm`, because rpm updates all at once |
//!
//! Identical files and links of two `.rpm`, as debug packages have them by build-id, are not reported,
//! because rpm installs both. Directories, two packages of one name (they replace each other) and packages
//! for two architectures are not judged.
//!
//! Required paths are judged, too: those for which clients of an rpm repository do not find the package.
//!
//! Sources: Debian policy 7.6.1; dpkg's refusal to overwrite.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rockpack_archive::path_digests::{PathDigests, path_digest};
use rockpack_archive::rpm::{RpmFront, differing_paths};
use rockpack_archive::rpm_md::is_unlisted_path;
use rockpack_core::content::Content;
use rockpack_core::error::Result;

use super::offered::OfferedPackage;
use super::requirement::Requirement;
use super::resolver::for_all_machines;
use super::{Format, RelationKind};

/// Owners of the same path that each owner is compared with, nearest version first: more than the versions
/// of two packages that a repository keeps, and a bound for hostile input.
const COMPARED_MAX: usize = 64;

/// The maximum number of reported pairs.
const REPORTED_MAX: usize = 1000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner<'a> {
    /// The package; only needs, exclusions, replacements and provisions count.
    pub package: OfferedPackage<'a>,
    /// Numbers of the files and links that the package owns.
    pub paths: Cow<'a, PathDigests>,
    /// Numbers of the other paths of an `.rpm`, which several may have: directories and ghosts.
    pub shared: Vec<u64>,
}

/// The way in which two packages obstruct each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathConflictKind {
    /// Both can be installed, and both own the path.
    BothInstallable,
    /// The second package takes the path from the first, which has a newer version in the repository.
    Moved,
}

/// Two packages that own a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathConflict {
    pub kind: PathConflictKind,
    /// Position of the one package, or of the former owner of a moved path.
    pub first: usize,
    /// Position of the other package.
    pub second: usize,
    /// The number of the path.
    pub path: u64,
}

/// The first obstacle for each pair of names in `owners`, all packages of one format in a repository.
/// `differ` tells whether two packages, given by position, differ at the path of a number.
pub fn path_conflicts(
    format: Format,
    owners: &[Owner<'_>],
    mut differ: impl FnMut((usize, usize), u64) -> bool,
) -> Vec<PathConflict> {
    // Packages of one version come together, because they are most likely installed together.
    let mut order: Vec<usize> = (0..owners.len()).collect();
    order.sort_by(|one, other| {
        let (one, other) = (&owners[*one].package, &owners[*other].package);
        let versions = format.compare_versions(&one.version, &other.version);
        versions.then_with(|| one.name.cmp(other.name))
    });
    let finder = ConflictFinder::new(format, order.iter().map(|at| &owners[*at]).collect());
    let found = finder.found(&mut |(one, other), path| differ((order[one], order[other]), path));
    let mut found: Vec<PathConflict> = found.into_values().collect();
    for shared in &mut found {
        (shared.first, shared.second) = (order[shared.first], order[shared.second]);
    }
    found.sort_unstable();
    found
}

/// The numbers of paths that start with these three bits, each with the position of an owner, sorted. All paths at
/// once would take too much memory.
fn rows(owners: &[&Owner<'_>], bits: u64) -> Vec<(u64, u32)> {
    let mut rows = Vec::new();
    for (at, owner) in (0..).zip(owners) {
        let paths = owner.paths.iter().filter(|path| path >> 45 == bits);
        rows.extend(paths.map(|path| (path, at)));
    }
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Obstacles by kind and the names of the two packages.
type Found<'a> = BTreeMap<(PathConflictKind, &'a str, &'a str), PathConflict>;

struct ConflictFinder<'a> {
    format: Format,
    owners: Vec<&'a Owner<'a>>,
    by_name: BTreeMap<&'a str, Vec<usize>>,
    /// The position of the highest version, by name and architecture.
    highest: BTreeMap<(&'a str, &'a str), usize>,
}

impl<'a> ConflictFinder<'a> {
    fn new(format: Format, owners: Vec<&'a Owner<'a>>) -> Self {
        let (mut by_name, mut highest) = (BTreeMap::<_, Vec<usize>>::new(), BTreeMap::new());
        for (at, owner) in owners.iter().enumerate() {
            let OfferedPackage { name, version, arch, .. } = &owner.package;
            by_name.entry(*name).or_default().push(at);
            let best = highest.entry((*name, *arch)).or_insert(at);
            if format.compare_versions(version, &owners[*best].package.version).is_gt() {
                *best = at;
            }
        }
        Self { format, owners, by_name, highest }
    }

    fn found(&self, differ: &mut dyn FnMut((usize, usize), u64) -> bool) -> Found<'a> {
        let (mut found, mut seen) = (Found::new(), HashMap::new());
        for rows in (0..8).map(|bits| rows(&self.owners, bits)) {
            for run in rows.chunk_by(|(one, _), (other, _)| one == other) {
                let at: Vec<usize> = run.iter().map(|(_, at)| *at as usize).collect();
                for (place, second) in at.iter().enumerate() {
                    if found.len() >= REPORTED_MAX {
                        return found;
                    }
                    let near = at[..place].iter().rev().take(COMPARED_MAX);
                    let pairs = near.map(|first| (*first, *second));
                    for shared in pairs.filter_map(|pair| self.pair(run[0].0, &at, pair, &mut seen))
                    {
                        let [one, other] = [shared.first, shared.second];
                        let key = (shared.kind, self.name(one), self.name(other));
                        if !found.contains_key(&key) && differ((one, other), shared.path) {
                            found.insert(key, shared);
                        }
                    }
                }
            }
        }
        found
    }

    fn name(&self, at: usize) -> &'a str {
        self.package(at).name
    }

    fn package(&self, at: usize) -> &'a OfferedPackage<'a> {
        &self.owners[at].package
    }

    /// The obstacle that `path` is for two packages, if any. `run` has the positions of all its owners.
    fn pair(
        &self,
        path: u64,
        run: &[usize],
        (one, other): (usize, usize),
        seen: &mut HashMap<(usize, usize), bool>,
    ) -> Option<PathConflict> {
        let (a, b) = (self.package(one), self.package(other));
        if a.name == b.name || !self.is_for_one_machine(a, b) {
            return None;
        }
        let (keeps_a, keeps_b) = (self.highest_is_in(run, a), self.highest_is_in(run, b));
        let (moved, first, second) = match (keeps_a, keeps_b) {
            (true, false) => (true, other, one),
            (false, true) => (true, one, other),
            (true, true) | (false, false) => (false, one, other),
        };
        // Clients that get the path get the newest version of its owner.
        if moved && !self.is_highest(second) {
            return None;
        }
        let kind = if moved { PathConflictKind::Moved } else { PathConflictKind::BothInstallable };
        let excused = seen.entry((first, second)).or_insert_with(|| {
            if moved { self.yields_path(first, second) } else { self.excludes(first, second) }
        });
        (!*excused).then_some(PathConflict { kind, first, second, path })
    }

    fn highest_is_in(&self, run: &[usize], package: &OfferedPackage<'_>) -> bool {
        let best = self.highest.get(&(package.name, package.arch));
        best.is_some_and(|best| run.binary_search(best).is_ok())
    }

    fn is_highest(&self, at: usize) -> bool {
        let own = self.package(at);
        let highest = self.highest.get(&(own.name, own.arch));
        highest.is_some_and(|best| self.package(*best).version == own.version)
    }

    fn is_for_one_machine(&self, a: &OfferedPackage<'_>, b: &OfferedPackage<'_>) -> bool {
        let all = for_all_machines(self.format);
        (a.arch == b.arch || a.arch == all || b.arch == all) && a.arch != "src" && b.arch != "src"
    }

    /// Whether an update succeeds in which a path moves from `former` to `new`.
    fn yields_path(&self, former: usize, new: usize) -> bool {
        use RelationKind::{Conflicts, Replaces};
        let (former, new) = (self.package(former), self.package(new));
        self.format == Format::Rpm
            || new.relates_to(self.format, &[Conflicts, Replaces], former)
            || former.relates_to(self.format, &[Conflicts], new)
    }

    /// Whether two packages cannot be installed together, or one may overwrite the other.
    fn excludes(&self, one: usize, other: usize) -> bool {
        use RelationKind::{Breaks, Conflicts, Obsoletes, Replaces};
        let (a, b) = (self.package(one), self.package(other));
        let direct = [Conflicts, Breaks, Obsoletes, Replaces];
        let relate = |one: &OfferedPackage<'_>,
                      other: &OfferedPackage<'_>,
                      kinds: &[RelationKind]| {
            one.relates_to(self.format, kinds, other) || other.relates_to(self.format, kinds, one)
        };
        if relate(a, b, &direct) {
            return true;
        }
        let (needed_a, needed_b) = (needed(a), needed(b));
        let differ = needed_a.iter().any(|(name, version)| {
            let other = needed_b.get(name);
            other.is_some_and(|other| self.format.compare_versions(version, other).is_ne())
        });
        if differ {
            return true;
        }
        let kinds = [Conflicts, Breaks, Obsoletes];
        let (with_a, with_b) = (self.of(&needed_a), self.of(&needed_b));
        let mut pairs = with_a.iter().flat_map(|one| with_b.iter().map(move |other| (one, other)));
        pairs.any(|(&one, &other)| one.name != other.name && relate(one, other, &kinds))
    }

    /// The packages with these names and versions.
    fn of(&self, needed: &BTreeMap<&str, &str>) -> Vec<&OfferedPackage<'a>> {
        let owners = needed.iter().flat_map(|(name, version)| {
            let named = self.by_name.get(*name).map_or(&[][..], Vec::as_slice).iter();
            let owners = named.map(|at| self.package(*at));
            let version = (*version).to_owned();
            owners.filter(move |it| self.format.compare_versions(&it.version, &version).is_eq())
        });
        owners.collect()
    }
}

/// The package's own version, and the versions that it needs exactly.
fn needed<'o>(package: &'o OfferedPackage<'_>) -> BTreeMap<&'o str, &'o str> {
    let bounds = package.relations.needs().filter_map(Requirement::bound);
    let exact = bounds.filter_map(|bound| Some((&*bound.name, bound.exact()?)));
    exact.chain([(package.name, &*package.version)]).collect()
}

/// Whether the files of two `.rpm` packages, given by position, differ at the path of a number, for
/// [`path_conflicts`]. rpm installs two packages with the same path if the files are identical. Reads packages with `open`,
/// each pair once; a package that cannot be read differs from all.
pub fn differing_files(
    open: impl Fn(usize) -> Option<Content>,
) -> impl FnMut((usize, usize), u64) -> bool {
    let mut pairs: HashMap<(usize, usize), Option<BTreeSet<u64>>> = HashMap::new();
    move |(one, other), path| {
        let paths =
            pairs.entry((one, other)).or_insert_with(|| differing(&open(one)?, &open(other)?).ok());
        paths.as_ref().is_none_or(|paths| paths.contains(&path))
    }
}

fn differing(one: &Content, other: &Content) -> Result<BTreeSet<u64>> {
    let paths = differing_paths(&RpmFront::read(one)?, &RpmFront::read(other)?)?;
    Ok(paths.iter().map(|path| path_digest(path)).collect())
}

/// Calls `found` with each required path for which clients of an rpm repository find no package, although one has
/// it; with the position of an owner, and those of the packages that require it. dnf and zypper look among what
/// packages provide and the files in `primary`, which lists only some.
pub fn each_hidden_path(owners: &[Owner<'_>], mut found: impl FnMut(&str, usize, &[usize])) {
    let relations = || owners.iter().map(|owner| &owner.package.relations);
    let provides = relations().flat_map(|it| it.bounds(RelationKind::Provides));
    let provided: HashSet<&str> = provides.map(|bound| &*bound.name).collect();
    let mut open: BTreeMap<u64, (String, Vec<usize>)> = BTreeMap::new();
    for (at, relations) in relations().enumerate() {
        let is_provided = |name: &str| provided.contains(name);
        for path in relations.needs().flat_map(|need| unmet_paths(need, is_provided)) {
            open.entry(path_digest(&path)).or_insert((path, Vec::new())).1.push(at);
        }
    }
    for (at, owner) in owners.iter().enumerate() {
        let paths = owner.paths.iter().chain(owner.shared.iter().copied());
        for (path, requirers) in paths.filter_map(|path| open.remove(&path)) {
            found(&path, at, &requirers);
        }
    }
}

/// The paths outside of `primary` that nothing provides and a requirement needs, unless another name meets
/// it. Without its condition, a requirement is met.
pub fn unmet_paths(
    requirement: &Requirement<'_>,
    is_provided: impl Fn(&str) -> bool,
) -> Vec<String> {
    let bounds = requirement.bounds().into_iter().map(|bound| &*bound.name);
    let open = bounds.filter(|name| is_unlisted_path(name) && !is_provided(name));
    let paths: Vec<String> = open.map(str::to_owned).collect();
    if paths.is_empty() || matches!(requirement, Requirement::If(_)) {
        return Vec::new();
    }
    let holds = requirement.holds(&|bound| Some(is_provided(&bound.name)));
    if holds == Some(false) { paths } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::requirement::Relations;
    use super::*;
    use RelationKind::{Breaks, Conflicts, Depends, Obsoletes, Provides, Replaces};

    fn owner(name: &'static str, version: &'static str, paths: &[u64]) -> Owner<'static> {
        let package = OfferedPackage {
            name,
            version: version.into(),
            arch: "x",
            ..OfferedPackage::default()
        };
        let paths = Cow::Owned(PathDigests::of_digests(paths.to_vec()));
        Owner { package, paths, shared: Vec::new() }
    }

    fn with(mut owner: Owner<'static>, kind: RelationKind, list: &'static str) -> Owner<'static> {
        let new = Requirement::of_field(list).into_iter().map(|it| (kind, it));
        let old = std::mem::take(&mut owner.package.relations);
        owner.package.relations = Relations::of(old.into_iter().chain(new));
        owner
    }

    fn told(format: Format, owners: &[Owner<'_>]) -> Vec<(PathConflictKind, String, String)> {
        let shared = path_conflicts(format, owners, |_, _| true).into_iter();
        let told = shared.map(|it| {
            let [first, second] = [it.first, it.second].map(|at| &owners[at]);
            (it.kind, first.package.name_and_version(), second.package.name_and_version())
        });
        told.collect()
    }

    #[test]
    fn two_names_with_one_path_are_told_once() {
        let [a, b] = ["a", "b"].map(|name| owner(name, "1-1", &[1, 2, 3]));
        let expected =
            vec![(PathConflictKind::BothInstallable, "a 1-1".to_owned(), "b 1-1".to_owned())];
        for format in Format::ALL {
            assert_eq!(told(format, &[a.clone(), owner("c", "1", &[4]), b.clone()]), expected);
            for (kind, list) in [
                (Conflicts, "b"),
                (Replaces, "b (<= 1-1)"),
                (Breaks, "b (= 1-1)"),
                (Obsoletes, "b"),
            ] {
                let excused = with(a.clone(), kind, list);
                assert!(told(format, &[excused.clone(), b.clone()]).is_empty(), "{list}");
                assert!(told(format, &[b.clone(), excused]).is_empty(), "{list}");
            }
            let other = with(a.clone(), Conflicts, "b (<< 1-1), c, d | b");
            assert_eq!(told(format, &[other, b.clone()]), expected);
            // A capability can conflict, but replaces nothing.
            let offers = with(b.clone(), Provides, "v");
            assert!(told(format, &[with(a.clone(), Conflicts, "v"), offers.clone()]).is_empty());
            assert_eq!(told(format, &[with(a.clone(), Replaces, "v"), offers]), expected);
            let mut other_machine = b.clone();
            other_machine.package.arch = "y";
            assert!(told(format, &[a.clone(), other_machine]).is_empty());
            let newer = owner("a", "2-1", &[1, 2, 3]);
            assert!(told(format, &[a.clone(), newer]).is_empty(), "one name");
        }
    }

    #[test]
    fn dependencies_on_exact_versions_are_followed_once() {
        let [a, b] = ["a", "b"].map(|name| owner(name, "1-1", &[1]));
        let c = owner("c", "1-1", &[]);
        assert!(is_silent(&[needs(&a, "c (= 1-1)"), needs(&b, "c (= 2-1)")]), "two versions of c");
        assert!(is_silent(&[needs(&a, "b (= 2-1)"), b.clone()]), "another version of itself");
        assert!(!is_silent(&[needs(&a, "c (= 1-1)"), needs(&b, "c (= 1-1)"), c.clone()]));
        assert!(!is_silent(&[needs(&a, "c (>= 1-1)"), needs(&b, "c (= 2-1)")]), "not exact");
        let against = with(c.clone(), Conflicts, "b");
        assert!(is_silent(&[needs(&a, "c (= 1-1)"), b.clone(), against.clone()]));
        assert!(!is_silent(&[needs(&a, "c (= 2-1)"), b.clone(), against.clone()]), "not there");
        let between = needs(&owner("d", "1-1", &[]), "c (= 1-1)");
        assert!(!is_silent(&[needs(&a, "d (= 1-1)"), b, against, between]), "followed twice");
    }

    fn needs(owner: &Owner<'static>, list: &'static str) -> Owner<'static> {
        with(owner.clone(), Depends, list)
    }

    fn is_silent(owners: &[Owner<'_>]) -> bool {
        told(Format::Deb, owners).is_empty()
    }

    #[test]
    fn a_path_that_moves_is_replaced() {
        let taker = owner("b", "2-1", &[1]);
        let moved = vec![(PathConflictKind::Moved, "a 1-1".to_owned(), "b 2-1".to_owned())];
        assert_eq!(told(Format::Deb, &left_to(taker.clone())), moved);
        assert!(told(Format::Rpm, &left_to(taker.clone())).is_empty());
        let breaks = with(taker.clone(), Breaks, "a (<< 2-1)");
        assert_eq!(told(Format::Deb, &left_to(breaks.clone())), moved, "dpkg still refuses it");
        assert!(told(Format::Deb, &left_to(with(breaks, Replaces, "a (<< 2-1)"))).is_empty());
        assert_eq!(told(Format::Deb, &left_to(with(taker.clone(), Replaces, "a (<< 1-1)"))), moved);
        let conflicts = with(taker.clone(), Conflicts, "a (<< 2-1)");
        assert!(told(Format::Deb, &left_to(conflicts)).is_empty());
        // Without a newer version of the former owner, both packages can be installed.
        let [old, _, taker] = left_to(taker);
        assert_eq!(told(Format::Rpm, &[old, taker])[0].0, PathConflictKind::BothInstallable);
    }

    /// Two versions of `a`; the newer one leaves path 1 to `taker`.
    fn left_to(taker: Owner<'static>) -> [Owner<'static>; 3] {
        [owner("a", "1-1", &[1, 2]), owner("a", "2-1", &[2]), taker]
    }

    #[test]
    fn one_path_of_many_packages_takes_no_time() {
        let owners: Vec<Owner<'_>> = (0..2_000)
            .map(|at| {
                let owner = owner(format!("p{at}").leak(), "1", &[1, 2, 3, 4]);
                with(owner, Conflicts, "other")
            })
            .collect();
        let told = path_conflicts(Format::Deb, &owners, |_, _| true).len();
        assert!((REPORTED_MAX..REPORTED_MAX + COMPARED_MAX).contains(&told), "{told}");
    }
}
