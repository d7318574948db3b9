//! Names, fields and file lists of the packages, as dpkg and rpm read them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use support::example::{
    COMMON, GROUPS, Group, PREFIX, Set, VERSION, configuration, deb_name, kernels, names, rockpack,
    rpm_name, shards,
};
use support::queries::{deb_field, rpm_list, rpm_lists, rpm_tags};
use support::tools;

/// Every package of the example set.
fn expected_packages() -> Vec<String> {
    let mut packages: Vec<String> =
        ["rocm", "rocm-all-gpus", "rocm-host-suite-sparse", "rocm-blas", "rocm-blas-all", COMMON]
            .map(str::to_owned)
            .to_vec();
    for group in &GROUPS {
        packages.push(kernels(group));
        packages.push(format!("rocm-{}", group.suffix));
    }
    packages
}

#[test]
fn the_set_has_the_names_that_apt_and_dnf_expect() {
    let set = Set::build();
    let mut expected = BTreeSet::from(["packages.json".to_owned()]);
    for package in expected_packages() {
        expected.insert(deb_name(&package));
        expected.insert(rpm_name(&package));
    }
    assert!(expected.contains("rocm-blas_7.1.0-1_amd64.deb"));
    assert!(expected.contains("rocm-blas-gfx110x-7.1.0-1.x86_64.rpm"));
    assert_eq!(names(&set.out()), expected, "and nothing unfinished beside them");
}

/// A package's relations by kind, with Debian's names for the kinds.
type Relations = BTreeMap<&'static str, BTreeSet<String>>;

fn relations(of: &[(&'static str, &[&str])]) -> Relations {
    let all = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    of.iter().map(|(kind, texts)| (*kind, all(texts))).collect()
}

/// The relations that a package must have. `=V` means the exact version, `>=V` and `<N` for it and later
/// releases below the next patch version.
fn expected_relations(package: &str, format: &str) -> Relations {
    let mut expected = expected_inside(package);
    for (kind, names) in outside(package, format) {
        expected.entry(kind).or_default().extend(names.iter().map(|name| (*name).to_owned()));
    }
    expected
}

/// External dependencies and provisions of a package's files.
fn outside(package: &str, format: &str) -> &'static [(&'static str, &'static [&'static str])] {
    match (package, format) {
        ("rocm-blas", "deb") => &[("Depends", &["libc6 (>= 2.34)"])],
        ("rocm-blas", _) => &[
            (
                "Depends",
                &[
                    "libamdhip64.so.7()(64bit)",
                    "libamdhip64.so.7(hip_4.2)(64bit)",
                    "libc.so.6()(64bit)",
                    "libc.so.6(GLIBC_2.2.5)(64bit)",
                    "libc.so.6(GLIBC_2.34)(64bit)",
                    "libexblas.so.1()(64bit)",
                    "rtld(GNU_HASH)",
                ],
            ),
            ("Provides", &["libexblas.so.1()(64bit)", "libexcblas.so.1()(64bit)"]),
        ],
        ("rocm-host-suite-sparse", "deb") => &[("Depends", &["libc6 (>= 2.2.5)"])],
        ("rocm-host-suite-sparse", _) => &[
            ("Depends", &["libc.so.6()(64bit)", "rtld(GNU_HASH)"]),
            ("Provides", &["libexsuitesparse.so.7()(64bit)"]),
        ],
        _ => &[],
    }
}

fn expected_inside(package: &str) -> Relations {
    let kernel_packages: Vec<String> = GROUPS.iter().map(kernels).collect();
    let plain: Vec<&str> = kernel_packages.iter().map(String::as_str).collect();
    match package {
        "rocm-blas" => {
            let suggests = relations(&[("Suggests", &plain)]);
            depends_within(&["rocm-common"]).into_iter().chain(suggests).collect()
        }
        "rocm-host-suite-sparse" => depends_within(&["rocm-common"]),
        COMMON => relations(&[]),
        "rocm-blas-all" => depends_within(&[&["rocm-blas"], &plain[..]].concat()),
        "rocm" => depends_within(&["rocm-blas", "rocm-host-suite-sparse"]),
        "rocm-all-gpus" => depends_within(&["rocm-blas-all", "rocm-host-suite-sparse"]),
        _ => match GROUPS.iter().find(|group| kernels(group) == package) {
            Some(_) => relations(&[
                ("Depends", &["rocm-blas =V"]),
                ("Enhances", &["rocm-blas"]),
                ("Provides", &["rocm-blas-kernels =V"]),
            ]),
            None => {
                let group = package.strip_prefix("rocm-").unwrap();
                depends_within(&[format!("rocm-blas-{group}").as_str()])
            }
        },
    }
}

/// Dependencies on this version of `names`, or on a later release of it.
fn depends_within(names: &[&str]) -> Relations {
    let bounds = names.iter().flat_map(|name| [format!("{name} >=V"), format!("{name} <N")]);
    Relations::from([("Depends", bounds.collect())])
}

const KINDS: [&str; 9] = [
    "Pre-Depends",
    "Depends",
    "Recommends",
    "Suggests",
    "Enhances",
    "Provides",
    "Conflicts",
    "Breaks",
    "Replaces",
];

#[test]
fn debs_say_what_they_are_and_need() {
    tools::need(&["dpkg-deb"]);
    let set = Set::build();
    for package in expected_packages() {
        let control = tools::succeed(Command::new("dpkg-deb").arg("-f").arg(set.deb(&package)));
        let lines = control.lines().filter(|line| !line.starts_with(' '));
        let mut fields = BTreeMap::new();
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            assert_eq!(fields.insert(name, value), None, "{name}");
        }
        assert_eq!(fields["Package"], package);
        assert_eq!(fields["Version"], "7.1.0-1");
        let arch = if package == COMMON { "all" } else { "amd64" };
        assert_eq!(fields["Architecture"], arch);
        let mut found = Relations::new();
        for kind in KINDS {
            let text = fields.get(kind).copied().unwrap_or_default();
            if !text.is_empty() {
                let exact = text.replace("(= 7.1.0-1)", "=V");
                let bounds = exact.replace("(>= 7.1.0-1)", ">=V").replace("(<< 7.1.1~)", "<N");
                let each = bounds.split(", ").map(str::to_owned);
                found.insert(kind, each.collect());
            }
        }
        assert_eq!(found, expected_relations(&package, "deb"), "{package}");
    }
    for group in &GROUPS {
        let archs = deb_field(&set.deb(&kernels(group)), "X-ROCm-GPU-Architecture");
        assert_eq!(archs, group.archs.join(" "));
        let aliases = deb_field(&set.deb(&kernels(group)), "Modaliases");
        let integrated = group.suffix == "gfx115x";
        let named = aliases.starts_with(&format!("{}(pci:v00001002d", kernels(group)));
        assert_eq!((named, aliases.is_empty()), (!integrated, integrated), "{aliases}");
    }
}

/// The relations of a package among what rpm lists of it.
fn rpm_relations(package: &str, text: &str) -> BTreeSet<String> {
    // Programs of scriptlets, and rpm's own additions for a configuration file.
    let added = ["rpmlib(", "/bin/sh", "/sbin/ldconfig", "/usr/bin/rm", "config("];
    let lines = text.lines().filter(|line| !added.iter().any(|start| line.starts_with(start)));
    let own = |line: &&str| !line.starts_with(&format!("{package}(x86-64) = "));
    let own_name = format!("{package} = 7.1.0-1");
    lines
        .filter(own)
        .filter(|line| *line != own_name)
        .map(|line| line.replace("= 7.1.0-1", "=V").replace("< 7.1.1~", "<N"))
        .collect()
}

/// A distribution with rpm decides what an `.rpm` is like, and nothing of a `.deb`.
#[test]
fn a_distribution_decides_compression_and_tag_of_rpms() {
    tools::need(&["rpm", "ar"]);
    for (distro, expected) in [("el8", "1.el8 xz"), ("sles15", "1 xz"), ("el9", "1.el9 zstd")] {
        let set = Set::with(&["--distro", distro, "--only", "rocm-host-suite-sparse"]);
        let found = rpm_lists(&set.out(), "--queryformat=%{RELEASE} %{PAYLOADCOMPRESSOR}");
        assert!(!found.is_empty() && found.values().all(|it| it == expected), "{found:?}");
        let deb = set.deb("rocm-host-suite-sparse");
        let members = tools::succeed(Command::new("ar").arg("t").arg(deb));
        assert!(members.contains("data.tar.zst"), "{members}");
    }
}

/// rpm can install kernel packages and metapackages before any program is there.
#[test]
fn kernel_rpms_and_metapackages_need_no_program() {
    tools::need(&["rpm"]);
    // The folder above this prefix belongs to no package, so scripts remove it.
    let set = Set::with(&["--format", "rpm", "--prefix", "/opt/example/rocm-7.1"]);
    let needs = rpm_lists(&set.out(), "--requires");
    let with_programs = needs.iter().filter(|(_, needs)| needs.contains("/bin/sh"));
    let with_programs: Vec<&str> = with_programs.map(|(name, _)| name.as_str()).collect();
    assert_eq!(with_programs, ["rocm-blas", COMMON, "rocm-host-suite-sparse"]);
    for (package, needs) in needs.iter().filter(|(name, _)| !with_programs.contains(&name.as_str()))
    {
        let is_known = |line: &&str| ["rocm", "rpmlib("].iter().any(|it| line.starts_with(it));
        assert_eq!(needs.lines().find(|line| !is_known(line)), None, "{package}");
    }
}

#[test]
fn rpms_say_what_they_are_and_need() {
    tools::need(&["rpm"]);
    let set = Set::build();
    let name = "%{NAME} %{EPOCH} %{VERSION} %{RELEASE} %{ARCH} %{PAYLOADCOMPRESSOR}";
    let names = rpm_lists(&set.out(), &format!("--queryformat={name}"));
    let listed = [
        ("Depends", "--requires"),
        ("Recommends", "--recommends"),
        ("Suggests", "--suggests"),
        ("Enhances", "--enhances"),
        ("Supplements", "--supplements"),
        ("Provides", "--provides"),
        ("Conflicts", "--conflicts"),
        ("Replaces", "--obsoletes"),
    ]
    .map(|(kind, option)| (kind, rpm_lists(&set.out(), option)));
    for package in expected_packages() {
        let arch = if package == COMMON { "noarch" } else { "x86_64" };
        assert_eq!(names[&package], format!("{package} (none) 7.1.0 1 {arch} zstd"));
        let mut found = Relations::new();
        for (kind, texts) in &listed {
            let relations = rpm_relations(&package, &texts[&package]);
            if !relations.is_empty() {
                found.insert(*kind, relations);
            }
        }
        assert_eq!(found, expected_relations(&package, "rpm"), "{package}");
    }
}

/// The files of a kernel package below the prefix, derived from the archs alone.
fn expected_kernel_files(group: &Group) -> BTreeSet<String> {
    let library = format!("{PREFIX}/lib/rocblas/library");
    let of_arch = |arch: &&str| {
        [
            format!("{PREFIX}/lib/.kpack/blas_lib_{arch}.kpack"),
            format!("{library}/Kernels.so-000-{arch}.hsaco"),
            format!("{library}/TensileLibrary_fallback_{arch}.hsaco"),
            format!("{library}/TensileLibrary_{arch}.co"),
            format!("{library}/TensileLibrary_{arch}.dat"),
            format!("{library}/TensileLibrary_lazy_{arch}.dat"),
        ]
    };
    group.archs.iter().flat_map(of_arch).collect()
}

/// The file that tells the loader the library folder.
const LOADER_FILE: &str = "etc/ld.so.conf.d/rocm.conf";

/// The script that finds packages for the GPUs of a machine.
const GPU_SCRIPT: &str = "usr/share/rocm-common/gpu.sh";

/// The files of `package` without folders and documents.
fn expected_files(package: &str) -> BTreeSet<String> {
    if package == COMMON {
        return [LOADER_FILE, GPU_SCRIPT].map(str::to_owned).into();
    }
    let files: &[&str] = match package {
        "rocm-blas" => &[
            "bin/exblas-bench",
            "lib/.kpack/blas_lib.kpm",
            "lib/libexblas.so",
            "lib/libexblas.so.1",
            "lib/libexblas.so.1.2",
            "lib/libexcblas.so",
            "lib/libexcblas.so.1",
            "lib/libexcblas.so.1.0",
            "lib/rocblas/library/TensileLibrary_fallback.dat",
            "libexec/exblas/exblas-tune",
        ],
        "rocm-host-suite-sparse" => {
            &["lib/libexsuitesparse.so", "lib/libexsuitesparse.so.7", "lib/libexsuitesparse.so.7.8"]
        }
        _ => &[],
    };
    match GROUPS.iter().find(|group| kernels(group) == package) {
        Some(group) => expected_kernel_files(group),
        None => files.iter().map(|file| format!("{PREFIX}/{file}")).collect(),
    }
}

/// The documents of a `.deb`. Kernel packages have those of their host package.
fn expected_documents(package: &str) -> BTreeSet<String> {
    let documents = format!("usr/share/doc/{package}");
    if GROUPS.iter().any(|group| kernels(group) == package) {
        BTreeSet::from([documents])
    } else {
        ["changelog.Debian.gz", "copyright"].map(|n| format!("{documents}/{n}")).into()
    }
}

/// Each line of a listing as (type and permissions, owner, path without `./` and link target).
fn deb_listing(set: &Set, package: &str) -> Vec<(String, String, String)> {
    let text = tools::succeed(Command::new("dpkg-deb").arg("-c").arg(set.deb(package)));
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let path = words[5].trim_start_matches("./").trim_end_matches('/');
        (words[0].to_owned(), words[1].to_owned(), path.to_owned())
    };
    text.lines().map(line).collect()
}

#[test]
fn each_file_is_in_the_one_deb_that_should_have_it() {
    tools::need(&["dpkg-deb"]);
    let set = Set::build();
    let mut owners = BTreeMap::<String, String>::new();
    for package in expected_packages() {
        let listing = deb_listing(&set, &package);
        let mut paths: Vec<_> = listing.iter().map(|(_, _, path)| path.clone()).collect();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), listing.len(), "{package} lists a path twice");
        let mut files = BTreeSet::new();
        for (mode, owner, path) in listing {
            assert_eq!(owner, "root/root", "{package}: {path}");
            let known = ["drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x", "lrwxrwxrwx"];
            assert!(known.contains(&mode.as_str()), "{package}: {path}: {mode}");
            if !mode.starts_with('d') {
                let other = owners.insert(path.clone(), package.clone());
                assert_eq!(other, None, "{path} is in {package} too");
                files.insert(path);
            }
        }
        let expected = [expected_files(&package), expected_documents(&package)];
        assert_eq!(files, expected.into_iter().flatten().collect(), "{package}");
    }
}

#[test]
fn each_file_is_in_the_one_rpm_that_should_have_it() {
    tools::need(&["rpm"]);
    let set = Set::build();
    for package in expected_packages() {
        let format = "[%{FILEMODES:perms} %{FILEUSERNAME}/%{FILEGROUPNAME} %{FILENAMES}\n]";
        let listing = rpm_tags(&set.rpm(&package), format);
        let (mut files, mut paths) = (BTreeSet::new(), BTreeSet::new());
        for line in listing.lines().filter(|line| *line != "(none) (none)/(none) (none)") {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(words[1], "root/root", "{package}: {line}");
            let path = words[2].strip_prefix('/').unwrap();
            assert!(paths.insert(path), "{package} lists {path} twice");
            let licences = format!("usr/share/licenses/{package}");
            let owned = path.starts_with(PREFIX) || path.starts_with(&licences);
            let is_common = path == LOADER_FILE || GPU_SCRIPT.starts_with(path);
            assert!(owned || is_common, "{package} owns {path}");
            if !words[0].starts_with('d') {
                files.insert(path.to_owned());
            }
        }
        let licence = files.remove(&format!("usr/share/licenses/{package}/copyright"));
        let needs_none =
            package == "rocm" || package == "rocm-all-gpus" || package == "rocm-blas-all";
        let is_group = package.contains("-gfx");
        assert_eq!(licence, !needs_none && !is_group, "{package}");
        assert_eq!(files, expected_files(&package), "{package}");
    }
}

/// What the common package runs, and the hints to zypper that a configuration asks for.
#[test]
fn package_managers_are_told_of_gpus() {
    tools::need(&["dpkg-deb", "rpm"]);
    let set = Set::build();
    let control = set.scratch("control");
    tools::run(Command::new("dpkg-deb").arg("-e").arg(set.deb(COMMON)).arg(&control));
    let folder = format!("/{PREFIX}");
    let triggers = fs::read_to_string(control.join("triggers")).unwrap();
    assert!(triggers.contains(&format!("interest-noawait {folder}\n")), "{triggers}");
    let triggers = rpm_list(&set.rpm(COMMON), "--filetriggers");
    let expected = format!("transfiletriggerin scriptlet (using /bin/sh) -- {folder}\n");
    assert!(triggers.contains(&expected), "{triggers}");

    let text = fs::read(configuration()).unwrap();
    let mut config: serde_json::Value = serde_json::from_slice(&text).unwrap();
    config["hardware_hints"] = serde_json::json!({ "deb": "none", "rpm": "all" });
    let file = set.scratch("config.json");
    fs::write(&file, config.to_string()).unwrap();
    let out = set.scratch("hinted");
    let mut build = rockpack();
    build.args(["build", "--version", VERSION, "--artifacts"]).arg(shards());
    tools::run(build.arg("--config").arg(file).arg("--out").arg(&out));
    tools::run(rockpack().arg("verify").arg(&out));
    for group in &GROUPS {
        let name = kernels(group);
        assert_eq!(deb_field(&out.join(deb_name(&name)), "Modaliases"), "");
        let supplements = rpm_list(&out.join(rpm_name(&name)), "--supplements");
        let mut lines = supplements.lines();
        let is_hint = |line: &str| line.starts_with("modalias(rocm-blas:pci:v00001002d");
        assert!(!supplements.is_empty() && lines.all(is_hint), "{supplements}");
    }
}
