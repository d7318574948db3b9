//! New releases that installers pass over, because others sort higher.

use rockpack_archive::wheel::Version;

use super::Releases;
use crate::Format;

impl Releases<'_> {
    /// New releases, each with the one that installers choose instead: it differs behind the `+` alone, sorts
    /// higher, and is for the same tags. Of two new ones, the lower one has to have the higher numbers (`rocm10`,
    /// `rocm7`). Device releases are chosen by their hosts.
    pub fn passed_over(&self, is_new: impl Fn(&str) -> bool) -> Vec<[String; 2]> {
        let mut passed = Vec::new();
        for (project, versions) in &self.0 {
            for (version, release) in versions {
                let new: Vec<_> = release.wheels.iter().filter(|it| is_new(it.path)).collect();
                if new.is_empty() || self.is_device(project, release) {
                    continue;
                }
                let public = version.clone().without_local();
                let mut higher = versions.iter().rev().take_while(|(it, _)| *it > version);
                let chosen = higher.find(|(higher, it)| {
                    (*higher).clone().without_local() == public
                        && (it.wheels.iter().all(|it| !is_new(it.path)) || is_odd(version, higher))
                        && new.iter().any(|wheel| it.fits(wheel))
                });
                if let Some((chosen, _)) = chosen {
                    passed.push([format!("{project} {version}"), chosen.to_string()]);
                }
            }
        }
        passed
    }
}

/// Whether the lower version has the higher numbers, and is no pre-release of the other one.
fn is_odd(lower: &Version, higher: &Version) -> bool {
    let [lower, higher] = [lower, higher].map(ToString::to_string);
    Format::Rpm.compare_versions(&lower, &higher).is_gt() && !lower.starts_with(&higher)
}
