//! Host binaries that had device code: which build is installed, and that nothing else is.

use rockpack_base::error::Result;
use rockpack_base::tree::TreePath;

use super::SetComparison;
use super::host_form;
use super::split_inputs::BinaryBuild;
use crate::verify::checks::twice;
use crate::verify::own::facts::{Class, FileFacts};
use crate::verify::own::host_elf::HostElf;
use crate::verify::own::installed::{Installed, InstalledNode};
use crate::verify::problem::{FileLoss, Problem, Problems};

impl<'a> SetComparison<'a> {
    /// A transformed binary has the machine code, the wrappers and the form of one of the builds.
    pub(super) fn check_host(
        &self,
        path: &TreePath,
        builds: &[BinaryBuild],
        problems: &mut Problems,
    ) -> Result<()> {
        let modes: Vec<u32> = builds.iter().map(|build| build.mode).collect();
        self.check_modes(path, &modes, problems);
        let installed = self.binaries(path);
        if installed.is_empty() {
            self.add_loss(path, FileLoss::BinaryAbsent, problems);
        }
        for (facts, elf) in installed {
            let own: Vec<&BinaryBuild> = builds.iter().filter(|build| build.is_of(elf)).collect();
            if own.is_empty() {
                self.add_loss(path, FileLoss::OtherBinary, problems);
            } else if let Some(loss) = self.other_bytes(path, facts, &own)? {
                self.add_loss(path, loss, problems);
            }
        }
        Ok(())
    }

    fn add_loss(&self, path: &TreePath, loss: FileLoss, problems: &mut Problems) {
        let path = format!("{}/{path}", self.prefix);
        problems.add(Problem::FileLost { path, loss });
    }

    /// The parts of the installed file that are those of no build. Of several builds, the one with most parts in
    /// common counts.
    fn other_bytes(
        &self,
        path: &TreePath,
        facts: &FileFacts,
        builds: &[&BinaryBuild],
    ) -> Result<Option<FileLoss>> {
        let mut least: Option<(&BinaryBuild, Vec<String>)> = None;
        for build in builds {
            let parts = host_form::other_parts(build, facts, path, self.excuses)?;
            if parts.is_empty() {
                return Ok(None);
            }
            if least.as_ref().is_none_or(|(_, known)| parts.len() < known.len()) {
                least = Some((build, parts));
            }
        }
        Ok(least.map(|(build, parts)| FileLoss::OtherBytes { shard: build.shard.clone(), parts }))
    }

    /// The host binaries installed at `path`, of several versions of a package those of the newest.
    fn binaries(&self, path: &TreePath) -> Vec<(&'a FileFacts, &'a HostElf)> {
        let absolute = format!("{}/{path}", self.prefix);
        let packages = twice::newest(self.packages).into_iter();
        let nodes = packages.filter_map(|package: &'a Installed| package.paths.get(&absolute));
        let facts = nodes.filter_map(InstalledNode::facts);
        let host = facts.filter_map(|facts| match &facts.class {
            Class::Host(host) => Some((facts, &host.elf)),
            _ => None,
        });
        host.collect()
    }
}
