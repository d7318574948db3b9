//! Compares host and device wheels with the fat wheel that they were made from.
//!
//! A fat wheel is one artifact whose prefix is the root of site-packages, so it is compared like artifacts with
//! packages. RECORD is rewritten, and so is WHEEL if it contradicts the file name; METADATA has additional fields. All
//! other metadata is unchanged in the host wheel, and licences in the device wheels. METADATA of device wheels has
//! fields of the fat wheel, and requirements that tie the set together or that a signed receipt names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use rockpack_archive::wheel::{Condition, Place, Requirement, Version, normalized, place};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::{Node, TreePath};
use rockpack_package::device_wheel::EXTRA;
use rockpack_package::receipt::wheels::WheelReceipt;
use rockpack_report::Progress;
use rockpack_split::input::artifact::ScanOptions;
use rockpack_split::input::wheel::{self, Wheel as FatWheel, always_required};

use crate::Options;
use crate::against::SetComparison;
use crate::against::inputs::ArtifactInputs;
use crate::checks::excuses::Excuses;
use crate::problem::{FileLoss, Problem, Problems};
use crate::readers::Sha;
use crate::readers::installed::PackageContents;
use crate::readers::wheel::{DATA, Wheel};
use crate::wheels::set::{WheelSet, WheelSets};

/// Metadata files that a split rewrites.
const REWRITTEN_FILES: [&str; 3] = ["METADATA", "WHEEL", "RECORD"];

/// Fields of METADATA that a device wheel does not copy from the fat wheel.
const DEVICE_FIELDS: [&str; 5] =
    ["Metadata-Version", "Name", "Version", "Summary", "Description-Content-Type"];

/// The folder for licences in `dist-info`, since METADATA 2.4.
const LICENCES: &str = "licenses/";

/// The placeholder for the group in configured requirements.
const GROUP: &str = "{group}";

/// A comparison of sets with their fat wheels.
pub(super) struct WheelComparison<'a> {
    pub(super) options: &'a Options<'a>,
    pub(super) excuses: &'a Excuses,
    pub(super) wheels: &'a [Wheel],
    /// All verified wheels, including unreadable ones.
    pub(super) paths: &'a [PathBuf],
    pub(super) receipts: &'a [&'a WheelReceipt],
}

impl WheelComparison<'_> {
    /// The receipts with a verified signature; none without keys, since anyone may have written them.
    fn signed(&self) -> impl Iterator<Item = &WheelReceipt> {
        self.receipts.iter().copied().filter(|_| !self.options.trust.keys.is_empty())
    }

    /// Compares every set with its fat wheel; returns the number of code objects compared.
    pub(super) fn check(
        &self,
        sets: &WheelSets<'_>,
        progress: &dyn Progress,
        problems: &mut Problems,
    ) -> Result<u64> {
        // Missing hosts of device wheels are already reported.
        let reported =
            sets.without_host.iter().map(|(wheel, _)| *wheel).filter(|wheel| !wheel.is_copy);
        let mut done: BTreeSet<&str> = reported.map(|wheel| &*wheel.installed.file).collect();
        let mut count = 0;
        for path in &self.options.wheels {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let wheel = self.wheels.iter().find(|wheel| wheel.installed.file == *name);
            let Some(host) = wheel else {
                // An unreadable wheel is already reported.
                if self.paths.iter().any(|given| given.file_name() == path.file_name()) {
                    continue;
                }
                let message =
                    "none of the verified host wheels has the file name of this fat wheel";
                let hint =
                    "a host wheel has the file name of the wheel that it was made from: name both";
                return Err(Error::new(Kind::Usage, message).file(path).hint(hint));
            };
            done.insert(&host.installed.file);
            let fat = Content::open(path, &self.options.budget)?;
            // Copies have the bytes of the input.
            if fat.len() == host.installed.size && fat.sha256()? == host.installed.sha256 {
                continue;
            }
            let host_only = WheelSet { host, devices: Vec::new() };
            let set = sets.sets.iter().find(|set| set.host.installed.file == *name);
            let set = set.unwrap_or(&host_only);
            done.extend(set.wheels().map(|wheel| &*wheel.installed.file));
            count += self.compare(set, path, progress, problems)?;
        }
        let mut files = self.wheels.iter().map(|wheel| &wheel.installed.file);
        match files.find(|file| !done.contains(file.as_str())) {
            Some(file) => {
                Err(Error::new(Kind::Usage, format!("no fat wheel of --against is named {file}"))
                    .hint("give the input of each host wheel and copy, which has its file name"))
            }
            None => Ok(count),
        }
    }

    /// Compares a set with the fat wheel at `path`; returns the number of its code objects.
    fn compare(
        &self,
        set: &WheelSet<'_>,
        path: &Path,
        progress: &dyn Progress,
        problems: &mut Problems,
    ) -> Result<u64> {
        let scan = ScanOptions::within(&self.options.budget);
        let mut fat = wheel::read(path, &scan, progress)?;
        MetadataComparison { set, fat: &fat, comparison: self }.check(problems);
        // Moves files that are installed outside site-packages to the path that the wheels of the set use.
        let artifacts = fat.scan.shards.iter_mut().flat_map(|shard| &mut shard.artifacts);
        if let Some(prefix) = artifacts.flat_map(|artifact| &mut artifact.prefixes).next() {
            for (name, member) in &fat.members {
                if let Place::Other(path) = place(name, &fat.dist_info) {
                    let node = Node::File { data: member.content.clone(), mode: member.mode };
                    prefix.tree.insert(TreePath::new(format!("{DATA}/{path}"))?, node)?;
                }
            }
        }
        let inputs = fat.scan.findings.explain(ArtifactInputs::read(&fat.scan, progress))?;
        let packages: Vec<&PackageContents> = set.wheels().map(|wheel| &wheel.installed).collect();
        let (packages, excuses) = (packages.as_slice(), self.excuses);
        let comparison = SetComparison { packages, prefix: "", excuses, inputs: &inputs };
        comparison.check(problems)?;
        comparison.check_origins(problems);
        fat.scan.inputs.recheck()?;
        Ok((inputs.in_binaries().count() + inputs.in_files().count()) as u64)
    }
}

struct MetadataComparison<'a> {
    set: &'a WheelSet<'a>,
    fat: &'a FatWheel,
    comparison: &'a WheelComparison<'a>,
}

impl MetadataComparison<'_> {
    /// Checks that host wheels have the metadata of the fat wheel, device wheels only its licences, and that METADATA
    /// has only explained additions.
    fn check(&self, problems: &mut Problems) {
        let Self { set, fat, .. } = self;
        self.check_metadata(problems);
        let keeps_wheel = fat.wheel_file.agrees_with(&fat.name);
        for (name, member) in &fat.members {
            let Some(file) = name.strip_prefix(&fat.dist_info) else { continue };
            let Some(file) = file.strip_prefix('/') else { continue };
            let is_anew = REWRITTEN_FILES.contains(&file) && !(file == "WHEEL" && keeps_wheel);
            let path = format!("/{name}");
            let loss = match set.host.texts.get(&path) {
                _ if is_anew => continue,
                Some(own) if *own == member.sha256 => continue,
                Some(_) => FileLoss::OtherContent,
                None => FileLoss::Absent,
            };
            problems.add(Problem::FileLost { path, loss });
        }
        if set.host.headers.is_purelib != fat.wheel_file.is_purelib && !keeps_wheel {
            let path = format!("/{}/WHEEL", fat.dist_info);
            problems.add(Problem::FileLost { path, loss: FileLoss::OtherContent });
        }
        check_foreign(set.host, |file, _| self.fat_digest(file).is_some(), problems);
        // A licence may be in the folder for licences in only one of the two wheels.
        let is_licence = |file: &str, own: &Sha| {
            let plain = file.strip_prefix(LICENCES).unwrap_or(file);
            let places = [plain.to_owned(), format!("{LICENCES}{plain}")];
            places.iter().any(|place| self.fat_digest(place) == Some(own))
        };
        for device in &set.devices {
            self.check_device_metadata(device, problems);
            check_foreign(device, is_licence, problems);
        }
    }

    fn fat_digest(&self, file: &str) -> Option<&Sha> {
        let member = self.fat.members.get(&format!("{}/{file}", self.fat.dist_info));
        member.map(|member| &member.sha256)
    }

    /// Checks that METADATA of the host wheel is that of the fat wheel, followed by fields that a split adds.
    fn check_metadata(&self, problems: &mut Problems) {
        let (before, after) = (self.fat.metadata.with(""), self.set.host.metadata.with(""));
        let path = format!("/{}/METADATA", self.fat.dist_info);
        let Some(added) = added_fields(&before, &after) else {
            return problems.add(Problem::FileLost { path, loss: FileLoss::OtherContent });
        };
        for line in added.lines().filter(|line| !self.is_added_by_split(line)) {
            add_line(self.set.host, line, problems);
        }
    }

    /// Checks that METADATA of a device wheel has values of the fat wheel's fields, and requires only wheels of the set
    /// and those that the receipt names.
    fn check_device_metadata(&self, device: &Wheel, problems: &mut Problems) {
        let (fields, _) = split_fields(device.metadata.text());
        let names = fields.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name);
        let names: BTreeSet<&str> = names.filter(|name| !name.starts_with([' ', '\t'])).collect();
        for name in names.into_iter().filter(|name| !DEVICE_FIELDS.contains(name)) {
            let requires = name.eq_ignore_ascii_case("Requires-Dist");
            let is_known = |text: &str| match requires {
                true => self.is_of_device(text, device),
                false => self.fat.metadata.all(name).any(|own| own == text),
            };
            let others = device.metadata.all(name).filter(|text| !is_known(text));
            others.for_each(|text| add_line(device, &format!("{name}: {text}"), problems));
        }
    }

    /// Whether a requirement of a device wheel is the host, a device wheel of the host, a device extra of another
    /// wheel, or named by the receipt.
    fn is_of_device(&self, text: &str, device: &Wheel) -> bool {
        let (host, Ok(it)) = (self.set.host, Requirement::parse(text)) else { return false };
        let version = Version::from_str(host.metadata.version()).ok();
        let is_pin = it.extras.is_empty() && it.condition == Condition::Always;
        let mut devices = host.extras.values().flatten();
        let is_of_set =
            it.project == host.installed.name || devices.any(|device| device.project == it.project);
        if is_of_set && is_pin && it.exact().is_some() && it.exact() == version.as_ref() {
            return true;
        }
        let own = host.extras.iter().filter(|(_, brought)| {
            brought.iter().any(|wheel| wheel.project == device.installed.name)
        });
        let groups: Vec<&str> = own.filter_map(|(extra, _)| extra.strip_prefix(EXTRA)).collect();
        self.is_chained(text, &it)
            || self.comparison.signed().flat_map(|receipt| &receipt.device_requires).any(|line| {
                let mut lines = groups.iter().map(|group| line.replace(GROUP, group));
                line.trim() == text || lines.any(|line| line.trim() == text)
            })
    }

    /// Whether a requirement is a device extra of another wheel that the host requires, without a URL.
    fn is_chained(&self, text: &str, it: &Requirement) -> bool {
        let further = self.comparison.signed().flat_map(|receipt| &receipt.host_requires);
        let mut required = always_required(&self.fat.metadata, further);
        !text.contains('@')
            && matches!(&it.extras[..], [asked] if asked.starts_with(EXTRA))
            && required.any(|own| own.project == it.project && own.versions == it.versions)
    }

    /// Whether a split adds a line to METADATA: a device extra, a device wheel, the same extra of another wheel, or a
    /// requirement that the receipt names.
    fn is_added_by_split(&self, line: &str) -> bool {
        if let Some(extra) = line.strip_prefix("Provides-Extra: ").map(normalized) {
            let all = self.set.host.metadata.all("Requires-Dist");
            let mut made = all.filter_map(|text| {
                Requirement::parse(text).ok().filter(|it| self.is_of_extra(text, it))
            });
            return made.any(|it| it.condition.extras().contains(&extra));
        }
        let Some(text) = line.strip_prefix("Requires-Dist: ") else { return false };
        self.comparison.signed().any(|it| it.host_requires.iter().any(|own| own == text))
            || Requirement::parse(text).is_ok_and(|it| self.is_of_extra(text, &it))
    }

    /// Whether a requirement of an extra is a device wheel, or the device extra of another wheel that the host
    /// requires.
    fn is_of_extra(&self, text: &str, it: &Requirement) -> bool {
        let [extra] = it.condition.extras() else { return false };
        let mut devices = self.set.host.extras.get(extra).into_iter().flatten();
        let is_plain = matches!(it.condition, Condition::Extra(_)) && it.exact().is_some();
        is_plain && devices.any(|device| device == it)
            || extra.starts_with(EXTRA) && self.is_chained(text, it)
    }
}

/// Reports an unexplained line of METADATA.
fn add_line(wheel: &Wheel, line: &str, problems: &mut Problems) {
    let (wheel, line) = (wheel.installed.file.clone(), line.escape_debug().to_string());
    problems.add(Problem::WheelMetadata { wheel, line });
}

/// Reports the files of `dist-info` that neither a split writes nor `is_known` accepts.
fn check_foreign(wheel: &Wheel, is_known: impl Fn(&str, &Sha) -> bool, problems: &mut Problems) {
    for (path, sha256) in &wheel.texts {
        let (_, file) = path.trim_start_matches('/').split_once('/').unwrap_or_default();
        if !REWRITTEN_FILES.contains(&file) && !is_known(file, sha256) {
            let file = wheel.installed.at(path);
            problems.add(Problem::FileForeign { file, kind: "file".to_owned() });
        }
    }
}

/// The fields that `after` appends to those of `before`, if everything else is equal.
fn added_fields<'a>(before: &str, after: &'a str) -> Option<&'a str> {
    let ((fields, text), (others, other_text)) = (split_fields(before), split_fields(after));
    others.strip_prefix(fields).filter(|_| text == other_text)
}

/// Splits METADATA into its fields and the text after them.
fn split_fields(text: &str) -> (&str, &str) {
    let fields = text
        .split_inclusive('\n')
        .take_while(|line| !line.trim_end_matches(['\r', '\n']).is_empty());
    text.split_at(fields.map(str::len).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_added_after_the_others() {
        let before = "Name: a\nLicense: b\n c\nVersion: 1\n\ntext\n";
        for (after, expected) in [
            (before.to_owned(), Some("")),
            (before.replace("1\n\n", "1\nProvides-Extra: x\n\n"), Some("Provides-Extra: x\n")),
            (before.replace("1\n\n", "1\n d\n\n"), Some(" d\n")),
            (before.replace("Version", "Requires-Dist: c\nVersion"), None),
            (before.replace(" c\n", ""), None),
            (before.replace("text", "Requires-Dist: c\ntext"), None),
            (before.replace("text\n", ""), None),
        ] {
            assert_eq!(added_fields(before, &after), expected, "{after}");
        }
    }
}
