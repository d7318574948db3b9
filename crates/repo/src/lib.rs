//! The only writer of repositories: packages in, what apt, dnf, zypper, pip and uv read out.
//!
//! ```text
//! REPO/pool/<component>/<letter>/<source>/*.deb    packages, never changed once they are there
//! REPO/dists/<suite>/…                             indexes of apt (rockpack_archive::apt_index)
//! REPO/packages/<letter>/*.rpm                     packages
//! REPO/repodata/…                                  indexes of dnf and zypper (rockpack_archive::rpm_md)
//! REPO/wheels/<project>/*.whl, *.whl.metadata      wheels, and METADATA of each
//! REPO/simple/…                                    pages for pip and uv (rockpack_archive::python_index)
//! REPO/<name>-<suite>.sources, <name>-<suite>.pref, <name>.repo, <name>-archive-keyring.asc
//! REPO/<name>-<suite>-gpu.sh, <name>-gpu.sh        which packages the GPUs of a machine need
//! REPO/index.html                                  an HTML page with the commands that install packages
//! REPO/.rockpack/                                  states, lock, unfinished files, key packages
//! ```
//!
//! A run computes everything first (`next`), then puts files in place in an order that never leaves an index
//! without its files: packages, indexes whose names contain their digest, indexes with plain names, and last the
//! file that clients read first: `InRelease` (`Release` if nothing is signed) or `repomd.xml`. Pages of wheels have
//! their own order (`python`). Unused files stay for some generations, and at least an hour. The next run
//! completes or rolls back an interrupted run (`channels`). `docs/reference/repository.md` describes what clients
//! see meanwhile, and what is refused.

mod catalog;
mod channel;
mod channel_files;
mod channels;
mod clients;
mod contents;
mod indexes;
mod input;
pub mod keyring;
mod local_store;
mod next;
mod options;
mod owners;
mod package_findings;
mod page;
mod published;
mod python;
mod receipts;
mod rpm_lists;
mod settings;
mod state;
mod store;
mod updates;
mod upload;

use std::collections::BTreeMap;

use rayon::prelude::*;
use rockpack_core::content::exists;
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_core::run::{Budget, threads};
use rockpack_files::new_file::check_place;
use rockpack_files::{check_folder, remove_file};
use rockpack_report::{Findings, Progress};
use rockpack_signing::IndexSigner;

pub use contents::{Contents, contents};
pub use input::refuse_output_inside;
pub use local_store::LocalStore;
pub use options::{ConfirmedChanges, KeyPackage, PackageChanges, RepoOptions, WriteKeyPackage};
pub use published::{
    ChannelReport, ClientDownload, Download, GpuDownload, MirrorDownload, Published,
};
pub use python::{Yank, check_wheel_spec};
pub use settings::{ChannelSettings, check_word};
pub use store::{ExpectedFile, FileBody, FileContent, Modified, Stat, Store, WhenLocked};

use channel::Channel;
use channels::Channels;
use next::NextChannel;
use state::{ChannelState, PoolRecords};

/// Publishes packages, or computes the publication in a dry run. Reads packages within `budget`.
pub fn publish(
    options: &RepoOptions<'_>,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Published> {
    check(options)?;
    threads::in_current_pool(|| {
        let open = if options.dry_run { LocalStore::open_dry } else { LocalStore::open };
        let store = open(&options.out, options.when_locked, budget)?;
        publish_to(&store, options, progress)
            .context(|| format!("publishing {}", options.out.display()))
    })
}

/// Refuses what [`publish`] would refuse for any packages, before they are built. Creates no folder. Completes or
/// rolls back an interrupted publication of an existing repository.
pub fn check_ahead(options: &RepoOptions<'_>, budget: &Budget) -> Result<()> {
    check(options)?;
    if exists(&options.out)? {
        threads::in_current_pool(|| check_existing(options, budget))
    } else {
        Ok(())
    }
}

fn check_existing(options: &RepoOptions<'_>, budget: &Budget) -> Result<()> {
    let store = match LocalStore::open(&options.out, WhenLocked::Fail, budget) {
        // The other run may change the repository before this run gets the lock.
        Err(error) if error.kind() == Kind::Conflict && options.when_locked == WhenLocked::Wait => {
            return Ok(());
        }
        opened => opened.context(|| publishing_in(options))?,
    };
    let channels = Channels::load(&store).context(|| publishing_in(options))?;
    let mut faults = Faults::default();
    for channel in Channel::all(&options.suite) {
        if !options.includes(channel.kind()) {
            continue;
        }
        faults.keep(channel::refuse_indexes(&store, &channel, &channels));
        let earlier = channels.0.get(&channel.name());
        faults.keep(earlier.map_or(Ok(()), |it| settings::check_continuity(&channel, it, options)));
    }
    faults.finish().context(|| publishing_in(options))
}

fn publishing_in(options: &RepoOptions<'_>) -> String {
    format!("publishing in {}", options.out.display())
}

/// Publishes to `store`, to which no other run writes, on the threads of the current rayon pool.
pub fn publish_to(
    store: &dyn Store,
    options: &RepoOptions<'_>,
    progress: &dyn Progress,
) -> Result<Published> {
    let mut channels = Channels::load(store)?;
    let (given, noticed) = input::given(options, &channels, store.budget(), progress)?;
    let published = publish_given(store, options, &mut channels, (given, &noticed));
    let Published { channels, mut findings, .. } = noticed.explain(published)?;
    findings.extend(noticed);
    findings.sort();
    Ok(Published { dry_run: options.dry_run, channels, findings })
}

/// Publishes the packages `given` and the key packages.
fn publish_given(
    store: &dyn Store,
    options: &RepoOptions<'_>,
    channels: &mut Channels,
    (mut given, noticed): (Vec<input::GivenPackage>, &Findings),
) -> Result<Published> {
    given.extend(keyring::given(store, options, channels, &given)?);
    given.retain(|given| options.includes(given.indexed.facts.kind()));
    let active = active(options, channels, &given)?;
    let orders =
        package_findings::version_order_findings(&Channel::all(&options.suite), channels, &given);
    let given_findings = Findings::of([noticed, &orders]);
    let published = prepare_and_write(store, options, channels, (&active, given, &given_findings));
    let mut published = orders.explain(published)?;
    published.findings.extend(orders);
    Ok(published)
}

/// Publishes the given packages in the active channels; `given_findings` are the findings about them.
fn prepare_and_write(
    store: &dyn Store,
    options: &RepoOptions<'_>,
    channels: &mut Channels,
    (active, given, given_findings): (&[Channel], Vec<input::GivenPackage>, &Findings),
) -> Result<Published> {
    Faults::all(active.iter().map(|it| channel::refuse_indexes(store, it, channels)))?;
    let states: Vec<_> =
        active.iter().filter_map(|c| Some(&channels.0.get(&c.name())?.records)).collect();
    catalog::check_removals(&options.changes.remove, &states)?;
    let mut faults = Faults::default();
    let next: Vec<Result<NextChannel>> = active
        .par_iter()
        .map(|channel| NextChannel::new(store, channel, channels, &given, options))
        .collect();
    let mut next: Vec<NextChannel> =
        next.into_iter().filter_map(|channel| faults.keep(channel)).collect();
    let mut noticed = Findings::of(next.iter().map(|channel| &channel.findings));
    let mut of_all = package_findings::placeholder_findings(&given);
    of_all.extend(options.signer.as_deref().map(IndexSigner::findings).unwrap_or_default());
    noticed.extend(of_all.clone());
    noticed.explain(faults.finish())?;
    let of_page = page::add(store, options, channels, &mut next);
    of_all.extend(noticed.explain(of_page)?);
    let paths: Vec<&str> = next.iter().flat_map(NextChannel::paths).collect();
    noticed.explain(store.check(&paths))?;
    if options.strict {
        Findings::of([&noticed, &given_findings.warnings()])
            .refuse_warnings("or publish without it")?;
    }
    // Writing needs the memory.
    drop(given);
    let mut published = noticed.explain(write(store, options, channels, next))?;
    published.findings.extend(of_all);
    Ok(published)
}

/// Refuses options that are wrong for any packages and any repository. A missing key is reported when it is used,
/// because callers may not have opened it yet.
pub fn check(options: &RepoOptions<'_>) -> Result<()> {
    let mut faults = Faults::default();
    faults.keep(check_word("suite", &options.suite));
    faults.keep(check_word("component", &options.component));
    faults.keep(options.settings.check(&options.suite));
    if options.generations == 0 {
        faults.add(Error::new(Kind::Usage, "`generations` must be at least 1"));
    }
    faults.keep(check_folder(&options.out, "packages"));
    faults.keep(input::refuse_inside(options));
    if let Some(plan) = &options.upload_plan {
        faults.keep(refuse_output_inside(&options.out, plan, "upload plan"));
        faults.keep(check_place(plan));
    }
    if let Some(wanted) = options.key_package {
        faults.keep(keyring::check_version(wanted.version));
    }
    faults.finish()
}

/// The channels that the run changes: those of the given packages; the existing ones if none are given or some are
/// to be removed.
fn active(
    options: &RepoOptions<'_>,
    channels: &Channels,
    given: &[input::GivenPackage],
) -> Result<Vec<Channel>> {
    let PackageChanges { remove, yank, unyank, .. } = &options.changes;
    let every = options.packages.is_empty() || !remove.is_empty();
    let marks = !yank.is_empty() || !unyank.is_empty();
    let chosen = Channel::all(&options.suite).into_iter().filter(|channel| {
        let gets = given.iter().any(|given| given.indexed.facts.kind() == channel.kind());
        let changes = every || (marks && *channel == Channel::Python);
        options.includes(channel.kind())
            && (gets || (changes && channels.0.contains_key(&channel.name())))
    });
    let active: Vec<Channel> = chosen.collect();
    if !active.contains(&Channel::Python) {
        // Without an index, there are no wheels to mark.
        python::mark(&mut PoolRecords::new(), &options.changes)?;
    }
    if active.is_empty() {
        Err(Error::new(Kind::Usage, "there is nothing to publish")
            .hint("give packages of the requested formats, or a repository that has some already"))
    } else {
        Ok(active)
    }
}

/// Puts all files in place, in the order that the module documents.
fn write(
    store: &dyn Store,
    options: &RepoOptions<'_>,
    channels: &mut Channels,
    next: Vec<NextChannel>,
) -> Result<Published> {
    if let Some(plan) = &options.upload_plan {
        // An earlier plan would upload files of this publication in the wrong order.
        remove_file(plan)?;
    }
    Channels::announce(store, &next)?;
    let (mut hidden, mut visible, mut outdated) = (Vec::new(), Vec::new(), BTreeMap::new());
    let (mut shown, mut states, mut published) = (Vec::new(), Vec::new(), Published::default());
    for channel in next {
        hidden.extend(channel.packages.into_iter().chain(channel.hidden));
        visible.extend(channel.visible);
        if !channel.outdated.is_empty() {
            outdated.insert(channel.name.clone(), channel.outdated);
        }
        shown.extend(channel.shown);
        states.push((channel.name, channel.next));
        published.channels.push(channel.report);
        published.findings.extend(channel.findings);
    }
    store.put(hidden)?;
    store.put(visible)?;
    channels.finish(store, states)?;
    let removed = prune(store, channels, &outdated)?;
    page::forget(store, channels, published.channels.last().map(|it| &*it.channel))?;
    let files = channels.0.values().flat_map(ChannelState::files).map(String::as_str);
    let closed = store.open_folders(&files.collect::<Vec<_>>())?;
    published.findings.extend(closed);
    upload::write_plan(store, options, channels, &shown, &removed).context(|| {
        "the repository is published, but its upload plan could not be written".to_owned()
    })?;
    Ok(published)
}

/// Removes `outdated` files of channels, unless another channel uses them. Returns the paths.
fn prune(
    store: &dyn Store,
    channels: &mut Channels,
    outdated: &BTreeMap<String, Vec<String>>,
) -> Result<Vec<String>> {
    let mut pruned = Vec::new();
    for (name, paths) in outdated {
        let Some(mut state) = channels.0.remove(name) else { continue };
        paths.iter().for_each(|path| drop(state.retired.remove(path)));
        pruned.push((name.clone(), state));
    }
    let is_unused =
        |path: &&String| !channels.uses(path) && !pruned.iter().any(|(_, state)| state.uses(path));
    let unused: Vec<String> = outdated.values().flatten().filter(is_unused).cloned().collect();
    store.remove(&unused)?;
    if !pruned.is_empty() {
        channels.put(store, pruned)?;
    }
    Ok(unused)
}
