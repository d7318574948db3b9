//! New releases that installers pass over, because others sort higher.

use rockpack_archive::wheel::Version;

use super::Releases;
use crate::Format;
use rockpack_report::{Findings, found};

impl Releases<'_> {
    /// Findings about new releases, each with the one that installers choose instead: it differs after the `+`
    /// alone, sorts higher, and is for the same tags. Of two new ones, the lower one has to have the higher numbers
    /// (`rocm10`, `rocm7`). Device releases are chosen by their hosts.
    pub fn passed_over(&self, is_new: impl Fn(&str) -> bool) -> Findings {
        let mut findings = Findings::default();
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
                    let (wheel, chosen) = (format!("{project} {version}"), chosen.to_string());
                    findings.add(found::WheelSortsBelow { wheel, chosen });
                }
            }
        }
        findings
    }
}

/// Whether the lower version has the higher numbers, and is no pre-release of the other one.
fn is_odd(lower: &Version, higher: &Version) -> bool {
    let [lower, higher] = [lower, higher].map(ToString::to_string);
    Format::Rpm.compare_versions(&lower, &higher).is_gt() && !lower.starts_with(&higher)
}
