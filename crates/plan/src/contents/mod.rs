//! Assigns every host file, code object and database to the portion of one package.

pub(super) mod assign;
mod exclude;
pub(super) mod missing;
pub(super) mod portion;
pub(super) mod selectors;

use rockpack_core::error::Result;

use super::settings::PlanSettings;
use crate::recombine::Group;
use portion::Portion;
use rockpack_report::{Finding, Findings};

/// The portions without the archs that the configuration leaves out; empty portions are dropped.
pub(super) fn reduced<'a>(
    mut portions: Vec<Portion<'a>>,
    groups: &[Group],
    setting: &PlanSettings,
    findings: &mut Findings,
) -> Result<Vec<Portion<'a>>> {
    exclude::apply(&mut portions, groups, setting, findings)?;
    portions.retain(|portion| !portion.is_empty());
    note_hostless(setting, &portions, findings)?;
    Ok(portions)
}

/// Notes host packages without host files: kernel packages need one to depend on.
fn note_hostless(
    setting: &PlanSettings,
    portions: &[Portion<'_>],
    findings: &mut Findings,
) -> Result<()> {
    for portion in portions.iter().filter(|portion| portion.files.is_empty()) {
        let package = portion.host_names(&setting.names)?.deb.into();
        findings.add(Finding::HostPackageEmpty { package });
    }
    Ok(())
}
