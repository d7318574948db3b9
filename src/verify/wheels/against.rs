//! Host and device wheels beside the fat wheel that they were made from.
//!
//! A fat wheel is one artifact whose prefix is the root of site-packages, so that what holds of packages
//! beside artifacts holds here. Its metadata are written anew: of these, every file but METADATA, WHEEL and
//! RECORD is in the host wheel as it was.

use std::path::{Path, PathBuf};

use rockpack_base::content::Content;
use rockpack_base::error::{Error, Kind, Result};
use rockpack_base::tree::{Node, TreePath};

use super::set::{Sets, WheelSet};
use crate::input::artifact::ScanOptions;
use crate::input::wheel::{self, Wheel as FatWheel};
use crate::report::Progress;
use crate::verify::Options;
use crate::verify::against::SetComparison;
use crate::verify::against::inputs::ArtifactInputs;
use crate::verify::checks::excuses::Excuses;
use crate::verify::own::installed::Installed;
use crate::verify::own::wheel::{Wheel, elsewhere};
use crate::verify::problem::{FileLoss, InputVariant, Problem, Problems};

/// Texts that a split writes anew.
const WRITTEN_ANEW: [&str; 3] = ["METADATA", "WHEEL", "RECORD"];

/// Fields that a split adds to METADATA.
const ADDED: [&str; 2] = ["Provides-Extra: ", "Requires-Dist: "];

/// A comparison of sets with their fat wheels; `excuses` explain what is not in them.
pub(super) struct Comparison<'a> {
    pub(super) options: &'a Options<'a>,
    pub(super) excuses: &'a Excuses,
    /// The wheels that are verified, those included that cannot be read.
    pub(super) paths: &'a [PathBuf],
}

impl Comparison<'_> {
    /// Compares every set with its fat wheel; how many code objects were looked for.
    pub(super) fn check(
        &self,
        sets: &Sets<'_>,
        progress: &dyn Progress,
        problems: &mut Problems,
    ) -> Result<u64> {
        let mut left: Vec<&WheelSet<'_>> = sets.sets.iter().collect();
        let mut count = 0;
        for path in self.options.wheels {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let own = left.iter().position(|set| set.host.installed.file == *name);
            let alone = || sets.others.iter().find(|wheel| wheel.installed.file == *name);
            if let Some(own) = own {
                count += self.compare(left.remove(own), path, progress, problems)?;
            } else if let Some(wheel) = alone() {
                count += self.compare_copy(wheel, path, progress, problems)?;
            } else if !self.paths.iter().any(|given| given.file_name() == path.file_name()) {
                return Err(no_host(path));
            }
            // That a wheel cannot be read was told.
        }
        match left.first() {
            Some(set) => {
                let file = &set.host.installed.file;
                Err(Error::new(Kind::Usage, format!("no fat wheel of --against is called {file}"))
                    .hint("give the fat wheel of each host wheel, which has the same file name"))
            }
            None => Ok(count),
        }
    }

    /// Compares a wheel without device wheels with the one at `path`: a wheel without device code is copied
    /// as it is.
    fn compare_copy(
        &self,
        host: &Wheel,
        path: &Path,
        progress: &dyn Progress,
        problems: &mut Problems,
    ) -> Result<u64> {
        let fat = Content::open(path, &self.options.budget)?;
        if fat.sha256()? == host.installed.sha256 {
            return Ok(0);
        }
        let set = WheelSet { host, devices: Vec::new() };
        self.compare(&set, path, progress, problems)
    }

    /// Compares a set with the fat wheel at `path`; how many code objects that has.
    fn compare(
        &self,
        set: &WheelSet<'_>,
        path: &Path,
        progress: &dyn Progress,
        problems: &mut Problems,
    ) -> Result<u64> {
        let scan = ScanOptions::within(&self.options.budget);
        let mut fat = wheel::read(path, &scan, progress)?;
        check_metadata(set, &fat, problems);
        add_elsewhere(&mut fat)?;
        let inputs = fat.scan.findings.explain(ArtifactInputs::read(&fat.scan, progress))?;
        let packages: Vec<&Installed> = set.wheels().map(|wheel| &wheel.installed).collect();
        let (packages, excuses) = (packages.as_slice(), self.excuses);
        let comparison = SetComparison { packages, prefix: "", excuses, inputs: &inputs };
        comparison.check(problems)?;
        comparison.check_uninvited(problems)?;
        fat.scan.inputs.recheck()?;
        Ok((inputs.in_binaries().count() + inputs.in_files().count()) as u64)
    }
}

fn no_host(path: &Path) -> Error {
    let message = "no host wheel of those that are verified has the name of this fat wheel";
    Error::new(Kind::Usage, message)
        .file(path)
        .hint("a host wheel has the file name of the wheel that it was made from: name both")
}

/// Adds what is installed elsewhere than in site-packages, where the wheels of the set have it.
fn add_elsewhere(fat: &mut FatWheel) -> Result<()> {
    let prefixes = fat.scan.shards.iter_mut().flat_map(|shard| &mut shard.artifacts);
    let Some(prefix) = prefixes.flat_map(|artifact| &mut artifact.prefixes).next() else {
        return Ok(());
    };
    for (name, member) in &fat.members {
        if let (None, Some(inside)) = (&member.installed, elsewhere(name)) {
            let node = Node::File { data: member.content.clone(), mode: member.mode };
            prefix.tree.insert(TreePath::new(inside)?, node)?;
        }
    }
    Ok(())
}

/// Every text beside METADATA, such as licences and entry points, is in the host wheel, and so is every
/// line of METADATA.
fn check_metadata(set: &WheelSet<'_>, fat: &FatWheel, problems: &mut Problems) {
    let was = || InputVariant::File { shards: vec![fat.name.to_string()] };
    if !is_added_to(&fat.metadata.with(""), &set.host.metadata.with("")) {
        let path = format!("/{}/METADATA", fat.dist_info);
        let loss = FileLoss::OtherContent { was: was() };
        problems.add(Problem::FileLost { path, loss });
    }
    let is_kept = |name: &str| {
        let file = name.strip_prefix(&fat.dist_info).and_then(|rest| rest.strip_prefix('/'));
        file.is_some_and(|file| !WRITTEN_ANEW.contains(&file))
    };
    for (name, member) in fat.members.iter().filter(|(name, _)| is_kept(name)) {
        let path = format!("/{name}");
        if set.host.texts.get(&path) == Some(&member.sha256) {
            continue;
        }
        let loss = match set.host.texts.contains_key(&path) {
            true => FileLoss::OtherContent { was: was() },
            false => FileLoss::Absent { was: was() },
        };
        problems.add(Problem::FileLost { path, loss });
    }
}

/// Whether METADATA are others with more requirements and extras, and nothing else changed.
fn is_added_to(before: &str, after: &str) -> bool {
    let mut left = before.lines().peekable();
    let is_known = after.lines().all(|line| {
        left.next_if_eq(&line).is_some() || ADDED.iter().any(|field| line.starts_with(field))
    });
    is_known && left.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_and_extras_are_added() {
        let before = "Name: a\nRequires-Dist: b\nVersion: 1\n\ntext\n";
        for (after, expected) in [
            (before.to_owned(), true),
            (before.replace("Version: 1\n", "Version: 1\nProvides-Extra: x\n"), true),
            (before.replace("Version: 1\n", "Version: 1\nRequires-Dist: c\n"), true),
            (before.replace("Requires-Dist: b\n", ""), false),
            (before.replace("Version: 1\n", "Version: 1\nLicense: x\n"), false),
            (before.replace("text", "other"), false),
            (before.replace("text\n", ""), false),
        ] {
            assert_eq!(is_added_to(before, &after), expected, "{after}");
        }
    }
}
