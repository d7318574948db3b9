//! The wheels made from one wheel: kernel archives, and binaries with markers for them.
//!
//! The names of archives have a token, the first digits of the digest of all device code with its keys and
//! targets. So a host wheel finds only archives of its own code: beside kernels of another build it finds
//! none, and never wrong ones.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rockpack_archive::wheel::escaped;
use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::{Error, Result, ResultExt};
use rockpack_core::tree::TreePath;

use crate::plan::{MemberSource, PlannedMember, PlannedWheel, WheelPlan};
use rockpack_emit::pack::{PackOptions, PackedArchive, Packer, marker};
use rockpack_package::dependencies::runpath;
use rockpack_package::receipt::wheels::{WheelKind, WheelRecord};
use rockpack_package::receipt::{CodeObjectPlace, CodeObjectRecord};
use rockpack_plan::recombine::Component;
use rockpack_split::host_binary::SHIM;
use rockpack_split::input::wheel::{Wheel, WheelMember};
use rockpack_split::{DatabaseFile, loose_code};

/// Digits of the token in the names of archives.
const TOKEN: usize = 16;

/// The mode of kernel archives.
const MODE: u32 = 0o644;

/// A wheel with the bytes of its members.
#[derive(Debug)]
pub struct PackedWheel {
    /// Its record, still without sizes and digest.
    pub record: WheelRecord,
    /// The name of the `dist-info` folder.
    pub dist_info: String,
    /// The members except RECORD.
    pub members: BTreeMap<String, PackedMember>,
    /// The code objects in the wheel.
    pub code_objects: Vec<CodeObjectRecord>,
}

impl PackedWheel {
    /// Bytes of all members.
    pub fn bytes(&self) -> u64 {
        let sizes = self.members.values().map(|member| match &member.bytes {
            MemberBytes::Kept(kept) => kept.zip.size,
            MemberBytes::Stored(content) | MemberBytes::Deflated(content) => content.len(),
        });
        sizes.sum()
    }
}

/// A member with its bytes.
#[derive(Debug)]
pub struct PackedMember {
    /// The mode, 0644 or 0755.
    pub mode: u32,
    /// The bytes.
    pub bytes: MemberBytes,
}

/// The bytes of a member.
#[derive(Debug)]
pub enum MemberBytes {
    /// A member of the input, stored unchanged.
    Kept(WheelMember),
    /// Bytes that are already compressed.
    Stored(Content),
    /// Bytes to compress.
    Deflated(Content),
}

/// Packs the wheels of `plan`, the host wheel first.
pub fn pack(
    wheel: &Wheel,
    component: &Component,
    plan: WheelPlan,
    options: &PackOptions<'_>,
) -> Result<Vec<PackedWheel>> {
    let WheelPlan { folder, host, devices, .. } = plan;
    let (file, stem) = (wheel.name.to_string(), escaped(wheel.metadata.name()));
    let packer = Packer::new(options)?;
    let (name, archives) = packer.pack_by_code(&file, &component.kernels, |digest| {
        format!("{stem}-{}", digest.get(..TOKEN).unwrap_or(digest))
    })?;
    let sources = Sources { wheel, component, folder: &folder, name: &name };
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
    wheel: &'a Wheel,
    component: &'a Component,
    /// The folder of the archives.
    folder: &'a TreePath,
    /// The name of the archives, without the arch.
    name: &'a str,
}

impl Sources<'_> {
    fn packed(&self, planned: PlannedWheel, archives: &[&PackedArchive]) -> Result<PackedWheel> {
        let PlannedWheel { record, dist_info, members, .. } = planned;
        let made: Vec<Result<(String, PackedMember)>> =
            members.into_par_iter().map(|(path, member)| self.member(path, member)).collect();
        let mut members: BTreeMap<String, PackedMember> =
            made.into_iter().collect::<Result<_>>()?;
        let mut code_objects = Vec::new();
        if record.role != WheelKind::Host {
            code_objects = self.database_code(&members, &record.file_name)?;
        }
        for archive in archives {
            let path = self.folder.join(&archive.file_name)?.to_string();
            let records = archive.records(&path, &record.file_name);
            code_objects.extend(records.map(|record| CodeObjectRecord { shard: None, ..record }));
            let bytes = MemberBytes::Stored(archive.content.clone());
            if members.insert(path.clone(), PackedMember { mode: MODE, bytes }).is_some() {
                return Err(
                    Error::bug("a kernel archive has the path of another file").structure(path)
                );
            }
        }
        Ok(PackedWheel { record, dist_info, members, code_objects })
    }

    fn member(&self, path: String, member: PlannedMember) -> Result<(String, PackedMember)> {
        let PlannedMember { mode, source } = member;
        let bytes = match source {
            MemberSource::Kept(own) => {
                let kept = self
                    .wheel
                    .members
                    .get(&own)
                    .ok_or_else(|| Error::bug("a member is gone").structure(own))?;
                MemberBytes::Kept(kept.clone())
            }
            MemberSource::Made(content) => MemberBytes::Deflated(content),
            MemberSource::Fat(binary) => MemberBytes::Deflated(self.transformed(&binary)?),
        };
        Ok((path, PackedMember { mode, bytes }))
    }

    /// The fat binary at `path`, with a marker for the archives.
    fn transformed(&self, path: &TreePath) -> Result<Content> {
        let node = self.component.host.get(path).and_then(|node| node.data());
        let fat = node
            .and_then(|file| file.fat())
            .ok_or_else(|| Error::bug("a fat binary is gone").structure(path.as_str()))?;
        let marker = marker(path, [self.folder], self.name)?;
        let shim = format!("{}/{SHIM}", runpath::from_origin(Some(self.folder), path));
        fat.binary.with_marker(&marker, &shim).context(|| format!("writing {path}"))
    }

    /// The code objects in database files among `members`.
    fn database_code(
        &self,
        members: &BTreeMap<String, PackedMember>,
        wheel: &str,
    ) -> Result<Vec<CodeObjectRecord>> {
        let own =
            self.component.databases.iter().filter(|file| members.contains_key(file.path.as_str()));
        let mut records = Vec::new();
        for file in own {
            let DatabaseFile { path, archs, content, .. } = file;
            let arch = archs.first().filter(|_| archs.len() == 1);
            for code in loose_code(content, arch)? {
                let (entry, target, size) = (code.entry.clone(), code.target.clone(), code.size);
                let sha256: Sha256Digest = code.digest(content)?;
                records.push(CodeObjectRecord {
                    sha256: sha256.to_string(),
                    size,
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
