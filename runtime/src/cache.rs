//! What the HIP runtime asks: the code object of a wrapper for a device, from whichever archive has it.
//!
//! ```text
//! first load of a binary   candidates are opened; the plan, which archives there are, is kept
//! later loads              the plan's archives in order: no path is looked up, no file opened
//! a load that fails        candidates are looked up again, for files that came since
//! ```

use std::ffi::CStr;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use rockpack_kpack::archive::try_key;
use rockpack_kpack::marker::Loaded;
use rockpack_kpack::target::{CompatibleTarget, TRIPLE_PREFIX, compatible};
use rockpack_kpack::{Code, OutOfMemory};

use crate::archive::OpenArchive;
use crate::candidates::Places;
use crate::environment::Environment;
use crate::memory::{Handed, SharedList};
use crate::report::{self, Shown, Text};

/// Most archives that stay open: each holds a file descriptor.
const ARCHIVES_LIMIT: usize = 4096;
/// Most plans that are kept; a load beyond them makes its plan each time.
const PLANS_LIMIT: usize = 1024;

/// Archives that were opened, and which of them each binary has.
pub struct Cache {
    environment: Environment,
    archives: SharedList<OpenArchive>,
    plans: SharedList<Plan>,
}

/// The archives of one binary and list of devices.
#[derive(PartialEq, Eq)]
struct Plan {
    /// Everything that it depends on.
    key: Vec<u8>,
    /// Numbers in the list of archives, in the order in which they are asked.
    archives: Vec<usize>,
}

/// One load.
pub struct Request<'a> {
    /// The marker of the binary.
    pub marker: &'a Loaded,
    /// The path of the binary.
    pub binary_path: &'a CStr,
    /// The number of the wrapper.
    pub co_index: u32,
    /// Target IDs of devices, the preferred one first.
    pub arches: &'a [&'a CStr],
}

impl Request<'_> {
    /// Everything that decides which archives are asked, each part with a NUL behind it. No part has
    /// a NUL of its own but paths of the marker, which their number sets apart.
    fn plan_key(&self) -> Result<Vec<u8>, OutOfMemory> {
        let mut key = Vec::new();
        let paths = &self.marker.search_paths;
        let count = (paths.len() as u64).to_le_bytes();
        let arches = self.arches.iter().map(|arch| arch.to_bytes());
        let first = [&count[..], self.binary_path.to_bytes()].into_iter();
        for part in first.chain(arches).chain([&b""[..]]).chain(paths.iter()) {
            key.try_reserve(part.len() + 1)?;
            key.extend_from_slice(part);
            key.push(0);
        }
        Ok(key)
    }

    /// The targets that fit, the best one first.
    fn targets(&self) -> impl Iterator<Item = CompatibleTarget<'_>> {
        self.arches.iter().flat_map(|arch| compatible(arch.to_bytes()))
    }
}

/// The devices of a request as they are told.
struct Devices<'a>(&'a [&'a CStr]);

impl fmt::Display for Devices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, arch) in self.0.iter().enumerate() {
            let arch = arch.to_bytes();
            let arch = arch.strip_prefix(TRIPLE_PREFIX).unwrap_or(arch);
            write!(f, "{}{}", if index == 0 { "" } else { " or " }, Shown(arch))?;
        }
        Ok(())
    }
}

impl Cache {
    /// An empty cache, which keeps what the environment says now.
    pub fn new() -> Result<Self, Code> {
        let refused = |_| report::refused("a cache of archives");
        Ok(Self {
            environment: Environment::read()?,
            archives: SharedList::new(ARCHIVES_LIMIT).map_err(refused)?,
            plans: SharedList::new(PLANS_LIMIT).map_err(refused)?,
        })
    }

    /// Fails if archives are switched off.
    pub fn enabled(&self) -> Result<(), Code> {
        if self.environment.is_disabled {
            let why = format_args!("kernel archives are switched off by ROCM_KPACK_DISABLE");
            return Err(report::fail(Code::NotImplemented, why));
        }
        Ok(())
    }

    /// Loads the code object that fits best.
    pub fn load(&self, request: &Request<'_>) -> Result<Handed, Code> {
        let refused = |_| report::refused("what is looked for");
        let plan_key = request.plan_key().map_err(refused)?;
        let key = try_key(&request.marker.kernel_name, request.co_index).map_err(refused)?;
        self.debug(format_args!("marker: {}", Shown(&key)));
        let known = self.plans.iter().filter(|plan| plan.key == plan_key).last();
        if let Some(plan) = known
            && let Ok(handed) = self.load_from(&plan.archives, &key, request)
        {
            return Ok(handed);
        }
        let mut looked = Text::new();
        let plan = Plan { archives: self.open(request, &mut looked)?, key: plan_key };
        let loaded = if plan.archives.is_empty() {
            Err(self.not_found(request, &looked))
        } else {
            self.load_from(&plan.archives, &key, request)
        };
        self.tell_missing(loaded.as_ref().err(), request, &looked);
        if !plan.archives.is_empty() && known != Some(&plan) {
            // Without room for it the next load makes it again.
            let _ = self.plans.append(plan, |there, new| there == new);
        }
        loaded
    }

    /// Opens the candidates that there are; their numbers, in order, each once.
    fn open(&self, request: &Request<'_>, looked: &mut Text) -> Result<Vec<usize>, Code> {
        let mut archives = Vec::new();
        let places = Places {
            environment: &self.environment,
            binary_path: request.binary_path.to_bytes(),
            search_paths: &request.marker.search_paths,
            arches: request.arches,
        };
        places.each(|path| {
            let separator = if looked.as_bytes().is_empty() { "" } else { ", " };
            looked.append(format_args!("{separator}{}", Shown(path.to_bytes())));
            match self.open_one(path) {
                Ok(index) if archives.contains(&index) => Ok(true),
                Ok(index) => {
                    archives.try_reserve(1).map_err(|_| report::refused("open archives"))?;
                    archives.push(index);
                    Ok(true)
                }
                // A device that is skipped for want of memory would be missed without a trace.
                Err(Code::OutOfMemory) => Err(Code::OutOfMemory),
                Err(code) => {
                    self.debug(format_args!("archive skipped: {}", report::copy_of_last()));
                    if code != Code::FileNotFound {
                        looked.append(format_args!(" ({})", report::copy_of_last()));
                    }
                    Ok(code != Code::FileNotFound && code != Code::Io)
                }
            }
        })?;
        Ok(archives)
    }

    /// Opens an archive, unless a file with this content is open already.
    fn open_one(&self, path: &CStr) -> Result<usize, Code> {
        let archive = OpenArchive::open(path)?;
        self.debug(format_args!(
            "archive opened: {}, {} architectures",
            archive.path(),
            archive.arches().len()
        ));
        let same = |there: &OpenArchive, new: &OpenArchive| there.identity() == new.identity();
        let full = |_| report::refused("a further open archive");
        self.archives.append(archive, same).map_err(full)
    }

    /// Asks the archives for each target in turn; the last error if none has it.
    fn load_from(
        &self,
        archives: &[usize],
        key: &[u8],
        request: &Request<'_>,
    ) -> Result<Handed, Code> {
        let mut last = None;
        for target in request.targets() {
            for archive in archives.iter().filter_map(|index| self.archives.get(*index)) {
                if !archive.arches().iter().any(|arch| target.is(arch)) {
                    continue;
                }
                let mut name = Vec::new();
                target.append_to(&mut name).map_err(|_| report::refused("a target"))?;
                match archive.load(key, &name) {
                    Ok(handed) => {
                        let (path, len) = (archive.path(), handed.bytes().len());
                        let row = (Shown(key), Shown(&name));
                        self.debug(format_args!(
                            "{} for {}: {len} bytes from {path}",
                            row.0, row.1
                        ));
                        return Ok(handed);
                    }
                    Err(code) => last = Some(code),
                }
            }
        }
        Err(last.unwrap_or_else(|| self.no_arch(archives, key, request)))
    }

    fn no_arch(&self, archives: &[usize], key: &[u8], request: &Request<'_>) -> Code {
        let mut asked = Text::new();
        for archive in archives.iter().filter_map(|index| self.archives.get(*index)) {
            asked.append(format_args!(" {}", archive.path()));
        }
        let (devices, key) = (Devices(request.arches), Shown(key));
        let why = format_args!(
            "no archive has {devices} for {key}; asked{asked}; install the kernels for it"
        );
        report::fail(Code::ArchNotFound, why)
    }

    fn not_found(&self, request: &Request<'_>, looked: &Text) -> Code {
        let binary = Shown(request.binary_path.to_bytes());
        let why = format_args!("{binary}: none of its kernel archives opens; looked in {looked}");
        report::fail(Code::ArchiveNotFound, why)
    }

    /// Tells the user of a device without kernels, once for each device: the HIP runtime skips it
    /// without a word.
    fn tell_missing(&self, code: Option<&Code>, request: &Request<'_>, looked: &Text) {
        let skips = matches!(code, Some(Code::ArchNotFound | Code::ArchiveNotFound));
        if !skips || self.environment.is_quiet || !first_time(request.arches) {
            return;
        }
        let (devices, name) = (Devices(request.arches), Shown(&request.marker.kernel_name));
        report::line(format_args!(
            "rocm-kpack: no archive has {devices} for {name}; looked in {looked} \
             (ROCM_KPACK_QUIET=1 silences this)"
        ));
    }

    fn debug(&self, text: fmt::Arguments<'_>) {
        if self.environment.is_debugged {
            report::line(format_args!("kpack: {text}"));
        }
    }
}

/// Lists of devices that were told, by hash; 0 is none. When all are taken, no more is told.
static TOLD: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Whether this is the first time that these devices are asked about.
fn first_time(arches: &[&CStr]) -> bool {
    let bytes = arches.iter().flat_map(|arch| arch.to_bytes_with_nul());
    // FNV-1a: two devices with one hash cost a line, no more.
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    let hash = hash.max(1);
    for slot in &TOLD {
        match slot.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(there) if there == hash => return false,
            Err(_) => {}
        }
    }
    false
}
