//! The wheels made from one wheel: kernel archives, and binaries with markers for them.
//!
//! The names of archives contain the first digits of the digest of all device code with its keys and targets. So a
//! host wheel finds only archives of its own code: with kernels of another build installed it finds none, but never
//! wrong ones.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rockpack_archive::wheel::escaped;
use rockpack_core::content::Sha256Digest;
use rockpack_core::error::{Error, Result, ResultExt};
use rockpack_core::tree::TreePath;

use crate::plan::{FILE_MODE, MemberSource, PlannedMember, PlannedWheel, WheelPlan};
use rockpack_emit::pack::{PackedArchive, Packer, marker};
use rockpack_package::dependencies::runpath;
use rockpack_package::receipt::wheels::WheelKind;
use rockpack_package::receipt::{CodeObjectPlace, CodeObjectRecord};
use rockpack_plan::recombine::Component;
use rockpack_split::host_binary::SHIM;
use rockpack_split::input::wheel::Wheel;
use rockpack_split::{DatabaseFile, standalone_code};

impl PlannedWheel {
    /// Bytes of all members, once they are packed.
    pub fn bytes(&self) -> u64 {
        let sizes = self.members.values().map(|member| match &member.source {
            MemberSource::Copied(kept) => kept.zip.size,
            MemberSource::Stored(content) | MemberSource::Generated(content) => content.len(),
            MemberSource::Fat(_) => 0,
        });
        sizes.sum()
    }
}

/// Packs the wheels of `plan`, the host wheel first.
pub fn pack(
    wheel: &Wheel,
    component: &Component,
    plan: WheelPlan,
    packer: &Packer<'_>,
    level: i32,
) -> Result<Vec<PlannedWheel>> {
    let WheelPlan { folder, host, devices, .. } = plan;
    let (file, stem) = (wheel.name.to_string(), escaped(wheel.metadata.name()));
    let (name, archives) = packer.pack_by_code(&file, &component.kernels, level, |digest| {
        format!("{stem}-{}", digest.get(..16).unwrap_or(digest))
    })?;
    let sources = Sources { component, folder: &folder, name: &name };
    let mut packed = vec![sources.packed(host, &[])?];
    for device in devices {
        let own: Vec<&PackedArchive> =
            archives.iter().filter(|archive| device.archives.contains(&archive.arch)).collect();
        packed.push(sources.packed(device, &own)?);
    }
    Ok(packed)
}

/// The sources of the bytes of members.
struct Sources<'a> {
    component: &'a Component,
    folder: &'a TreePath,
    /// The name of the archives, without the arch.
    name: &'a str,
}

impl Sources<'_> {
    fn packed(&self, mut wheel: PlannedWheel, archives: &[&PackedArchive]) -> Result<PlannedWheel> {
        let members = &mut wheel.members;
        let transformed: Vec<Result<()>> =
            members.par_iter_mut().map(|(_, member)| self.transform(member)).collect();
        transformed.into_iter().collect::<Result<()>>()?;
        let file_name = &wheel.record.file_name;
        if wheel.record.role != WheelKind::Host {
            wheel.code_objects = self.database_code(members, file_name)?;
        }
        for archive in archives {
            let path = self.folder.join(&archive.file_name)?.to_string();
            let records = archive.records(&path, file_name);
            let records = records.map(|record| CodeObjectRecord { shard: None, ..record });
            wheel.code_objects.extend(records);
            let source = MemberSource::Stored(archive.content.clone());
            if members.insert(path.clone(), PlannedMember { mode: FILE_MODE, source }).is_some() {
                return Err(
                    Error::bug("a kernel archive has the path of another file").structure(path)
                );
            }
        }
        Ok(wheel)
    }

    /// Transforms a member that is a fat binary: it gets a marker for the archives.
    fn transform(&self, member: &mut PlannedMember) -> Result<()> {
        let MemberSource::Fat(path) = &member.source else { return Ok(()) };
        let node = self.component.host.get(path).and_then(|node| node.data());
        let fat = node
            .and_then(|file| file.fat())
            .ok_or_else(|| Error::bug("a fat binary is gone").structure(path.as_str()))?;
        let marker = marker(path, [self.folder], self.name)?;
        let shim = format!("{}/{SHIM}", runpath::from_origin(Some(self.folder), path));
        let content = fat.binary.with_marker(&marker, &shim);
        member.source = MemberSource::Generated(content.context(|| format!("writing {path}"))?);
        Ok(())
    }

    fn database_code(
        &self,
        members: &BTreeMap<String, PlannedMember>,
        wheel: &str,
    ) -> Result<Vec<CodeObjectRecord>> {
        let own =
            self.component.databases.iter().filter(|file| members.contains_key(file.path.as_str()));
        let mut records = Vec::new();
        for file in own {
            let DatabaseFile { path, archs, content, .. } = file;
            let arch = archs.first().filter(|_| archs.len() == 1);
            for code in standalone_code(content, arch)? {
                let (entry, target, size) = (code.entry.clone(), code.target.clone(), code.size);
                let sha256: Sha256Digest = code.digest(content)?;
                records.push(CodeObjectRecord {
                    sha256: sha256.to_string(),
                    size,
                    stored_size: None,
                    target,
                    shard: None,
                    package: wheel.to_owned(),
                    place: CodeObjectPlace::File { file: path.to_string(), entry },
                });
            }
        }
        Ok(records)
    }
}
