//! Device wheels for several Pythons.
//!
//! The host wheels of a release differ by their tags alone: `cp312-cp312-…`, `cp313-cp313-…`. If their device
//! wheels are equal but for the tags, one for each group takes their place, tagged `py3-none-{platform}`.
//! Wheels of an index count as well: a release may get further Pythons later. With one host wheel, nothing
//! says that others would agree, and its device wheels have its tags.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rockpack_archive::wheel::{Tag, WheelArchive, WheelName, normalized};
use rockpack_archive::zip::ZipReader;
use rockpack_core::content::{Content, is_folder, list};
use rockpack_core::error::Result;
use rockpack_core::run::Budget;
use rockpack_elf::kpack::{KpackReader, split_key};
use rockpack_package::receipt::wheels::{WheelKind, WheelRecord};
use rockpack_report::found;

use crate::Made;
use crate::emit::{self, WriteOptions};

/// The tags of shared wheels.
const PYTHON: &str = "py3";
const ABI: &str = "none";

/// The folder of a repository with a folder of wheels for each project.
const WHEELS: &str = "wheels";

/// The ending of kernel archives.
const ARCHIVE: &str = ".kpack";

/// The beginning of symbols that clang makes of the options and the path of a compilation.
const UNIT_SYMBOL: &[u8] = b"__hip_cuid_";

/// The length of such a symbol with its 16 digits.
const UNIT_LEN: usize = UNIT_SYMBOL.len() + 16;

/// A device wheel.
struct Device {
    /// The file name.
    name: WheelName,
    /// The file.
    path: PathBuf,
    /// The files by what has to be equal: their rows of RECORD, for licences the digest alone.
    files: BTreeMap<String, String>,
}

/// The device wheels of one host wheel by distribution.
type Devices = BTreeMap<String, Device>;

/// Replaces the device wheels of each release in `made` by shared ones if all are equal, those in the repository or
/// folder `index` included. Notes why, if they are not.
pub(crate) fn share(
    made: &mut Made,
    index: Option<&Path>,
    options: &WriteOptions<'_>,
) -> Result<()> {
    let mut releases: BTreeMap<WheelName, BTreeMap<String, Devices>> = BTreeMap::new();
    for record in made.wheels.iter().filter(|record| record.role == WheelKind::Device) {
        let (host, name): (WheelName, _) = (record.made_of.parse()?, record.file_name.parse()?);
        // What is for another Python than 3 as well stays as it is.
        if host.tags().iter().all(|tag| python_3(tag).covers(tag)) {
            let path = options.staging.path(&record.file_name);
            let device = Device::read(name, path, options.budget)?;
            let hosts = releases.entry(release(&host)).or_default();
            let devices = hosts.entry(record.made_of.clone()).or_default();
            devices.insert(normalized(&record.distribution), device);
        }
    }
    for (release, hosts) in &releases {
        let published = index.map(|index| published(index, hosts, options.budget)).transpose()?;
        let all: Vec<_> = hosts.iter().chain(published.iter().flatten()).collect();
        let Some(((_, first), others)) = all.split_first().filter(|(_, others)| !others.is_empty())
        else {
            continue;
        };
        let mut unequal = others.iter().filter_map(|(_, other)| differing(first, other));
        match unequal.next() {
            None => made.replace(hosts, options)?,
            Some([one, other]) => {
                let (file, has_unit) = difference(one, other, options.budget)?;
                let release = format!("{} {}", release.distribution, release.version);
                let wheels = all.iter().map(|(wheel, _)| (*wheel).clone()).collect();
                made.findings.add(found::WheelPerPython { release, wheels, file, has_unit });
            }
        }
    }
    Ok(())
}

/// The name of a wheel without what it has for one Python.
fn release(name: &WheelName) -> WheelName {
    let mut platforms = name.platforms.clone();
    platforms.sort();
    let distribution = normalized(&name.distribution);
    WheelName { distribution, pythons: Vec::new(), abis: Vec::new(), platforms, ..name.clone() }
}

/// The tag of a shared wheel on the platform of `tag`.
fn python_3(tag: &Tag) -> Tag {
    Tag { python: PYTHON.to_owned(), abi: ABI.to_owned(), platform: tag.platform.clone() }
}

/// The device wheels in `index` of the release of `hosts`, with other tags than theirs.
fn published(
    index: &Path,
    hosts: &BTreeMap<String, Devices>,
    budget: &Budget,
) -> Result<BTreeMap<String, Devices>> {
    let mut found = BTreeMap::new();
    for (project, own) in hosts.values().next().into_iter().flatten() {
        let is_other = |name: &WheelName| {
            let mut ours = hosts.values().filter_map(|devices| devices.get(project));
            release(name) == release(&own.name) && ours.all(|it| it.name.tags() != name.tags())
        };
        for folder in [index.join(WHEELS).join(project), index.to_path_buf()] {
            if !is_folder(&folder)? {
                continue;
            }
            for entry in list(&folder)? {
                let path = entry?.path();
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if let Some(name) = file.parse().ok().filter(is_other) {
                    let device = Device::read(name, path, budget)?;
                    found.insert(file, BTreeMap::from([(project.clone(), device)]));
                }
            }
        }
    }
    Ok(found)
}

impl Device {
    /// Reads the device wheel at `path`, which is called `name`.
    fn read(name: WheelName, path: PathBuf, budget: &Budget) -> Result<Self> {
        let archive = Content::open(&path, budget).and_then(WheelArchive::open);
        let WheelArchive { dist_info, record, .. } = archive.map_err(|error| error.file(&path))?;
        let own = format!("{dist_info}/");
        let files = record.rows.into_iter().filter_map(|(file, row)| {
            let line = match file.strip_prefix(&own) {
                Some("WHEEL" | "RECORD") => return None,
                // Where licences lie depends on the tool that made the input.
                Some(text) if text != "METADATA" => row.line(""),
                _ => row.line(&file),
            };
            Some((line, file))
        });
        Ok(Self { files: files.collect(), name, path })
    }
}

/// Two device wheels of one distribution that are not equal.
fn differing<'a>(one: &'a Devices, other: &'a Devices) -> Option<[&'a Device; 2]> {
    let mut pairs = one.iter().filter_map(|(project, one)| Some([one, other.get(project)?]));
    pairs.find(|[one, other]| !one.files.keys().eq(other.files.keys()))
}

/// The file by which two device wheels that are not equal differ, and whether the names of compilation units do: the
/// first binary with other code, or else a file that only one has.
fn difference(one: &Device, other: &Device, budget: &Budget) -> Result<(String, bool)> {
    for (archive, of_other) in archives(one, budget)?.iter().zip(archives(other, budget)?) {
        let (own, others) = (&archive.toc().rows, &of_other.toc().rows);
        for (key, target, row) in own
            .iter()
            .flat_map(|(key, rows)| rows.iter().map(move |(target, row)| (key, target, row)))
        {
            let binary = || split_key(key).map_or(key.as_str(), |(binary, _)| binary).to_owned();
            let Some(row_of_other) = others.get(key).and_then(|rows| rows.get(target)) else {
                return Ok((binary(), false));
            };
            let code = archive.code_object(row.ordinal)?;
            let code_of_other = of_other.code_object(row_of_other.ordinal)?;
            if !code.same_bytes(&code_of_other)? {
                let [one, other] = [unit(&code)?, unit(&code_of_other)?];
                return Ok((binary(), one.is_some() && one != other));
            }
        }
    }
    let of_one = one.files.iter().find(|(line, _)| !other.files.contains_key(*line));
    let of_other = other.files.iter().find(|(line, _)| !one.files.contains_key(*line));
    Ok((of_one.or(of_other).map(|(_, file)| file.clone()).unwrap_or_default(), false))
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
        // A name may go on in the next window.
        bytes.drain(..bytes.len().saturating_sub(UNIT_LEN));
        bytes.extend_from_slice(window);
        let at = bytes.windows(UNIT_SYMBOL.len()).position(|part| part == UNIT_SYMBOL);
        if let Some(name) = at.and_then(|at| bytes.get(at..at + UNIT_LEN)) {
            found.get_or_insert(name.to_vec());
        }
    })?;
    Ok(found)
}

impl Made {
    /// Puts shared device wheels in place of those of `hosts`, which are equal.
    fn replace(
        &mut self,
        hosts: &BTreeMap<String, Devices>,
        options: &WriteOptions<'_>,
    ) -> Result<()> {
        for (project, device) in hosts.values().next().into_iter().flatten() {
            let (pythons, abis) = (vec![PYTHON.to_owned()], vec![ABI.to_owned()]);
            let shared = WheelName { pythons, abis, ..device.name.clone() };
            let file_name = shared.to_string();
            let is_own = |record: &WheelRecord| {
                record.role == WheelKind::Device
                    && hosts.contains_key(&record.made_of)
                    && normalized(&record.distribution) == *project
            };
            let (mut own, kept): (Vec<_>, _) =
                std::mem::take(&mut self.wheels).into_iter().partition(is_own);
            self.wheels = kept;
            // One may have these tags already.
            own.sort_by_key(|record| record.file_name != file_name);
            let Some((first, others)) = own.split_first() else { continue };
            let is_tagged = first.file_name == file_name;
            let also_made_of = others.iter().map(|other| other.made_of.clone()).collect();
            let record =
                if is_tagged { first.clone() } else { emit::retag(first, &shared, options)? };
            self.wheels.push(WheelRecord { also_made_of, ..record });
            self.code_objects.retain(|code| others.iter().all(|it| it.file_name != code.package));
            let moved = self.code_objects.iter_mut().filter(|it| it.package == first.file_name);
            moved.for_each(|code| code.package.clone_from(&file_name));
            for gone in own.iter().skip(usize::from(is_tagged)) {
                options.staging.discard(&gone.file_name)?;
            }
        }
        Ok(())
    }
}
