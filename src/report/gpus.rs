//! What the users of each GPU download and have on disk.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::gfx::BaseArch;
use rockpack_hardware::products;
use rockpack_package::for_gpu::Offers;
use rockpack_package::receipt::listing::{ListedPackage, Size};
use rockpack_package::receipt::{CodeObjectPlace, Receipt};
use rockpack_package::{Format, RoleKind};
use serde::Serialize;

use crate::inspect::needed::{offer, with_needs};

/// The packages of one format.
#[derive(Debug, Serialize)]
pub struct FormatReport {
    /// The format.
    pub format: Format,
    /// All packages of the set.
    pub all: Sizes,
    /// Bytes to download for all GPUs together, by family: the package of a library, and those with its code.
    pub every_gpu: BTreeMap<String, u64>,
    /// The same, where the code is in the libraries as it was in the input.
    pub fat: Sizes,
    /// The GPUs that packages serve. Those with the same packages are one entry.
    pub gpus: Vec<GpuReport>,
    /// Targets that packages of the earlier set serve, and none of this one.
    pub gone: Vec<BaseArch>,
    /// The names of families, the largest first.
    pub families: Vec<String>,
}

/// The packages for GPUs that need the same ones.
#[derive(Debug, Serialize)]
pub struct GpuReport {
    /// The targets.
    pub targets: Vec<BaseArch>,
    /// Products with these targets.
    pub products: Vec<&'static str>,
    /// The names of the packages to install, which bring all others.
    pub install: Vec<String>,
    /// All packages that this installs.
    pub sizes: Sizes,
    /// Bytes to download by family.
    pub families: BTreeMap<String, u64>,
    /// What the GPUs needed in the earlier set, if it served them.
    pub earlier: Option<Sizes>,
    /// Libraries with device code, but none for these GPUs.
    pub without_code: Vec<String>,
}

/// A number of packages, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Packages.
    pub packages: usize,
    /// Bytes to download.
    pub download: u64,
    /// Bytes on disk.
    pub installed: u64,
}

impl Sizes {
    fn of(packages: &[&ListedPackage]) -> Self {
        Self {
            packages: packages.len(),
            download: packages.iter().map(|package| package.download).sum::<Size>().bytes,
            installed: packages.iter().map(|package| package.installed).sum::<Size>().bytes,
        }
    }
}

impl FormatReport {
    /// The report about `packages`, which are of one format. `earlier` are those of an earlier set, and `receipt` has
    /// the code objects.
    pub fn new(packages: &[ListedPackage], earlier: &[ListedPackage], receipt: &Receipt) -> Self {
        let format = packages.first().map_or(Format::Deb, |package| package.format);
        let from = earlier.partition_point(|package| package.format < format);
        let earlier = earlier[from..].chunk_by(|a, b| a.format == b.format).next();
        let earlier = earlier.filter(|own| own[0].format == format).unwrap_or_default();
        let [offers, before] =
            [packages, earlier].map(|it| Offers::new(format, it.iter().map(offer)));
        let served = offers.served();
        let gone = before.served().into_iter().map(|(target, _)| target);
        let gone = gone.filter(|target| served.iter().all(|(own, _)| own != target)).collect();
        let names: BTreeSet<&str> = served.iter().flat_map(|(_, own)| own).copied().collect();
        let every_gpu = with_needs(packages, &Vec::from_iter(names));
        let by_family = families(&every_gpu);
        let mut order = Vec::from_iter(by_family.clone());
        order.sort_by_key(|(_, download)| Reverse(*download));
        let mut gpus: Vec<(Vec<&str>, GpuReport)> = Vec::new();
        for (target, serving) in served {
            let known = before.serving(&target);
            let known = (!known.is_empty()).then(|| Sizes::of(&with_needs(earlier, &known)));
            let without: Vec<String> =
                offers.unserved(&target).into_iter().map(str::to_owned).collect();
            let is_same = |(names, row): &&mut (Vec<&str>, GpuReport)| {
                *names == serving && row.earlier == known && row.without_code == without
            };
            if let Some((_, row)) = gpus.iter_mut().find(is_same) {
                row.targets.push(target);
                continue;
            }
            let needed = with_needs(packages, &serving);
            let row = GpuReport {
                targets: vec![target],
                products: Vec::new(),
                install: serving.iter().map(|&name| name.to_owned()).collect(),
                sizes: Sizes::of(&needed),
                families: families(&needed),
                earlier: known,
                without_code: without,
            };
            gpus.push((serving, row));
        }
        let with_products = |(_, row): (_, GpuReport)| {
            let products = products(&row.targets);
            GpuReport { products, ..row }
        };
        Self {
            format,
            all: Sizes::of(&Vec::from_iter(packages)),
            fat: fat(&every_gpu, receipt),
            every_gpu: by_family,
            gone,
            gpus: gpus.into_iter().map(with_products).collect(),
            families: order.into_iter().map(|(family, _)| family).collect(),
        }
    }
}

/// The downloads by family: the package of a library, and those with its device code.
fn families(packages: &[&ListedPackage]) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for package in packages {
        let library = offer(package).library.unwrap_or_else(|| package.name.clone());
        let is_meta = package.role == Some(RoleKind::Meta);
        let family = if is_meta { "metapackages".to_owned() } else { library };
        let sum: &mut u64 = found.entry(family).or_default();
        *sum = sum.saturating_add(package.download.bytes);
    }
    found
}

/// The sizes if the code in kernel archives of these packages were in their libraries as it was in the input. What is
/// compressed in the input stays so.
fn fat(packages: &[&ListedPackage], receipt: &Receipt) -> Sizes {
    let members = packages.iter().flat_map(|package| &package.members);
    let archives: BTreeMap<&str, Size> = members
        .filter(|member| member.path.ends_with(".kpack"))
        .map(|member| (&*member.path, member.size.unwrap_or_default()))
        .collect();
    // Wrappers may share a bundle, and then each has a row of the code object.
    let mut code = BTreeMap::new();
    for record in receipt.all_code_objects() {
        if let CodeObjectPlace::Archive { archive, binary, .. } = &record.place
            && archives.contains_key(&**archive)
        {
            let size = Size::exact(record.stored_size.unwrap_or(record.size));
            code.insert((binary, &record.target, &record.sha256), size);
        }
    }
    let sum = |sizes: &mut dyn Iterator<Item = Size>| sizes.sum::<Size>().bytes;
    let sizes = Sizes::of(packages);
    let without = sizes.installed.saturating_sub(sum(&mut archives.into_values()));
    Sizes { installed: without.saturating_add(sum(&mut code.into_values())), ..sizes }
}
