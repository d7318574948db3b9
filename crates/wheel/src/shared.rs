//! Device wheels for several Pythons.
//!
//! The host wheels of a release differ only in their tags: `cp312-cp312-…`, `cp313-cp313-…`. If their device wheels
//! are equal except for the tags, one with the tag `py3-none-{platform}` replaces them. Wheels in an index are
//! compared, too, because a release may get further Pythons later. With a single host wheel, nothing shows that others
//! would agree, so its device wheels keep its tags.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rockpack_archive::wheel::{Tag, WheelArchive, WheelName, normalized};
use rockpack_archive::zip::ZipReader;
use rockpack_core::content::{Content, is_folder, list};
use rockpack_core::error::{Result, ResultExt};
use rockpack_core::run::Budget;
use rockpack_elf::kpack::{KpackReader, split_key};
use rockpack_package::receipt::wheels::{WheelKind, WheelRecord};
use rockpack_report::{PythonDifference, found};

use crate::SplitResults;
use crate::emit::{self, WriteOptions};
use crate::plan::LICENCE_FOLDER;

/// The tags of shared wheels.
const PYTHON: &str = "py3";
const ABI: &str = "none";

const ARCHIVE: &str = ".kpack";

/// The prefix of symbols that clang derives from the options and the path of a compilation.
const CUID_PREFIX: &[u8] = b"__hip_cuid_";

/// The length of such a symbol with its 16 digits.
const CUID_LEN: usize = CUID_PREFIX.len() + 16;

struct Device {
    name: WheelName,
    path: PathBuf,
    /// What must be equal → the file: its row of RECORD, for licences without the folder.
    files: BTreeMap<String, String>,
}

/// Device wheels of one distribution, by the file name of their host wheel, or of the wheel in the index.
type Devices = BTreeMap<String, Device>;

/// Replaces device wheels of one distribution and release in `made` by a shared one if all are equal, including those
/// in the repository or folder `index`. Otherwise adds a finding with the reason.
pub(crate) fn share(
    made: &mut SplitResults,
    index: Option<&Path>,
    options: &WriteOptions<'_>,
) -> Result<()> {
    let mut releases: BTreeMap<WheelName, BTreeMap<String, Devices>> = BTreeMap::new();
    for record in made.wheels.iter().filter(|record| record.role == WheelKind::Device) {
        let (host, name): (WheelName, _) = (record.made_of.parse()?, record.file_name.parse()?);
        // Wheels that also support another Python than 3 stay unchanged.
        let is_shared = |tag: &Tag| {
            let (python, abi) = (PYTHON.to_owned(), ABI.to_owned());
            Tag { python, abi, platform: tag.platform.clone() }.covers(tag)
        };
        if host.tags().iter().all(is_shared) {
            let path = options.staging.path(&record.file_name);
            let device = Device::read(name, path, options.budget)?;
            let projects = releases.entry(release(&host)).or_default();
            let devices = projects.entry(normalized(&record.distribution)).or_default();
            devices.insert(record.made_of.clone(), device);
        }
    }
    for (release, projects) in &releases {
        let mut wheels: BTreeSet<&String> = projects.values().flat_map(BTreeMap::keys).collect();
        let (hosts, mut different) = (wheels.len(), None::<(String, PythonDifference)>);
        let all = projects.iter().map(|(project, devices)| {
            let published = index.map(|it| published(it, project, devices, options.budget));
            Ok((project, devices, published.transpose()?.unwrap_or_default()))
        });
        let all: Vec<(&String, &Devices, Devices)> = all.collect::<Result<_>>()?;
        for (project, devices, published) in &all {
            let mut equal = devices.values().chain(published.values());
            let Some(first) = equal.next() else { continue };
            let unequal = equal.clone().find(|other| !first.files.keys().eq(other.files.keys()));
            let found = if let Some(other) = unequal {
                wheels.extend(published.keys());
                difference(first, other, options.budget)?
            } else if equal.next().is_some() {
                made.replace(project, devices, published, options)?;
                continue;
            } else if hosts > 1 {
                (first.name.to_string(), PythonDifference::Absent)
            } else {
                continue;
            };
            if different.as_ref().is_none_or(|(_, why)| matches!(why, PythonDifference::Name)) {
                different = Some(found);
            }
        }
        if let Some((file, reason)) = different {
            let release = format!("{} {}", release.distribution, release.version);
            let wheels = wheels.into_iter().cloned().collect();
            made.findings.add(found::WheelPerPython { release, wheels, file, reason });
        }
    }
    Ok(())
}

/// The name of a wheel without its Python and ABI tags.
fn release(name: &WheelName) -> WheelName {
    let mut platforms = name.platforms.clone();
    platforms.sort();
    let distribution = normalized(&name.distribution);
    WheelName { distribution, pythons: Vec::new(), abis: Vec::new(), platforms, ..name.clone() }
}

/// The device wheels of `project` in `index` of the release of `devices`, with other tags than theirs.
fn published(index: &Path, project: &str, devices: &Devices, budget: &Budget) -> Result<Devices> {
    let mut found = Devices::new();
    let is_other = |name: &WheelName| {
        devices
            .values()
            .all(|own| release(&own.name) == release(name) && own.name.tags() != name.tags())
    };
    // A repository has a folder of wheels for each project.
    for folder in [index.join("wheels").join(project), index.to_path_buf()] {
        if !is_folder(&folder)? {
            continue;
        }
        for entry in list(&folder)? {
            let path = entry?.path();
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(name) = file.parse().ok().filter(is_other) {
                // Wheels of other tools may be unreadable as device wheels.
                let read = Device::read(name.clone(), path.clone(), budget).if_readable()?;
                let unread = || Device { name, path, files: BTreeMap::new() };
                found.insert(file, read.unwrap_or_else(unread));
            }
        }
    }
    Ok(found)
}

impl Device {
    /// Reads the device wheel at `path`, which is called `name`.
    fn read(name: WheelName, path: PathBuf, budget: &Budget) -> Result<Self> {
        let archive = Content::open(&path, budget).and_then(WheelArchive::open);
        let archive = archive.map_err(|error| error.file(&path))?;
        let own = format!("{}/", archive.dist_info);
        let files = archive.record.rows.into_iter().filter_map(|(file, row)| {
            let line = match file.strip_prefix(&own) {
                // The tags differ; the root decides where files are installed.
                Some("WHEEL") => archive.wheel_file.is_purelib.to_string(),
                Some("RECORD") => return None,
                // The folder of licences depends on the tool that made the input.
                Some(text) if text != "METADATA" => {
                    row.line(text.strip_prefix(LICENCE_FOLDER).unwrap_or(text))
                }
                _ => row.line(&file),
            };
            Some((line, file))
        });
        Ok(Self { files: files.collect(), name, path })
    }
}

/// A file in which two device wheels differ, and how: the first binary with other code, or else a file that only one
/// has.
fn difference(one: &Device, other: &Device, budget: &Budget) -> Result<(String, PythonDifference)> {
    if other.files.is_empty() {
        return Ok((other.name.to_string(), PythonDifference::File));
    }
    // Other tools deflate archives.
    let (own, others) = match (archives(one, budget), archives(other, budget)) {
        (Ok(own), Ok(others)) => (own, others),
        _ => Default::default(),
    };
    for (archive, of_other) in own.iter().zip(others) {
        let others = &of_other.toc().rows;
        for (key, rows) in &archive.toc().rows {
            let binary = || split_key(key).map_or(key.as_str(), |(binary, _)| binary).to_owned();
            for (target, row) in rows {
                let Some(row_of_other) = others.get(key).and_then(|rows| rows.get(target)) else {
                    return Ok((binary(), PythonDifference::Absent));
                };
                let code = archive.code_object(row.ordinal)?;
                let code_of_other = of_other.code_object(row_of_other.ordinal)?;
                if !code.same_bytes(&code_of_other)? {
                    let [one, other] = [unit(&code)?, unit(&code_of_other)?];
                    let has_unit = one.is_some() && one != other;
                    let why =
                        if has_unit { PythonDifference::Unit } else { PythonDifference::Code };
                    return Ok((binary(), why));
                }
            }
        }
    }
    let of_one = one.files.iter().find(|(line, _)| !other.files.contains_key(*line));
    let of_other = other.files.iter().find(|(line, _)| !one.files.contains_key(*line));
    let file = of_one.or(of_other).map(|(_, file)| file.clone()).unwrap_or_default();
    let is_archive = file.ends_with(ARCHIVE) && !own.is_empty();
    Ok((file, if is_archive { PythonDifference::Name } else { PythonDifference::File }))
}

/// The kernel archives of a device wheel, which are stored in it.
fn archives(device: &Device, budget: &Budget) -> Result<Vec<KpackReader>> {
    let zip = ZipReader::open(Content::open(&device.path, budget)?)?;
    let own = zip.members().iter().filter(|it| it.name.ends_with(ARCHIVE));
    own.map(|member| zip.stored(member).and_then(KpackReader::open)).collect()
}

/// The name of the compilation unit in a code object, if it has one.
fn unit(code: &Content) -> Result<Option<Vec<u8>>> {
    let (mut bytes, mut found) = (Vec::new(), None);
    code.each_window(|window| {
        // A name may continue in the next window.
        bytes.drain(..bytes.len().saturating_sub(CUID_LEN));
        bytes.extend_from_slice(window);
        let at = bytes.windows(CUID_PREFIX.len()).position(|part| part == CUID_PREFIX);
        if let Some(name) = at.and_then(|at| bytes.get(at..at + CUID_LEN)) {
            found.get_or_insert(name.to_vec());
        }
    })?;
    Ok(found)
}

impl SplitResults {
    /// Replaces the equal device wheels of `project` by a shared one: by that in `published` if there is one.
    fn replace(
        &mut self,
        project: &str,
        devices: &Devices,
        published: &Devices,
        options: &WriteOptions<'_>,
    ) -> Result<()> {
        let is_own = |record: &WheelRecord| {
            record.role == WheelKind::Device
                && devices.contains_key(&record.made_of)
                && normalized(&record.distribution) == project
        };
        let (mut own, kept): (Vec<_>, _) =
            std::mem::take(&mut self.wheels).into_iter().partition(is_own);
        self.wheels = kept;
        let Some(device) = devices.values().next() else { return Ok(()) };
        let (pythons, abis) = (vec![PYTHON.to_owned()], vec![ABI.to_owned()]);
        let shared = WheelName { pythons, abis, ..device.name.clone() };
        let file_name = shared.to_string();
        // One may have these tags already.
        own.sort_by_key(|record| record.file_name != file_name);
        let Some((first, others)) = own.split_first() else { return Ok(()) };
        let is_tagged = first.file_name == file_name;
        let also_made_of = others.iter().map(|other| other.made_of.clone()).collect();
        let record = match published.get(&file_name) {
            _ if is_tagged => first.clone(),
            // The index cannot have another one under this name.
            Some(there) => emit::adopt(first, &shared, &there.path, options)?,
            None => emit::retag(first, &shared, options)?,
        };
        self.wheels.push(WheelRecord { also_made_of, ..record });
        self.code_objects.retain(|code| others.iter().all(|it| it.file_name != code.package));
        let moved = self.code_objects.iter_mut().filter(|it| it.package == first.file_name);
        moved.for_each(|code| code.package.clone_from(&file_name));
        let mut gone = own.iter().skip(usize::from(is_tagged));
        gone.try_for_each(|gone| options.staging.discard(&gone.file_name))
    }
}
