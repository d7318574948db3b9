//! The installed library and programs with a runtime that behaves like the released loader.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{GROUPS, Group, PREFIX, Set, UNITS, kernels};
use support::runtime::{Line, Runtime, TOOLS, answers, fat, found, missing};
use support::tools;

const LIBRARY: &str = "lib/libexblas.so.1";
const PROGRAMS: [&str; 2] = ["bin/exblas-bench", "libexec/exblas/exblas-tune"];

/// An unpacked set, with the runtime for its binaries.
struct Installed {
    set: Set,
    root: PathBuf,
    runtime: Runtime,
}

impl Installed {
    /// The host package and the kernel packages of `groups`, of the example set.
    fn with(groups: &[&Group]) -> Self {
        Self::of(Set::build(), groups)
    }

    /// Those of `set`.
    fn of(set: Set, groups: &[&Group]) -> Self {
        let root = set.scratch("root");
        set.unpack_debs(&["rocm-blas"], &root);
        let prefix = root.join(PREFIX);
        let mut binaries = vec![prefix.join(LIBRARY)];
        binaries.extend(PROGRAMS.map(|program| prefix.join(program)));
        let runtime = Runtime::build(&set.scratch("stub"), &binaries).with_kpack_library();
        let installed = Self { set, root, runtime };
        for group in groups {
            installed.add(group);
        }
        installed
    }

    fn add(&self, group: &Group) {
        self.set.unpack_debs(&[&kernels(group)], &self.root);
    }

    fn prefix(&self) -> PathBuf {
        self.root.join(PREFIX)
    }

    /// The reports from loading the library and from running each program.
    fn use_all(&self, prefix: &Path, device: &str) -> Vec<Line> {
        let mut lines = self.runtime.load(&[prefix.join(LIBRARY)], device);
        for program in PROGRAMS {
            lines.extend(self.runtime.run(&prefix.join(program), device));
        }
        lines
    }

    /// Fails unless all wrappers resolve to the device's archive of `group` and get the right code.
    fn works(&self, prefix: &Path, group: &Group, device: &str) {
        let lines = self.use_all(prefix, device);
        assert_eq!(missing(&lines), Vec::<&str>::new(), "{device}");
        assert_eq!(fat(&lines, "libexblas.so.1.2"), 0);
        let archive = format!("lib/.kpack/blas_lib_{device}.kpack");
        let archive = prefix.join(archive).canonicalize().unwrap();
        let mut tags = BTreeMap::new();
        for found in found(&lines) {
            assert_eq!((found.target.as_str(), &found.archive), (device, &archive));
            tags.insert(found.key.clone(), found.tag.clone().unwrap());
        }
        let expected: BTreeMap<_, _> =
            UNITS.iter().map(|(key, unit)| ((*key).to_owned(), group.tag(unit, device))).collect();
        assert_eq!(tags, expected, "{device}");
        // The runtime library gave the same bytes each time.
        assert_eq!(answers(&lines, 0), found(&lines).len(), "{device}");
        self.kernels_are_there(&lines);
        for done in ["bench: done", "tune: done"] {
            assert!(lines.contains(&Line::Other(done.to_owned())), "{device}: {lines:?}");
        }
    }

    /// Fails unless each wrapper's code object has every kernel that host code registers: three loads of the
    /// library with two units, and each program with one.
    fn kernels_are_there(&self, lines: &[Line]) {
        let counts: Vec<_> = lines
            .iter()
            .filter_map(|line| match line {
                Line::Kernels { found, registered, .. } => Some((*found, *registered)),
                _ => None,
            })
            .collect();
        assert_eq!(counts.len(), 3 * 2 + 2, "{lines:?}");
        assert!(counts.iter().all(|(found, registered)| found == registered && *found > 0));
    }

    /// Fails if a wrapper finds code for the device.
    fn finds_nothing(&self, device: &str) {
        let lines = self.use_all(&self.prefix(), device);
        assert_eq!(found(&lines).len(), 0, "{device}: {lines:?}");
        assert_eq!(missing(&lines).len(), 3 * 2 + 2, "{device}: {lines:?}");
        for line in missing(&lines) {
            assert!(line.ends_with(": no archive"), "{line}");
        }
    }
}

#[test]
fn every_device_of_an_installed_group_finds_its_kernels() {
    tools::need(&["dpkg-deb"]);
    tools::need(TOOLS);
    every_device_finds_its_kernels(Set::build());
}

#[test]
fn stored_archives_are_loaded_like_compressed_ones() {
    tools::need(&["dpkg-deb"]);
    tools::need(TOOLS);
    every_device_finds_its_kernels(Set::with(&["--archive-level", "none"]));
}

fn every_device_finds_its_kernels(set: Set) {
    let [rdna3, _, rdna4] = &GROUPS;
    let installed = Installed::of(set, &[rdna3]);
    for device in rdna3.archs {
        installed.works(&installed.prefix(), rdna3, device);
    }
    for device in ["gfx1200", "gfx1151", "gfx906"] {
        installed.finds_nothing(device);
    }
    // One of the two devices has no kernels: the loader skips it, with code 13.
    let both = installed.use_all(&installed.prefix(), "gfx1100,gfx906");
    assert_eq!((answers(&both, 0), answers(&both, 13)), (3 * 2 + 2, 3 * 2 + 2), "{both:?}");
    installed.add(rdna4);
    for device in rdna4.archs {
        installed.works(&installed.prefix(), rdna4, device);
    }
    installed.works(&installed.prefix(), rdna3, "gfx1100");
    installed.finds_nothing("gfx1151");
}

#[test]
fn wrappers_in_another_order_find_the_same_units() {
    tools::need(&["dpkg-deb"]);
    tools::need(TOOLS);
    let group = &GROUPS[1];
    let installed = Installed::with(&[group]);
    installed.works(&installed.prefix(), group, "gfx1151");
}

#[test]
fn installed_binaries_survive_strip_and_patchelf() {
    tools::need(&["dpkg-deb", "strip", "patchelf"]);
    tools::need(TOOLS);
    let group = &GROUPS[0];
    let installed = Installed::with(&[group]);
    let prefix = installed.prefix();
    let before = installed.use_all(&prefix, "gfx1101");
    let run_path = format!("{}:$ORIGIN/../lib:$ORIGIN/../../lib:$ORIGIN", "/nowhere".repeat(20));
    let strip: &[&str] = &["strip"];
    for command in [strip, &["patchelf", "--set-rpath", &run_path], strip] {
        for binary in PROGRAMS.into_iter().chain([LIBRARY]) {
            tools::run(Command::new(command[0]).args(&command[1..]).arg(prefix.join(binary)));
        }
        installed.works(&prefix, group, "gfx1101");
        assert_eq!(installed.use_all(&prefix, "gfx1101"), before);
    }
}
