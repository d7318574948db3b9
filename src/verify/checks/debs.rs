//! Packages of rockpack as `.deb`: nothing in them has dpkg or apt do what no build says.

use crate::verify::own::installed::Installed;
use crate::verify::problem::{Problem, Problems};

/// Adds what a package has that no `.deb` of rockpack has. Only of packages that a receipt lists, or that
/// have what no other tool packs, is it known that rockpack made them.
pub(in crate::verify) fn check(package: &Installed, is_listed: bool, problems: &mut Problems) {
    if !is_listed && !package.is_of_rockpack() {
        return;
    }
    for fault in package.deb_faults.iter().cloned() {
        problems.add(Problem::BadDeb { package: package.file.clone(), fault });
    }
}
