//! A package as an index describes it: the facts of its header, size and digests, from one read.
//!
//! Describes both packages that were just built and packages that are given for publication. The kind is
//! recognised by the first bytes, never by a file name, but for source distributions of Python. Refused are files
//! that are neither `.deb`, `.rpm`, wheel nor source distribution.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;

use pgp::composed::{Deserializable, DetachedSignature};
use rockpack_archive::path_digests::PathDigests;
use rockpack_archive::wheel::{WheelIdentity, WheelName};
use rockpack_archive::{apt_index, ar, deb, python_index, rpm, rpm_md, sdist, zip};
use rockpack_core::content::{Content, HeldBytes, WINDOW, hex};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{BaseArch, SPIRV, arch_at_start, archs_in, archs_of_label};
use rockpack_core::run::Lease;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256, Sha512};

use crate::Format;
use crate::device_wheel::{group, is_of_split};

/// The field of kernel packages with the names of their archs.
pub const ARCH_FIELD: &str = "X-ROCm-GPU-Architecture";

const KERNEL_ARCHIVE: &str = ".kpack";

/// The suffix of the capability that kernel packages provide.
const KERNELS_CAPABILITY: &str = "-kernels";

/// Most signatures of a header that are examined.
const SIGNATURES_MAX: usize = 16;

/// A package file: its metadata, size and digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedPackage {
    pub facts: IndexMetadata,
    /// Bytes of the file.
    pub size: u64,
    /// SHA-256 of the file in hex.
    pub sha256: String,
    /// SHA-512 of the file in hex. Only a `.deb` has it: no index of rpms or wheels states it, and computing it
    /// costs as much as everything else that indexing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha512: Option<String>,
    /// The elements of an `.rpm` in lists; nothing in states.
    #[serde(skip)]
    pub elements: ListElements,
}

/// What [`rpm_md::elements`] makes of the other values, so that it is equal to any other. It is compressed, as a run
/// can have those of thousands of packages.
#[derive(Debug, Clone, Default)]
pub struct ListElements(Vec<u8>);

impl ListElements {
    fn pack(elements: &[u8]) -> Result<Self> {
        let packed = zstd::bulk::compress(elements, 1);
        packed.map(Self).map_err(|e| Error::io_without_path("compress elements of a list", e))
    }

    /// The elements; none of a package that a state has.
    pub fn unpack(&self) -> Result<Option<Vec<u8>>> {
        let packed = (!self.0.is_empty()).then_some(&self.0[..]);
        let elements = packed.map(zstd::decode_all).transpose();
        elements.map_err(|e| Error::io_without_path("decompress elements of a list", e))
    }
}

impl PartialEq for ListElements {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ListElements {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexMetadata {
    Deb(apt_index::DebPackage),
    Rpm(Box<rpm_md::RpmPackage>),
    /// The metadata of a Python wheel or source distribution.
    Wheel(Box<python_index::WheelPackage>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PackageKind {
    Deb,
    Rpm,
    /// A Python wheel, or a source distribution, which are in one index.
    Wheel,
}

impl From<Format> for PackageKind {
    fn from(format: Format) -> Self {
        format.select(Self::Deb, Self::Rpm)
    }
}

impl PackageKind {
    /// The kind that belongs to the suffix of a file name; upper and lower case count the same.
    pub fn of_file_name(name: &Path) -> Option<Self> {
        if WheelName::is_one(name) {
            Some(Self::Wheel)
        } else {
            Format::of_file_name(name).map(Self::from)
        }
    }

    /// The format; `None` for a wheel, which is not for a package manager of a system.
    pub fn format(self) -> Option<Format> {
        match self {
            Self::Deb => Some(Format::Deb),
            Self::Rpm => Some(Format::Rpm),
            Self::Wheel => None,
        }
    }

    /// Compares two full versions as installers of this kind do.
    pub fn compare_versions(self, one: &str, other: &str) -> Ordering {
        match self.format() {
            Some(format) => format.compare_versions(one, other),
            None => python_index::compare_versions(one, other),
        }
    }
}

impl IndexedPackage {
    /// Reads a package for its metadata and digests. The file name of a wheel is part of its metadata.
    pub fn read(content: &Content, file_name: &str) -> Result<Self> {
        let content = &in_memory(content)?;
        let _open = content.pin()?;
        let is_source = sdist::parts(file_name).is_some();
        if is_source || first_bytes(content, zip::MAGIC.len())? == zip::MAGIC {
            let package = python_index::WheelPackage::read(content, file_name)?;
            if let Some((member, fault)) = package.stale.first_key_value()
                && is_of_split(&package)
            {
                let error = Error::malformed(format!("{member} {fault}"));
                return Err(error.hint("it was edited after the split: split the fat wheel again"));
            }
            return Self::digested(content, IndexMetadata::Wheel(Box::new(package)));
        }
        match Front::of(content)? {
            Front::Deb(front) => Self::digested(content, read_deb_facts(content, &front)?),
            Front::Rpm(front) => {
                Self::of_rpm(&front, content.len(), front.digest(content)?.to_string())
            }
        }
    }

    /// Reads a package that was just built. `paths` are its files and links.
    pub fn of_built<'a>(
        content: &Content,
        paths: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self> {
        let _open = content.pin()?;
        match Front::of(content)? {
            Front::Deb(front) => {
                Self::digested(content, deb_facts(&front, PathDigests::of(paths), None)?)
            }
            Front::Rpm(front) => Self::of_rpm(&front, content.len(), content.digest()?.to_string()),
        }
    }

    /// Reads the header of an `.rpm` again, whose size and digest are known.
    pub fn reread(&self, content: &Content) -> Result<Self> {
        Self::of_rpm(&rpm::RpmFront::read(content)?, self.size, self.sha256.clone())
    }

    fn of_rpm(front: &rpm::RpmFront, size: u64, sha256: String) -> Result<Self> {
        let (mut package, listed) = rpm_md::RpmPackage::of_front(front)?;
        if package.signed {
            package.signers = signers(front);
        }
        package.gpu_archs = rpm_gpu_archs(&package, &listed.files);
        let rpm = rpm_md::RepositoryRpm {
            package: &package,
            listed: &listed,
            path: &rpm_pool_path(&package),
            size,
            sha256: &sha256,
        };
        let elements = ListElements::pack(&rpm_md::elements(&rpm)?)?;
        Ok(Self {
            facts: IndexMetadata::Rpm(Box::new(package)),
            size,
            sha256,
            sha512: None,
            elements,
        })
    }

    fn digested(content: &Content, facts: IndexMetadata) -> Result<Self> {
        let mut sha256 = Sha256::new();
        let mut sha512 = (facts.kind() == PackageKind::Deb).then(Sha512::new);
        content.each_window(|bytes| {
            sha256.update(bytes);
            if let Some(sha512) = &mut sha512 {
                sha512.update(bytes);
            }
        })?;
        let (sha256, sha512) = (hex(&sha256.finalize()), sha512.map(|it| hex(&it.finalize())));
        Ok(Self { facts, size: content.len(), sha256, sha512, elements: ListElements::default() })
    }
}

/// The content, in memory where it is short: a small package is read in many places.
fn in_memory(content: &Content) -> Result<Content> {
    if content.len() > WINDOW as u64 {
        return Ok(content.clone());
    }
    let bytes = content.read_vec(0..content.len(), WINDOW as u64, "package")?;
    let held = HeldBytes::new(bytes, Lease::default());
    let named = content.files().next().into_iter().fold(held, HeldBytes::named);
    Ok(Content::of_held(named).within(content.budget()))
}

enum Front {
    Deb(deb::DebFront),
    Rpm(Box<rpm::RpmFront>),
}

impl Front {
    fn of(content: &Content) -> Result<Self> {
        let head = first_bytes(content, ar::MAGIC.len())?;
        if head == ar::MAGIC {
            return deb::DebFront::read(content).map(Self::Deb);
        }
        if head.starts_with(&rpm::LEAD_MAGIC) {
            return rpm::RpmFront::read(content).map(|front| Self::Rpm(Box::new(front)));
        }
        let error =
            Error::new(Kind::Malformed, "is not a .deb, .rpm, wheel or source distribution")
                .wrong_file_kind();
        Err(error.hint("remove it, or give the package files instead of their folder"))
    }
}

fn first_bytes(content: &Content, most: usize) -> Result<Vec<u8>> {
    let len = content.len().min(most as u64);
    content.read_vec(0..len, len, "first bytes")
}

/// Reads the paths of a `.deb`, or takes the listed ones if its data cannot be read.
fn read_deb_facts(content: &Content, front: &deb::DebFront) -> Result<IndexMetadata> {
    let mut numbers = Vec::new();
    match deb::each_owned_path(content, |_, number| numbers.push(number)) {
        Ok(()) => deb_facts(front, PathDigests::of_digests(numbers), None),
        Err(error) => {
            let listed = PathDigests::of(front.paths());
            deb_facts(front, listed, Some(deb::unreadable_reason(&error)))
        }
    }
}

fn deb_facts(
    front: &deb::DebFront,
    paths: PathDigests,
    unread: Option<String>,
) -> Result<IndexMetadata> {
    let package = apt_index::DebPackage::of_control(&front.control)?;
    Ok(IndexMetadata::Deb(apt_index::DebPackage { unread, paths, ..package }))
}

/// The first path of a `.deb` that `is_it` accepts, without leading slash. `None` also if the package cannot
/// be read; the check of the package reports that.
pub fn deb_path(content: &Content, is_it: impl Fn(&str) -> bool) -> Option<String> {
    let mut found = None;
    let looked = deb::each_owned_path(content, |path, _| {
        if found.is_none() && is_it(path) {
            found = Some(path.to_owned());
        }
    });
    if looked.is_err() && found.is_none() {
        let front = deb::DebFront::read(content).ok()?;
        found = front.paths().find(|path| is_it(path)).map(str::to_owned);
    }
    found
}

/// The archs in the paths of a package that provides kernels or has kernel archives.
fn rpm_gpu_archs(package: &rpm_md::RpmPackage, files: &[rpm_md::RpmFile]) -> BTreeSet<String> {
    let provides = package.list("provides").iter();
    let mut names = provides.map(|line| &line.name).chain([&package.name]);
    let is_kernels = names.any(|name| name.ends_with(KERNELS_CAPABILITY))
        || files.iter().any(|file| file.path.ends_with(KERNEL_ARCHIVE));
    let files = files.iter().filter(|_| is_kernels);
    files.flat_map(|file| archs_of_path(&file.path)).map(String::from).collect()
}

/// The ids of the keys that the signatures of a header name. Unreadable signatures are skipped.
fn signers(front: &rpm::RpmFront) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for packets in front.metadata.raw_signatures().unwrap_or_default() {
        let Ok(packets) = DetachedSignature::from_bytes_many(&*packets) else { continue };
        for made in packets.take(SIGNATURES_MAX).flatten() {
            let issuers = made.signature.issuer_key_id();
            ids.extend(issuers.into_iter().map(|id| id.to_string().to_uppercase()));
        }
    }
    ids
}

impl IndexMetadata {
    pub fn kind(&self) -> PackageKind {
        match self {
            Self::Deb(_) => PackageKind::Deb,
            Self::Rpm(_) => PackageKind::Rpm,
            Self::Wheel(_) => PackageKind::Wheel,
        }
    }

    /// The identity of a wheel; `None` of other packages.
    pub fn wheel_identity(&self) -> Option<WheelIdentity> {
        let Self::Wheel(package) = self else { return None };
        package.file.parse::<WheelName>().ok()?.identity()
    }

    /// The name of the package; of a wheel, its project.
    pub fn name(&self) -> &str {
        match self {
            Self::Deb(package) => &package.name,
            Self::Rpm(package) => &package.name,
            Self::Wheel(package) => &package.project,
        }
    }

    pub fn version(&self) -> String {
        match self {
            Self::Deb(package) => package.version.clone(),
            Self::Rpm(package) => package.evr(),
            Self::Wheel(package) => package.version.clone(),
        }
    }

    /// The architecture; for a wheel, the build number and tags; for a source distribution, its ending.
    pub fn arch(&self) -> &str {
        match self {
            Self::Deb(package) => &package.architecture,
            Self::Rpm(package) => &package.arch,
            Self::Wheel(package) => &package.tags,
        }
    }

    /// The path in the pool, which depends on the package alone.
    pub fn pool_path(&self, component: &str) -> String {
        match self {
            Self::Deb(package) => {
                let source = &package.source;
                let folder = letter(source);
                format!("pool/{component}/{folder}/{source}/{}", package.file_name())
            }
            Self::Rpm(package) => rpm_pool_path(package),
            Self::Wheel(package) => format!("wheels/{}/{}", package.project, package.file),
        }
    }

    /// The archs that the package has device code for, such as `gfx1100`, as far as an index tells. A `.deb` names
    /// them in its field; an `.rpm` that provides kernels or has kernel archives names them in its paths; a
    /// wheel has them in its name. Other packages have no archs.
    pub fn gpu_archs(&self) -> BTreeSet<String> {
        match self {
            Self::Deb(package) => {
                let mut lines = package.control.lines();
                let field = lines.find_map(|it| it.strip_prefix(ARCH_FIELD)?.strip_prefix(':'));
                field.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
            }
            Self::Rpm(package) => package.gpu_archs.clone(),
            Self::Wheel(package) => {
                let label = group(&package.project).unwrap_or_default();
                let named = archs_of_label(label).into_iter().chain(archs_in(&package.project));
                let spirv = (label == SPIRV).then(|| SPIRV.to_owned());
                named.map(String::from).chain(spirv).collect()
            }
        }
    }

    /// Compares kinds, then versions by the rules of the kind.
    pub fn compare_versions(&self, other: &Self) -> Ordering {
        let kinds = self.kind().cmp(&other.kind());
        kinds.then_with(|| self.kind().compare_versions(&self.version(), &other.version()))
    }
}

fn rpm_pool_path(package: &rpm_md::RpmPackage) -> String {
    format!("packages/{}/{}", letter(&package.name), package.file_name())
}

/// The folder of the pool for `name`: its first letter, or four letters if it begins with `lib`.
fn letter(name: &str) -> String {
    let len = if name.starts_with("lib") { 4 } else { 1 };
    name.chars().take(len).flat_map(char::to_lowercase).collect()
}

/// The archs that a path of a kernel package names. The name of an archive ends with its arch. Tuning databases
/// have it as a word of their path, or in front of a number of compute units.
fn archs_of_path(path: &str) -> Vec<BaseArch> {
    let stem = path.strip_suffix(KERNEL_ARCHIVE);
    match stem.and_then(|stem| stem.rsplit('_').next()?.parse().ok()) {
        Some(arch) => vec![arch],
        None => path.split('/').filter_map(arch_at_start).chain(archs_in(path)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_package_is_refused() {
        for bytes in [&b""[..], b"!<arch>\n", b"\xed\xab\xee\xdb", b"PK\x03\x04 and more"] {
            assert!(IndexedPackage::read(&Content::of_bytes(bytes), "x.whl").is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn libraries_have_folders_of_their_own() {
        assert_eq!([letter("rocm-blas"), letter("libdrm"), letter("Lib")], ["r", "libd", "l"]);
    }

    #[test]
    fn archs_are_read_of_paths() {
        for (path, expected) in [
            ("/opt/x/.kpack/blas_lib_gfx1100.kpack", "gfx1100"),
            ("/opt/x/.kpack/blas_lib_gfx11-generic.kpack", "gfx11-generic"),
            ("/opt/x/.kpack/blas_lib_gfx9-4-generic.kpack", "gfx9-4-generic"),
            ("/opt/x/.kpack/blas_lib_gfx1250-strict.kpack", "gfx1250-strict"),
            ("/opt/x/.kpack/blas_lib_amdgcnspirv.kpack", "amdgcnspirv"),
            ("/opt/x/.kpack/blas_lib_gfx90a-xnack+.kpack", "gfx90a"),
            ("/opt/x/library/TensileLibrary_gfx90a.co", "gfx90a"),
            ("/opt/x/library/gfx1151/extop.dat", "gfx1151"),
            ("/opt/x/Kernels.so-000-gfx942-xnack+.hsaco", "gfx942"),
            ("/opt/x/db/gfx942130.HIP.fdb.txt", "gfx942"),
            ("/opt/x/db/gfx90a6e.kdb", "gfx90a"),
            ("/opt/x/db/gfx11-generic.kdb", "gfx11-generic"),
            ("/usr/share/doc/rocm-blas-gfx110x/copyright", ""),
            ("/opt/x/gfx.txt", ""),
        ] {
            let archs = BTreeSet::from_iter(archs_of_path(path).into_iter().map(String::from));
            assert_eq!(Vec::from_iter(archs).join(" "), expected, "{path}");
        }
    }
}
