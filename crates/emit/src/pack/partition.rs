//! The division of a set into parts for several machines.
//!
//! Packages that share compression are one unit: a host package with the kernel packages that depend on it,
//! and packages whose files refer to one set of kernel archives. Every other package is its own unit, so each
//! package is in exactly one part. In order of decreasing size, each unit goes to the part with the fewest bytes so
//! far; the same set gives the same parts on all machines. Sizes are those of the compressor's input: code objects
//! once, every other file once.
//!
//! Machines share only their input: each plans the whole set, and writes its own part. [`digest`] shows whether their
//! plans agree.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::hex;
use rockpack_core::error::{Error, Result};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::pack::Sources;
use rockpack_package::receipt::{PartRecord, SetPart};
use rockpack_package::{Format, Package, RelationKind, Role};
use rockpack_plan::recombine::Recombined;
use rockpack_plan::{FileSource, Plan};
use rockpack_report::Findings;

/// The packages that one machine builds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Share {
    /// Estimated work of the job: uncompressed bytes of its packages.
    pub bytes: u64,
    pub packages: BTreeSet<String>,
}

/// A part of a set as a job in the matrix of a CI system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Job {
    /// The value for `build --partition`, e.g. `1/3`.
    pub partition: String,
    /// The bytes to compress.
    pub bytes: u64,
    pub packages: BTreeSet<String>,
}

/// Divides the packages of `plan` into `of` parts; the last ones are empty if there are fewer units.
pub fn divide(recombined: &Recombined, plan: &Plan, of: u32) -> Result<Vec<Share>> {
    let mut units = units(recombined, plan)?;
    // No two units have the same packages, so there are no ties.
    units.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.packages.cmp(&b.packages)));
    let mut shares: Vec<Share> = (0..of).map(|_| Share::default()).collect();
    for unit in units {
        let lightest = shares.iter_mut().min_by_key(|share| (share.bytes, share.packages.len()));
        let share = lightest.ok_or_else(|| Error::bug("a set is cut into no parts"))?;
        share.bytes += unit.bytes;
        share.packages.extend(unit.packages);
    }
    Ok(shares)
}

/// The parts with packages, as jobs.
pub fn jobs(shares: Vec<Share>) -> Vec<Job> {
    let shares: Vec<Share> = shares.into_iter().filter(|s| !s.packages.is_empty()).collect();
    let of = shares.len();
    let jobs = shares.into_iter().enumerate().map(|(index, Share { bytes, packages })| {
        let partition = format!("{}/{of}", index + 1);
        Job { partition, bytes, packages }
    });
    jobs.collect()
}

/// Keeps only the packages of `part` in `plan`. Returns the record of the whole set, with `digest`.
pub fn keep(
    recombined: &Recombined,
    plan: &mut Plan,
    part: SetPart,
    digest: String,
) -> Result<PartRecord> {
    let shares = divide(recombined, plan, part.of)?;
    let record = record(plan, &shares, part, digest);
    let own = shares.into_iter().zip(1..).find(|(_, number)| *number == part.index);
    let (own, _) = own.ok_or_else(|| Error::bug(format!("there is no part {part}")))?;
    plan.keep(&own.packages);
    Ok(record)
}

fn record(plan: &Plan, shares: &[Share], part: SetPart, digest: String) -> PartRecord {
    let mut packages = BTreeMap::new();
    for (number, share) in (1..).zip(shares) {
        let own = plan.packages.iter().filter(|package| share.packages.contains(&package.id));
        for package in own {
            let deb = package.deb.as_ref().map(|control| control.file_name());
            let rpm = package.rpm.as_ref().map(|control| control.file_name());
            packages.extend(deb.into_iter().chain(rpm).map(|name| (name, number)));
        }
    }
    PartRecord { part, plan_sha256: digest, packages }
}

/// The digest of everything that determines the bytes of a set, with the sizes of files instead of their content.
/// `settings` is the text of the settings. Different versions of the program never agree.
pub fn digest(
    recombined: &Recombined,
    plan: &Plan,
    findings: &Findings,
    settings: &str,
) -> Result<String> {
    let sources = Sources::new(recombined, plan);
    let mut digest = Sha256::new();
    let mut add = |line: String| digest.update(line + "\n");
    // The debug forms have every field, including future ones.
    add(format!("{} {settings}", env!("CARGO_PKG_VERSION")));
    let Plan { packages, archives, prefix, version, content_date, .. } = plan;
    let Plan { rewritten, first_lines, compressed, left_out, .. } = plan;
    add(format!("{prefix:?} {version:?} {content_date} {rewritten:?} {compressed:?}"));
    add(format!("{first_lines:?} {left_out:?} {findings:?}"));
    for package in packages {
        add(format!("{package:?} {:?}", sizes(package, &sources)?));
    }
    for set in archives {
        add(format!("{set:?}"));
        for kernel in sources.kernels(set) {
            let (binary, index) = (&kernel.binary, kernel.co_index);
            let (target, shard, len) = (&kernel.target, &kernel.shard, kernel.content.len());
            add(format!("{binary} {index} {target} {shard} {len}"));
        }
    }
    Ok(hex(&digest.finalize()))
}

/// The sizes of a package's files that are known before packing.
fn sizes(package: &Package<FileSource>, sources: &Sources<'_>) -> Result<Vec<Option<u64>>> {
    let files = package.entries.iter().filter_map(|entry| entry.node.data());
    files.map(|source| sources.known_len(source)).collect()
}

fn units(recombined: &Recombined, plan: &Plan) -> Result<Vec<Share>> {
    let sources = Sources::new(recombined, plan);
    let mut joined = PackageUnits((0..plan.packages.len()).collect());
    let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, package) in plan.packages.iter().enumerate() {
        for set in package.entries.iter().filter_map(|entry| entry.node.data()?.archives()) {
            let owner = *owners.entry(set).or_insert(index);
            joined.join(index, owner);
        }
        for host in hosts(package, plan) {
            joined.join(index, host);
        }
    }
    let mut units: BTreeMap<usize, Share> = BTreeMap::new();
    for (index, package) in plan.packages.iter().enumerate() {
        let unit = units.entry(joined.root(index)).or_default();
        unit.bytes += sizes(package, &sources)?.into_iter().flatten().sum::<u64>();
        unit.packages.insert(package.id.clone());
    }
    for (name, index) in owners {
        let kernels = sources.kernels(sources.archive_set(name)?);
        if let Some(unit) = units.get_mut(&joined.root(index)) {
            unit.bytes += kernels.map(|kernel| kernel.content.len()).sum::<u64>();
        }
    }
    Ok(units.into_values().collect())
}

/// The packages with files that a kernel package depends on: its host, and kernels that it shares.
fn hosts<'a>(
    package: &'a Package<FileSource>,
    plan: &'a Plan,
) -> impl Iterator<Item = usize> + use<'a> {
    let is_kernels = package.role.kind().is_kernels();
    let relations = Format::ALL.into_iter().flat_map(|format| package.relations(format));
    let needed = relations.filter(|r| is_kernels && r.kind == RelationKind::Depends);
    let names: BTreeSet<&str> = needed.map(|relation| relation.name.as_str()).collect();
    let others =
        plan.packages.iter().enumerate().filter(|(_, other)| !matches!(other.role, Role::Meta));
    let hosts = others.filter(move |(_, other)| {
        Format::ALL.iter().filter_map(|format| other.name(*format)).any(|name| names.contains(name))
    });
    hosts.map(|(index, _)| index)
}

/// The units of packages: each index points to another package of its unit, the first to itself.
struct PackageUnits(Vec<usize>);

impl PackageUnits {
    fn root(&self, mut index: usize) -> usize {
        while let Some(next) = self.0.get(index).copied().filter(|next| *next != index) {
            index = next;
        }
        index
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        if let Some(slot) = self.0.get_mut(one.max(other)) {
            *slot = one.min(other);
        }
    }
}
