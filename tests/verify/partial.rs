//! Some packages of a set, which are checked as far as they can be.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::example::GROUPS;
use support::program::rockpack;
use support::tampered::{self, Archive, Run, Set, patch};
use support::tools::{repository, told};

const ARCHIVES: &str = "opt/rocm-7.1/lib/.kpack";
const LIBRARY: &str = "lib/libexblas.so.1.2";
const SHARDS: [&str; 2] = ["--against", "examples/shards"];

/// Verifies the package `name` of `set` by itself.
fn alone(set: &Set, name: &str, arguments: &[&str]) -> Run {
    let path = set.path(name).to_str().unwrap().to_owned();
    set.verify_paths(&[&path], arguments)
}

/// Verifies the package as a part of its set.
fn part(set: &Set, name: &str, arguments: &[&str]) -> Run {
    alone(set, name, &[&["--partial"], arguments].concat())
}

fn undecided(run: &Run) -> Vec<String> {
    let report: Value = serde_json::from_str(&run.text).unwrap();
    let all = report["undecided"].as_array().cloned().unwrap_or_default();
    all.iter().map(|check| check["code"].as_str().unwrap().to_owned()).collect()
}

/// The library that the kernels of the first group were taken out of.
fn fat() -> String {
    let path = GROUPS[0].original(&repository("examples/shards"), LIBRARY);
    path.to_str().unwrap().to_owned()
}

#[test]
fn each_package_by_itself_passes_as_a_part() {
    for set in Set::of_each_format() {
        for path in set.packages() {
            let name = Path::new(&path).file_name().unwrap().to_str().unwrap().to_owned();
            for arguments in [&[][..], &SHARDS] {
                let run = part(&set, &name, arguments);
                assert_eq!((run.status, run.codes()), (0, Vec::new()), "{name}: {}", run.text);
            }
        }
        // Without being told, it is taken for a whole set.
        let kernels = set.kernels("gfx110x");
        assert_eq!(alone(&set, &kernels, &[]).codes(), ["V024", "V033"]);
        let said = told(rockpack().arg("verify").arg(set.path(&kernels)));
        assert!(said.contains("or add --partial"), "{said}");
        // That helps nothing where the receipt names what is missing, or no other package could help.
        fs::write(set.path("empty.deb"), "").unwrap();
        let said = told(rockpack().arg("verify").arg(set.path("")));
        assert!(said.contains("V001") && !said.contains("--partial"), "{said}");
        assert_eq!(undecided(&part(&set, &kernels, &[])), ["V024", "V033"]);
        let compared = undecided(&part(&set, &kernels, &SHARDS));
        assert!(compared.contains(&"V010".to_owned()), "{compared:?}");
        assert!(compared.contains(&"V013".to_owned()), "{compared:?}");
    }
}

#[test]
fn a_folder_that_lost_packages_passes_as_a_part() {
    let set = Set::of_both_formats();
    for name in ["rocm_7.1.0-1_amd64.deb", "rocm-blas-gfx115x-7.1.0-1.x86_64.rpm"] {
        fs::remove_file(set.path(name)).unwrap();
    }
    assert!(set.verify(&[]).codes().contains(&"V003".to_owned()));
    let run = set.verify(&["--partial", SHARDS[0], SHARDS[1]]);
    assert_eq!((run.status, run.codes()), (0, Vec::new()), "{}", run.text);
    // A whole set has nothing undecided.
    let whole = Set::of_debs();
    assert_eq!(undecided(&whole.verify(&["--partial", SHARDS[0], SHARDS[1]])), [""; 0]);
}

#[test]
fn what_is_wrong_with_a_part_fails() {
    for set in Set::of_each_format() {
        let kernels = set.kernels("gfx110x");
        set.edit(&kernels, |root| {
            Archive::edit(&root.join(ARCHIVES).join("blas_lib_gfx1101.kpack"), |archive| {
                archive.drop_row("lib/libexblas.so.1.2#1", "gfx1101");
            });
        });
        // All code of a binary for an arch is in one package.
        assert_eq!(part(&set, &kernels, &SHARDS).codes(), ["V010"]);
        assert_eq!(part(&set, &kernels, &["--against", &fat()]).codes(), ["V010"]);
        let database = "opt/rocm-7.1/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco";
        set.edit(&kernels, |root| {
            let mut code = fs::read(root.join(database)).unwrap();
            *code.last_mut().unwrap() ^= 1;
            fs::write(root.join(database), code).unwrap();
        });
        let codes = part(&set, &kernels, &SHARDS).codes();
        assert!(codes.contains(&"V011".to_owned()), "{codes:?}");
        assert!(codes.contains(&"V013".to_owned()), "{codes:?}");
    }
}

#[test]
fn kernels_are_compared_with_the_library_that_they_are_from() {
    for set in Set::of_each_format() {
        let kernels = set.kernels("gfx110x");
        let run = part(&set, &kernels, &["--against", &fat()]);
        assert_eq!((run.status, run.codes()), (0, Vec::new()), "{}", run.text);
        let report: Value = serde_json::from_str(&run.text).unwrap();
        assert!(report["input_code_objects"].as_u64().unwrap() >= 6, "{report}");
        // The whole set explains the code for gfx906, which is in no package.
        let whole = set.verify(&["--against", &fat()]);
        assert_eq!((whole.status, whole.codes()), (0, Vec::new()), "{}", whole.text);
        // Another build of the library has other code.
        let other = GROUPS[1].original(&repository("examples/shards"), LIBRARY);
        let foreign = part(&set, &set.kernels("gfx115x"), &["--against", other.to_str().unwrap()]);
        assert_eq!(foreign.codes(), [""; 0], "{}", foreign.text);
        let exchanged = part(&set, &kernels, &["--against", other.to_str().unwrap()]);
        let open = ["V010", "V024", "V033", "V101"];
        assert_eq!(undecided(&exchanged), open, "{}", exchanged.text);
    }
}

#[test]
fn a_host_package_is_compared_with_the_binary_that_it_is_from() {
    for set in Set::of_each_format() {
        let (host, against) = (set.host(), ["--against", &fat()]);
        let run = part(&set, &host, &against);
        assert_eq!((run.status, run.codes()), (0, Vec::new()), "{}", run.text);
        assert!(undecided(&run).contains(&"V010".to_owned()), "{}", run.text);
        // All its device code is missing where nobody says that there is more.
        let codes = alone(&set, &host, &against).codes();
        assert!(codes.contains(&"V010".to_owned()), "{codes:?}");
        let library = format!("opt/rocm-7.1/{LIBRARY}");
        for (section, value) in [(".comment", 1), (".text", 0xcc)] {
            set.edit(&host, |root| {
                let library = root.join(&library);
                let (offset, _) = tampered::section(&fs::read(&library).unwrap(), section);
                patch(&library, offset, &[value]);
            });
            let run = part(&set, &host, &against);
            assert_eq!((run.status, run.codes()), (1, vec!["V013".to_owned()]), "{}", run.text);
        }
    }
}

#[test]
fn a_file_that_kernels_are_not_from_is_refused() {
    let set = Set::of_debs();
    let kernels = set.path(&set.kernels("gfx110x"));
    let sparse = repository("examples/shards/gfx110X-build").join("README.md");
    let unnamed = set.path("libother.so.1");
    fs::copy(fat(), &unnamed).unwrap();
    fs::write(set.path("words.txt"), "words").unwrap();
    for (file, expected) in [
        (set.path("words.txt"), "is neither an artifact nor a host binary with device code"),
        (unnamed, "no kernel archive of these packages has code for a binary of this name"),
        (sparse, "No such file"),
    ] {
        let mut command: Command = rockpack();
        command.arg("verify").arg(&kernels).arg("--partial").arg("--against").arg(&file);
        let said = told(&mut command);
        assert!(said.contains(expected) && said.ends_with("exit status: 64\n"), "{said}");
    }
}

#[test]
fn the_text_says_what_is_not_decided() {
    let set = Set::of_debs();
    let mut command = rockpack();
    command.arg("verify").arg(set.path(&set.kernels("gfx110x"))).arg("--partial");
    let said = told(&mut command);
    let line = "not checked, because the other packages of the set are needed: V024 database-unpaired (3), \
                V033 bad-manifest (3)\n";
    assert!(said.contains(line) && said.contains("all checks passed\n"), "{said}");
}
