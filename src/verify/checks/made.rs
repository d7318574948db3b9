//! Packages of rockpack: nothing in them has package managers do what no build says, all that is in them has
//! one time, and takes as much as they say.

use std::collections::BTreeMap;

use super::set_archives::shipped;
use crate::package::Format;
use crate::verify::own::installed::Installed;
use crate::verify::problem::{DebFault, HeaderFault, Problem, Problems};

/// Reports features of packages that rockpack never writes. `is_claimed` tells which packages are claimed to
/// be made by rockpack; others count as such if they have content that no other tool packs.
pub(in crate::verify) fn check(
    packages: &[Installed],
    is_claimed: impl Fn(&Installed) -> bool,
    problems: &mut Problems,
) {
    let shipped = shipped(&packages.iter().collect::<Vec<_>>());
    let own = packages.iter().filter(|it| is_claimed(it) || it.is_of_rockpack(&shipped));
    let mut first = BTreeMap::new();
    for package in own {
        // Of one set, all packages of a format have one version, and one time.
        let set = (package.format, package.version.as_str());
        let time = package.times.keys().next().map(|time| *first.entry(set).or_insert(*time));
        for fault in package.deb_faults.iter().cloned() {
            problems.add(Problem::BadDeb { package: package.file.clone(), fault });
        }
        for fault in package.header_faults.iter().cloned() {
            problems.add(Problem::BadHeader { package: package.file.clone(), fault });
        }
        other_size(package).into_iter().for_each(|problem| problems.add(problem));
        let other = time.and_then(|time| other_time(package, time));
        other.into_iter().for_each(|problem| problems.add(problem));
    }
}

/// The problem of a package whose stated installed size is not that of its content.
fn other_size(package: &Installed) -> Option<Problem> {
    let (stated, own) = (package.installed_size.unwrap_or_default(), package.size_of_content());
    let file = package.file.clone();
    Some(match package.format.filter(|_| stated != own)? {
        Format::Deb => Problem::BadDeb { package: file, fault: DebFault::Size { stated, own } },
        Format::Rpm => {
            Problem::BadHeader { package: file, fault: HeaderFault::Size { stated, own } }
        }
    })
}

/// The path whose time is another one than that of the other files of the set.
fn other_time(package: &Installed, others: u64) -> Option<Problem> {
    let (time, path) = package.times.iter().find(|(time, _)| **time != others)?;
    let (time, path, package_file) = (*time, path.clone(), package.file.clone());
    Some(match package.format? {
        Format::Deb => {
            Problem::BadDeb { package: package_file, fault: DebFault::Time { path, time, others } }
        }
        Format::Rpm => {
            let fault = HeaderFault::Time { path, time, others };
            Problem::BadHeader { package: package_file, fault }
        }
    })
}
