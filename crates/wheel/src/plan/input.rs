//! Properties of an input wheel: whether it is split, the HIP runtime that loads its code, and the folder of its kernel
//! archives.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_archive::wheel::{Place, escaped, normalized, place};
use rockpack_core::error::{Error, Faults, Result, ResultExt};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::TreePath;
use rockpack_elf::marker::ARCH_PLACEHOLDER;
use rockpack_package::device_wheel::{group, is_named_after};
use rockpack_plan::recombine::Component;
use rockpack_plan::runtime::{RUNTIME, loads_by_shim, runtimes};
use rockpack_report::{Code, Findings, InputArtifact, Soname, found};
use rockpack_split::host_binary::{self, Examined};
use rockpack_split::input::artifact::Artifact;
use rockpack_split::input::wheel::Wheel;
use rockpack_split::{SplitArtifact, is_old, kept_code, needed, standalone_code};

use super::DeviceNamePattern;
use crate::HipRuntime;

/// The ending of folders where tools put the libraries that they copy into a wheel.
const LIBRARIES: &str = ".libs";

/// `.kpack` in the top-level folder whose binaries have the most device code. Folders of copied libraries count only if
/// no package has any.
pub(super) fn archive_folder(wheel: &Wheel, component: &Component) -> Result<TreePath> {
    let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
    for kernel in &component.kernels {
        if let Some((top, _)) = kernel.binary.as_str().split_once('/') {
            *bytes.entry(top).or_default() += kernel.content.len();
        }
    }
    let own = bytes.iter().filter(|(top, _)| !top.ends_with(LIBRARIES));
    let most = own.max_by_key(|(top, bytes)| {
        // If several have the same size, the first by name.
        (**bytes, std::cmp::Reverse(**top))
    });
    let name = escaped(wheel.metadata.name());
    let top = most
        .map(|(top, _)| (*top).to_owned())
        .or_else(|| package(wheel, &name))
        .unwrap_or_else(|| format!("{name}{LIBRARIES}"));
    if top.contains(ARCH_PLACEHOLDER) {
        let message = format!("the folder {top} has {ARCH_PLACEHOLDER} in its name");
        let hint = "loaders replace that by an arch: rename the folder";
        return Err(Error::unsupported(message).file(&wheel.path).hint(hint));
    }
    TreePath::new(format!("{top}/.kpack"))
}

/// The folder of a package: the one with the name of the distribution, or the first that Python imports.
fn package(wheel: &Wheel, name: &str) -> Option<String> {
    let installed = wheel.members.values().filter_map(|member| member.installed.as_ref());
    let tops = installed.filter_map(|path| path.as_str().split_once('/'));
    if tops.clone().any(|(top, _)| top == name) {
        return Some(name.to_owned());
    }
    let imported = tops.filter(|(_, rest)| *rest == "__init__.py");
    imported.map(|(top, _)| top.to_owned()).min()
}

/// Refuses device code in files that are not installed below the wheel's root: no marker leads from there to the
/// archives of device wheels. Returns findings about device code that would stay in such files, and about binaries that
/// were split before.
pub fn check_other_folders(wheel: &Wheel) -> Result<Findings> {
    let (mut faults, mut findings) = (Faults::default(), Findings::default());
    let Artifact { shard, name: artifact, .. } = wheel.artifact()?;
    let root = if wheel.wheel_file.is_purelib { "purelib" } else { "platlib" };
    for (name, member) in &wheel.members {
        let scheme = wheel.scheme(name).filter(|scheme| *scheme != root);
        let place = place(name, &wheel.dist_info);
        let (path, reason) = match (place, scheme) {
            (Place::DistInfo, _) => (name.as_str(), format!("lies in {}", wheel.dist_info)),
            (Place::Site(path) | Place::Other(path), Some(scheme)) => {
                (path, format!("is installed by the scheme {scheme}, not {root}"))
            }
            _ => continue,
        };
        let content = &member.content;
        let has_code = host_binary::device_sections(content).and_then(|sections| {
            Ok(!sections.is_empty() || !standalone_code(content, None)?.is_empty())
        });
        match faults.keep(has_code) {
            Some(true) => {
                let message = format!("{name} has device code, but {reason}");
                let error = Error::unsupported(message).file(&wheel.path);
                let hint = "put it into a package folder at the root of the wheel";
                faults.add(error.hint(hint));
            }
            Some(false) => {
                let file = InputArtifact::new(shard, artifact).file(&TreePath::new(path)?);
                // Binaries in site-packages are joined with their archives later; damaged files stay as they are.
                if !matches!(place, Place::Site(_))
                    && let examined = host_binary::examine(content).if_readable()
                    && let Some(Some(Examined::Transformed(binary))) = faults.keep(examined)
                {
                    if !binary.program_headers_in_front() {
                        findings.add(found::ProgramHeadersMoved { file: file.clone() });
                    }
                    findings.add(found::AlreadyTransformed { file: file.clone() });
                }
                let kept = faults.keep(kept_code(file, content)).flatten();
                findings.extend(kept);
            }
            None => {}
        }
    }
    faults.finish().map(|()| findings)
}

/// Refuses a runtime in `wheel` that cannot read archives, unless another one loads the code.
pub(super) fn check_runtime(
    wheel: &Wheel,
    component: &Component,
    runtime: &HipRuntime,
    findings: &mut Findings,
) -> Result<()> {
    if component.kernels.is_empty() || runtime.shim().is_some() || loads_by_shim(component)? {
        return Ok(());
    }
    let is_own = matches!(runtime, HipRuntime::Own);
    let mut runtimes = runtimes(component)?;
    // Binaries for old releases keep their code.
    runtimes.retain(|path, _| !is_own || is_old(path.name()) != Some(true));
    let unable = runtimes.iter().filter(|(_, reads)| !**reads).map(|(path, _)| path.to_string());
    let files: Vec<String> = unable.collect();
    let own = wheel.name.to_string();
    if runtimes.is_empty() {
        let mut libraries = BTreeSet::new();
        for fat in component.host.values().filter_map(|node| node.data()?.fat()) {
            let own = needed(fat.binary.original())?.into_iter();
            libraries.extend(own.filter(|it| it.starts_with(RUNTIME)).map(Soname::from));
        }
        let libraries = libraries.into_iter().collect();
        findings.add(found::WheelRuntimeOutside { wheel: own, libraries });
    } else if !files.is_empty() {
        findings.add(found::WheelRuntimeCannotRead { wheel: own, files });
    }
    let hint = "build the wheel with a runtime that reads them (ROCM_KPACK_ENABLED), or split it for every \
                runtime with --hip-runtime any, or, where another runtime takes its place, with --hip-runtime other";
    findings.refuse(|code| code == Code::WheelRuntimeCannotRead && is_own, hint)
}

/// Whether `wheel`, which has no binaries with device code, is a device wheel: its kernel archives or databases are for
/// binaries of another wheel. Device wheels are named by `pattern`.
pub fn is_device_wheel(
    wheel: &Wheel,
    taken: &[SplitArtifact],
    pattern: &DeviceNamePattern,
) -> bool {
    let (own, hosts) = (normalized(wheel.metadata.name()), wheel.pinned());
    if taken.iter().any(|part| !part.archives.is_empty()) {
        return !hosts.is_empty() || group(&own).is_some();
    }
    // A device wheel of databases has nothing else, and requires its host.
    let databases = taken.iter().flat_map(|part| &part.databases);
    let archs: BTreeSet<&[BaseArch]> = databases.map(|file| file.archs.as_slice()).collect();
    let has_host_files =
        taken.iter().any(|part| part.host.iter().any(|(_, it)| it.data().is_some()));
    !has_host_files
        && !archs.is_empty()
        && hosts.iter().any(|host| {
            archs.len() == 1 || is_named_after(&own, host) || pattern.matches(&own, host)
        })
}

/// Whether a wheel has nothing for device wheels: no binary has device code, in it or in archives, and no file belongs
/// to a kernel database. Archives without a binary stay in the wheel.
pub fn is_unchanged(joined: &[SplitArtifact]) -> bool {
    joined.iter().all(|part| {
        part.binaries().next().is_none() && (part.databases.is_empty() || !part.archives.is_empty())
    })
}
