//! What the users of each GPU download and have on disk.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::gfx::BaseArch;
use rockpack_hardware::products;
use rockpack_package::for_gpu::GpuPackages;
use rockpack_package::receipt::listing::{ListedPackage, Size};
use rockpack_package::receipt::{CodeObjectPlace, Receipt};
use rockpack_package::{Format, RoleKind};
use serde::Serialize;

use crate::inspect::needed::{gpu_package, with_needs};

#[derive(Debug, Serialize)]
pub struct FormatReport {
    pub format: Format,
    pub all: Sizes,
    /// Bytes to download for all GPUs together, by family: the package of a library, and those with its code.
    pub every_gpu: BTreeMap<String, u64>,
    /// The same packages, with the code in the libraries as in the input.
    pub fat: Sizes,
    /// The GPUs that packages serve. Those with the same packages are one entry.
    pub gpus: Vec<GpuReport>,
    /// Targets that only the earlier set has packages for.
    pub gone: Vec<BaseArch>,
    /// The names of families, the largest first.
    pub families: Vec<String>,
}

/// The packages for GPUs that need the same ones.
#[derive(Debug, Serialize)]
pub struct GpuReport {
    pub targets: Vec<BaseArch>,
    pub products: Vec<&'static str>,
    /// The names of the packages to install, which bring all others.
    pub install: Vec<String>,
    /// All packages that this installs.
    pub sizes: Sizes,
    pub families: BTreeMap<String, u64>,
    /// The sizes in the earlier set, if it had packages for these GPUs.
    pub earlier: Option<Sizes>,
    /// Libraries with device code, but none for these GPUs.
    pub without_code: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    pub packages: usize,
    pub download: u64,
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
    /// The report on `packages`, which are of one format. `earlier` has those of an earlier set, `receipt` the code
    /// objects.
    pub fn new(packages: &[ListedPackage], earlier: &[ListedPackage], receipt: &Receipt) -> Self {
        let format = packages.first().map_or(Format::Deb, |package| package.format);
        let from = earlier.partition_point(|package| package.format < format);
        let earlier = earlier[from..].chunk_by(|a, b| a.format == b.format).next();
        let earlier = earlier.filter(|own| own[0].format == format).unwrap_or_default();
        let [offers, before] =
            [packages, earlier].map(|it| GpuPackages::new(format, it.iter().map(gpu_package)));
        let served = offers.targets_with_packages();
        let gone = before.targets_with_packages().into_iter().map(|(target, _)| target);
        let gone = gone.filter(|target| served.iter().all(|(own, _)| own != target)).collect();
        let names: BTreeSet<&str> = served.iter().flat_map(|(_, own)| own).copied().collect();
        let every_gpu = with_needs(packages, &Vec::from_iter(names));
        let by_family = downloads_by_family(&every_gpu);
        let mut order = Vec::from_iter(by_family.clone());
        order.sort_by_key(|(_, download)| Reverse(*download));
        let mut gpus: Vec<(Vec<&str>, GpuReport)> = Vec::new();
        for (target, serving) in served {
            let known = before.packages_for(&target);
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
                families: downloads_by_family(&needed),
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
            fat: fat_sizes(&every_gpu, receipt),
            every_gpu: by_family,
            gone,
            gpus: gpus.into_iter().map(with_products).collect(),
            families: order.into_iter().map(|(family, _)| family).collect(),
        }
    }
}

/// The downloads by family: the package of a library, and those with its device code.
fn downloads_by_family(packages: &[&ListedPackage]) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for package in packages {
        let library = gpu_package(package).library.unwrap_or_else(|| package.name.clone());
        let is_meta = package.role == Some(RoleKind::Meta);
        let family = if is_meta { "metapackages".to_owned() } else { library };
        let sum: &mut u64 = found.entry(family).or_default();
        *sum = sum.saturating_add(package.download.bytes);
    }
    found
}

/// The sizes if the libraries still had the code of these packages' kernel archives, compressed as in the input.
fn fat_sizes(packages: &[&ListedPackage], receipt: &Receipt) -> Sizes {
    let members = packages.iter().flat_map(|package| &package.members);
    let archives: BTreeMap<&str, Size> = members
        .filter(|member| member.path.ends_with(".kpack"))
        .map(|member| (&*member.path, member.size.unwrap_or_default()))
        .collect();
    // Wrappers that share a bundle have a row each for the same code object.
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
