//! The script that prints the packages for the GPUs of a machine without rockpack.
//!
//! `templates/gpu.sh` reads a machine as [`rockpack_hardware::Machine`] does. Its table has the answers:
//!
//! | row | what it says |
//! |---|---|
//! | `f deb` | the format of the packages |
//! | `a gfx1036 …` | targets of GPUs that are part of a processor |
//! | `l rocm-blas …` | libraries with kernel packages, for some target |
//! | `p /opt/rocm-7.1` | the prefix that the libraries are installed in, which the script of a repository lacks |
//! | `t gfx1100 rocm-gfx110x …` | the packages that serve a target |
//! | `k gfx1100 rocm-blas rocm-blas-gfx110x rocm-gfx110x …` | a library, its kernel package, and the metapackage |
//! | `g 11.0.0 gfx1100` | the target of a version of the graphics core |
//! | `i 744c:c8 gfx1100 Radeon RX 7900 XTX` | the target and product of a PCI id, of a revision or of all others |
//!
//! It has no versions of packages, so that sets with the same packages have the same script.

use std::collections::BTreeSet;

use rockpack_core::gfx::BaseArch;
use rockpack_hardware::{device_by_pci_id, hardware};

use super::GpuPackages;
use crate::Format;

const TEMPLATE: &str = include_str!("../../../../templates/gpu.sh");

/// The line of the template that the table replaces.
const TABLE_PLACEHOLDER: &str = "@TABLE@";

/// The script for the packages of one format, optionally of one prefix; `None` if no package has device code.
pub fn text(offers: &GpuPackages, format: Format, prefix: Option<&str>) -> Option<String> {
    let answers = answers(offers);
    if answers.is_empty() {
        return None;
    }
    let libraries: BTreeSet<&str> =
        offers.all().filter_map(|offer| offer.library.as_deref()).collect();
    let integrated = hardware().iter().filter(|row| row.integrated).map(|row| row.name.as_str());
    let mut rows = vec![format!("f {format}"), row("a", integrated), row("l", libraries)];
    rows.extend(prefix.map(|prefix| format!("p {prefix}")));
    rows.extend(answers);
    for target in hardware() {
        rows.extend(target.gc.iter().map(|version| format!("g {version} {}", target.name)));
    }
    rows.extend(devices());
    Some(TEMPLATE.replacen(TABLE_PLACEHOLDER, &rows.join("\n"), 1))
}

/// The packages that serve a target by the text of a script; none if it is not for this prefix.
pub fn answers_in<'a>(text: &'a str, prefix: &str, target: &BaseArch) -> Vec<&'a str> {
    let is_own = text.lines().any(|line| line.strip_prefix("p ") == Some(prefix));
    let start = format!("t {target} ");
    let rows = text.lines().filter(|_| is_own).filter_map(|line| line.strip_prefix(&start));
    rows.flat_map(str::split_ascii_whitespace).collect()
}

fn row<'a>(start: &'a str, words: impl IntoIterator<Item = &'a str>) -> String {
    Vec::from_iter([start].into_iter().chain(words)).join(" ")
}

/// The rows of the targets that a GPU can have and that packages serve.
fn answers(offers: &GpuPackages) -> Vec<String> {
    let mut rows = Vec::new();
    for (target, serving) in offers.targets_with_packages() {
        let kernels = offers.kernels_for(&target).into_iter().filter_map(|name| {
            let library = offers.0.get(name)?.library.as_deref()?;
            let mut found = serving.iter().filter_map(|it| offers.0.get(*it));
            let meta = found.find(|it| it.archs.is_empty() && it.needs.contains(name));
            Some([library, name, meta.map_or(name, |it| &*it.name)])
        });
        rows.push(row(&format!("k {target}"), kernels.flatten()));
        rows.push(row(&format!("t {target}"), serving.iter().copied()));
    }
    rows
}

/// The rows of PCI ids, with those of revisions that differ.
fn devices() -> Vec<String> {
    let all = || hardware().iter().flat_map(|row| &row.devices);
    let revisions: BTreeSet<(u16, u8)> =
        all().flat_map(|it| it.revisions().map(move |revision| (it.id, revision))).collect();
    let ids: BTreeSet<u16> = all().map(|it| it.id).collect();
    let of_id = ids.iter().filter_map(|id| Some(format!("i {id:04x} {}", device(*id, None)?)));
    let of_revision = revisions
        .into_iter()
        .filter(|(id, revision)| device(*id, Some(*revision)) != device(*id, None))
        .filter_map(|(id, revision)| {
            Some(format!("i {id:04x}:{revision:02x} {}", device(id, Some(revision))?))
        });
    of_id.chain(of_revision).collect()
}

/// The target of a PCI id, and its product if the compute driver takes it.
fn device(id: u16, revision: Option<u8>) -> Option<String> {
    let (target, device) = device_by_pci_id(id, revision)?;
    let product = target.kfd.and_then(|_| device.product(revision));
    Some(row(target.name.as_str(), product.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_gpu::tests::offer;

    #[test]
    fn the_table_has_the_answers_of_the_set() {
        let offers = GpuPackages::new(
            Format::Deb,
            [
                offer("rocm-blas", "", "", ""),
                offer("rocm-blas-gfx110x", "gfx1100 gfx1101", "rocm-blas", ""),
                offer("rocm-fft-gfx110x", "gfx1100", "rocm-fft", ""),
                offer("rocm-gfx110x", "", "", "rocm-blas-gfx110x rocm-fft-gfx110x"),
            ],
        );
        let script = text(&offers, Format::Deb, Some("/opt/rocm-7.1")).unwrap();
        let rows = [
            "f deb",
            "l rocm-blas rocm-fft",
            "p /opt/rocm-7.1",
            "k gfx1100 rocm-blas rocm-blas-gfx110x rocm-gfx110x \
             rocm-fft rocm-fft-gfx110x rocm-gfx110x",
            "t gfx1100 rocm-gfx110x",
            "k gfx1101 rocm-blas rocm-blas-gfx110x rocm-blas-gfx110x",
            "t gfx1101 rocm-blas-gfx110x",
            "g 11.0.0 gfx1100",
            "i 744c:c8 gfx1100 Radeon RX 7900 XTX",
            "i 73ff:df gfx1031 Radeon RX 6750 GRE 10GB",
        ];
        for row in rows {
            assert!(script.lines().any(|line| line == row), "{row}");
        }
        assert!(!script.contains("t gfx1102 ") && !script.contains(TABLE_PLACEHOLDER));
        for (prefix, target, expected) in [
            ("/opt/rocm-7.1", "gfx1100", &["rocm-gfx110x"][..]),
            ("/opt/rocm-7.1", "gfx110", &[]),
            ("/opt/rocm-7", "gfx1100", &[]),
        ] {
            assert_eq!(answers_in(&script, prefix, &target.parse().unwrap()), expected);
        }
        let published = text(&offers, Format::Deb, None).unwrap();
        assert!(!published.contains("\np /"));
        assert_eq!(text(&GpuPackages::default(), Format::Deb, None), None);
    }
}
