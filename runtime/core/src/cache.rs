//! Finds the code object of a wrapper for a device in the archives of its binary, for the HIP runtime.
//!
//! ```text
//! first load of a binary   candidates are opened; the list of archives is kept as the plan
//! later loads              the plan's archives in order: no path is looked up, no file opened
//! a load that fails        candidates are looked up again, to find new files
//! relative candidates      have no plan: they are looked up for each load
//! ```
//!
//! A file that is already open is recognised by its identity and not read again, even under another path.

use rockpack_kpack::archive::try_key;
use rockpack_kpack::target::CompatibleTarget;
use rockpack_kpack::{Code, OutOfMemory};

use crate::archive::OpenArchive;
use crate::archives::{ArchiveHandle, Archives, Slot};
use crate::candidates::Environment;
use crate::lookup::{Lookup, Request};
use crate::memory::{CallerMemory, SharedList, copied};
use crate::report::{self, Escaped, Text};

/// Most plans that are kept; loads beyond them make their plans each time.
const PLANS_LIMIT: usize = 1024;
/// Most lookups for one load, while files change or other threads close them.
const LOOKS_LIMIT: usize = 16;

/// The opened archives, and the plans of binaries.
pub struct Cache {
    environment: Environment,
    archives: Archives,
    plans: SharedList<Slot<Plan>>,
}

/// The archives of one binary for one list of devices.
struct Plan {
    /// Everything that the plan depends on.
    key: Vec<u8>,
    /// The archives in the order in which they are searched.
    archives: Vec<ArchiveHandle>,
}

/// Why no archive has given a code object.
enum Refusal {
    /// The last archive that lists a target failed to load its code object.
    Failed(Code),
    /// No archive lists a target.
    NoTarget,
    /// An archive was changed or closed meanwhile.
    Closed,
}

impl Request<'_> {
    /// Everything that determines the searched archives, except the working directory: the numbers of parts, then each
    /// part after its length.
    fn plan_key(&self) -> Result<Vec<u8>, OutOfMemory> {
        let mut key = Vec::new();
        let paths = &self.marker.search_paths;
        let counts = [self.arches.len() as u64, paths.len() as u64].map(u64::to_le_bytes);
        let arches = self.arches.iter().map(|arch| arch.to_bytes());
        let first = [counts.as_flattened(), self.binary_path].into_iter();
        for part in first.chain(arches).chain(paths.iter()) {
            let len = (part.len() as u64).to_le_bytes();
            key.try_reserve(len.len() + part.len())?;
            key.extend_from_slice(&len);
            key.extend_from_slice(part);
        }
        Ok(key)
    }
}

impl Cache {
    /// An empty cache with a copy of the current environment.
    pub fn new() -> Result<Self, Code> {
        Ok(Self {
            environment: Environment::read()?,
            archives: Archives::new()?,
            plans: SharedList::new(PLANS_LIMIT).map_err(|_| report::refused("a list of plans"))?,
        })
    }

    /// Fails if the use of archives is switched off.
    pub fn enabled(&self) -> Result<(), Code> {
        if self.environment.is_disabled {
            let why = format_args!("kernel archives are switched off by ROCM_KPACK_DISABLE");
            return Err(report::fail(Code::NotImplemented, why));
        }
        Ok(())
    }

    /// Loads the best compatible code object.
    pub fn load(&self, request: &Request<'_>, co_index: u32) -> Result<CallerMemory, Code> {
        let plan_key = request.plan_key().map_err(no_memory_for_load)?;
        let key = try_key(&request.marker.kernel_name, co_index).map_err(no_memory_for_load)?;
        self.environment.debug(format_args!("marker: {}", Escaped(&key)));
        if let Some(archives) = self.planned(&plan_key).map_err(no_memory_for_load)?
            && let Ok(handed) = self.search_archives(&archives, &key, request)
        {
            return Ok(handed);
        }
        let mut looks = 1;
        let (lookup, asked) = loop {
            let lookup = Lookup::new(&self.archives, &self.environment, request)?;
            match self.search_archives(&lookup.found, &key, request) {
                Err(Refusal::Closed) if looks < LOOKS_LIMIT => looks += 1,
                asked => break (lookup, asked),
            }
        };
        let loaded = asked.map_err(|refusal| self.refused(&refusal, &lookup, &key, request));
        // Later loads may use the archives without a new lookup.
        if !lookup.found.is_empty() && !lookup.is_relative && lookup.system_fault.is_none() {
            self.keep(Plan { key: plan_key, archives: lookup.found });
        }
        if lookup.has_opened {
            self.archives.release(|place| self.is_planned(place));
        }
        loaded
    }

    /// The archives of a kept plan.
    fn planned(&self, key: &[u8]) -> Result<Option<Vec<ArchiveHandle>>, OutOfMemory> {
        let mut plans = self.plans.iter();
        let archives_of = |plan: &Plan| (plan.key == key).then(|| copied(&plan.archives));
        plans.find_map(|slot| slot.read(archives_of).flatten()).transpose()
    }

    /// Whether a plan has this archive. Plans that another thread is changing count as having it.
    fn is_planned(&self, place: &ArchiveHandle) -> bool {
        let mut plans = self.plans.iter();
        plans.any(|slot| slot.read(|plan| plan.archives.contains(place)).unwrap_or(true))
    }

    /// Stores a plan, and replaces an older one. If there is no space, the next load makes the plan again.
    fn keep(&self, plan: Plan) {
        let mut plans = self.plans.iter();
        match plans.find(|slot| slot.read(|old| old.key == plan.key) == Some(true)) {
            Some(slot) if slot.read(|old| old.archives == plan.archives) == Some(true) => {}
            // The old plan is dropped after the lock is released.
            Some(slot) => drop(slot.change(|place| place.replace(plan))),
            None => drop(self.plans.put(plan)),
        }
    }

    /// Searches archives for each target in turn.
    fn search_archives(
        &self,
        archives: &[ArchiveHandle],
        key: &[u8],
        request: &Request<'_>,
    ) -> Result<CallerMemory, Refusal> {
        let mut last = Refusal::NoTarget;
        for target in request.targets() {
            for place in archives {
                let asked = self.archives.with(place, |archive| {
                    let is_listed = archive.table.arches().iter().any(|arch| target.is(arch));
                    is_listed.then(|| self.search_archive(archive, target, key))
                });
                match asked {
                    None => return Err(Refusal::Closed),
                    Some(None) => {}
                    Some(Some(Ok(handed))) => return Ok(handed),
                    Some(Some(Err(_))) if self.archives.is_changed(place) => {
                        return Err(Refusal::Closed);
                    }
                    Some(Some(Err(code))) => last = Refusal::Failed(code),
                }
            }
        }
        Err(last)
    }

    fn search_archive(
        &self,
        archive: &OpenArchive,
        target: CompatibleTarget<'_>,
        key: &[u8],
    ) -> Result<CallerMemory, Code> {
        let mut name = Vec::new();
        target.append_to(&mut name).map_err(|_| report::refused("a target"))?;
        let handed = archive.load(key, &name)?;
        let (path, size) = (archive.file.path(), handed.size());
        let row = (Escaped(key), Escaped(&name));
        self.environment.debug(format_args!("{} for {}: {size} bytes from {path}", row.0, row.1));
        Ok(handed)
    }

    /// The error of a failed load. Reports devices without kernels on the standard error.
    fn refused(
        &self,
        refusal: &Refusal,
        lookup: &Lookup<'_>,
        key: &[u8],
        request: &Request<'_>,
    ) -> Code {
        match (refusal, &lookup.system_fault) {
            (Refusal::Failed(code), _) => return *code,
            (Refusal::Closed, _) => {
                let binary = Escaped(request.binary_path);
                let why = format_args!("{binary}: its kernel archives keep changing");
                return report::fail_with_hint(Code::Io, why, "; start again");
            }
            // The archive that could not be read may have the target.
            (Refusal::NoTarget, Some((code, text))) => {
                return report::fail(*code, format_args!("{text}"));
            }
            (Refusal::NoTarget, None) if self.environment.is_quiet => {}
            (Refusal::NoTarget, None) => {
                report::report_missing(
                    request.arches,
                    &request.marker.kernel_name,
                    &lookup.searched,
                );
            }
        }
        if !lookup.found.is_empty() {
            return self.no_arch(&lookup.found, key, request);
        }
        let (binary, searched) = (Escaped(request.binary_path), &lookup.searched);
        if searched.as_bytes().is_empty() {
            let why = "its kernel archives are per device, and no device is named";
            return report::fail(Code::ArchiveNotFound, format_args!("{binary}: {why}"));
        }
        let why = format_args!("{binary}: none of its kernel archives opens; looked in {searched}");
        report::fail(Code::ArchiveNotFound, why)
    }

    fn no_arch(&self, archives: &[ArchiveHandle], key: &[u8], request: &Request<'_>) -> Code {
        let mut asked = Text::new();
        for place in archives {
            self.archives.with(place, |it| asked.append(format_args!(" {}", it.file.path())));
        }
        let (devices, key) = (report::devices(request.arches, |_| true), Escaped(key));
        if devices.as_bytes().is_empty() {
            let why = format_args!("{key}: no device is named; asked{asked}");
            return report::fail(Code::ArchNotFound, why);
        }
        let why = format_args!("no archive has {devices} for {key}; asked{asked}");
        report::fail_with_hint(Code::ArchNotFound, why, "; install the kernels for it")
    }
}

fn no_memory_for_load(_: OutOfMemory) -> Code {
    report::refused("what is looked for")
}
