//! `rockpack gpu`: made-up machines, names of GPUs, and the commands that install what they need.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::example::{Set, names};
use support::fat_wheels::{Made, fat};
use support::program::{repository, rockpack};
use support::repo_fixture::{deb, publish, repo};
use support::tools::{need, succeed};

/// `rockpack gpu` in an environment without overrides.
fn gpu(words: &[&str]) -> Command {
    let mut command = rockpack();
    command.arg("gpu").args(words).env_remove("HSA_OVERRIDE_GFX_VERSION");
    command
}

/// `rockpack gpu` on a machine of `tests/machines`, with the variables in its file `environment`.
fn gpu_of(machine: &str, words: &[&str]) -> Command {
    let tree = repository("tests/machines").join(machine);
    let variables = fs::read_to_string(tree.join("environment")).unwrap_or_default();
    let mut command = gpu(words);
    command.arg("--sysfs").arg(tree).envs(variables.lines().filter_map(|it| it.split_once('=')));
    command
}

/// Standard output, standard error and the exit code.
fn result(command: &mut Command) -> (String, String, Option<i32>) {
    let output = command.output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (stdout, stderr, output.status.code())
}

/// The targets in the JSON of a machine, each once.
fn targets(json: &str) -> Vec<String> {
    let found: Value = serde_json::from_str(json).unwrap();
    let mut targets = Vec::new();
    for gpu in found["gpus"].as_array().unwrap() {
        let own = ["target", "overridden_by"].into_iter().filter_map(|key| gpu[key].as_str());
        for target in own {
            if !targets.iter().any(|known| known == target) {
                targets.push(target.to_owned());
            }
        }
    }
    targets
}

#[test]
fn machines_have_the_expected_targets() {
    let (folder, room) = (repository("tests/machines"), tempfile::tempdir().unwrap());
    let machines = names(&folder);
    assert!(machines.len() >= 40);
    for machine in &machines {
        note!("{machine}");
        let expected = fs::read_to_string(folder.join(machine).join("expected")).unwrap();
        let code = Some(i32::from(expected.is_empty()));
        let json = result(gpu_of(machine, &["--json"]).current_dir(room.path()));
        assert_eq!(targets(&json.0), expected.lines().collect::<Vec<_>>(), "{machine}: {json:?}");
        let text = result(gpu_of(machine, &[]).current_dir(room.path()));
        assert_eq!((json.2, text.2), (code, code), "{machine}: {text:?}");
        assert_eq!(text.0.is_empty(), expected.is_empty(), "{machine}: {text:?}");
        for said in [&json.0, &json.1, &text.0, &text.1] {
            assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{machine}: {said:?}");
        }
        assert!(names(room.path()).is_empty(), "{machine} had something run");
    }
}

#[test]
fn what_is_skipped_is_named_with_the_reason() {
    for (machine, expected) in [
        ("container-first-of-two", "1002:73bf at 0000:2b:00.0: this container has no access"),
        ("container-none-of-two", "node 1 of the compute driver: cannot be read"),
        ("wsl2", "`rocminfo` names the target"),
        ("unknown-id", "1002:9999 at 0000:03:00.0: is a GPU that neither"),
        ("override-bad-command", "HSA_OVERRIDE_GFX_VERSION=10.3.$(touch x): is not a GPU version"),
        ("empty", "this machine has no GPU whose target is known"),
    ] {
        let (_, said, _) = result(&mut gpu_of(machine, &[]));
        assert!(said.contains(expected), "{machine}: {said}");
    }
    let (said, ..) = result(&mut gpu_of("apu-beside-card", &[]));
    let expected = "\
        Radeon RX 7900 XTX: gfx1100, known by the compute driver, 1002:744c at 0000:03:00.0\n\
        Radeon 610M: gfx1036, known by the compute driver, 1002:164e at 0000:0f:00.0, part of the \
        processor\n";
    assert_eq!(said, expected);
    let (said, ..) = result(&mut gpu_of("override", &[]));
    assert!(
        said.ends_with("; runs code for gfx1030 because of HSA_OVERRIDE_GFX_VERSION\n"),
        "{said}"
    );
}

#[test]
fn gpus_are_looked_up_by_product_chip_target_and_id() {
    for (word, target) in [
        ("RX 7900 XTX", "gfx1100"),
        ("amd instinct mi210", "gfx90a"),
        ("Strix Halo", "gfx1151"),
        ("GFX1151", "gfx1151"),
        ("gfx1250-strict", "gfx1250-strict"),
        ("gfx90a:xnack+", "gfx90a"),
        ("amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "gfx90a"),
        ("1002:744C", "gfx1100"),
    ] {
        let said = succeed(&mut gpu(&[word]));
        assert_eq!(said.lines().next(), Some(target), "{word}: {said}");
        assert_eq!(said, succeed(rockpack().args(["explain", word])));
    }
    let card = succeed(&mut gpu(&["rx7900xtx"]));
    let expected = "gfx1100\n  products: Radeon RX 7900 XTX\n  chips: Navi 31\n  generation: RDNA 3\n  \
                    generic target: gfx11-generic\n  PCI ids: 1002:744c\n";
    assert_eq!(card, expected);
    let generic = succeed(&mut gpu(&["gfx11-generic"]));
    assert!(generic.contains("RX 7900 XTX") && generic.contains("RX 7600"), "{generic}");
    assert!(succeed(&mut gpu(&["gfx1036"])).ends_with("  place: part of a processor\n"));
    // Only the revision tells the two apart.
    let two = succeed(&mut gpu(&["1002:73ff"]));
    let first = |line: &&str| line.starts_with("gfx");
    assert_eq!(two.lines().filter(first).collect::<Vec<_>>(), ["gfx1031", "gfx1032"]);
    for word in
        ["MI300", "1002:9999", "10de:2684", "1002:744", "gfx9999", "gfx1100:xnack+", "Radeon", ""]
    {
        for command in ["gpu", "explain"] {
            let (said, told, code) = result(rockpack().args([command, word]));
            assert_eq!((said.as_str(), code), ("", Some(64)), "{command} {word}: {told}");
            assert!(told.contains("help: "), "{told}");
            assert!(word != "MI300" || told.contains("Instinct MI300X"), "{told}");
        }
    }
}

/// The result of `rockpack gpu` with these words, in the folder above the packages.
fn from(room: &Path, words: &[&str]) -> (String, String, Option<i32>) {
    result(gpu(words).current_dir(room))
}

#[test]
fn files_of_a_set_are_installed_with_all_that_they_need_of_it() {
    let set = Set::build();
    let room = set.scratch("");
    let (said, told, code) = from(&room, &["RX 7900 XTX", "--from", "out", "--for", "apt"]);
    let debs = ["rocm-blas-gfx110x", "rocm-blas", "rocm-common", "rocm-gfx110x"];
    let files = debs.map(|name| format!("./out/{}", support::example::deb_name(name)));
    assert_eq!((said, code), (format!("apt install {}\n", files.join(" ")), Some(0)), "{told}");
    fs::rename(set.out(), set.scratch("it's")).unwrap();
    let mut sorted = debs.map(|name| format!(r"'./it'\''s/{}'", support::example::rpm_name(name)));
    sorted.sort();
    for program in ["dnf", "zypper"] {
        let (said, told, _) = from(&room, &["gfx1100", "--from", "it's", "--for", program]);
        assert_eq!(said, format!("{program} install {}\n", sorted.join(" ")), "{told}");
    }
    // Kept packages of earlier builds lie elsewhere.
    fs::remove_file(set.scratch("it's").join(support::example::deb_name("rocm-common"))).unwrap();
    let (said, ..) = from(&room, &["gfx1100", "--from", "it's", "--for", "apt", "--json"]);
    let found: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(found["targets"][0]["target"], "gfx1100");
    let packages = found["install"]["packages"].as_array().unwrap();
    assert!(packages.contains(&"rocm-common".into()) && packages.len() == 4, "{said}");
}

#[test]
fn packages_of_a_repository_are_installed_by_name() {
    let set = Set::build();
    let (room, out) = (set.scratch(""), set.scratch("repo"));
    publish(&mut repo(&[&set.out()], &out));
    for (words, expected) in [
        (&["gfx1100", "--for", "apt"][..], "apt install rocm-gfx110x\n"),
        (
            &["gfx1201", "RX 7600", "Navi 31", "--for", "dnf"],
            "dnf install rocm-gfx120x rocm-gfx110x\n",
        ),
        (&["gfx1036", "gfx1151", "--for", "zypper"], "zypper install rocm-gfx115x\n"),
    ] {
        let (said, told, code) = from(&room, &[words, &["--from", "repo"]].concat());
        assert_eq!((said.as_str(), code), (expected, Some(0)), "{told}");
        let unserved = "repo has no package for gfx1036 (Radeon 610M)";
        assert_eq!(told.contains(unserved), words.contains(&"gfx1036"), "{told}");
    }
    let source = ["--for", "apt", "--from", out.to_str().unwrap()];
    let (said, told, code) = result(&mut gpu_of("apu-beside-card", &source));
    assert_eq!((said.as_str(), code), ("apt install rocm-gfx110x\n", Some(0)));
    assert!(told.contains("has no package for gfx1036 (Radeon 610M)"), "{told}");
    for machine in ["apu-cezanne", "empty"] {
        let (said, told, code) = result(&mut gpu_of(machine, &source));
        assert_eq!((said.as_str(), code), ("", Some(1)), "{machine}: {told}");
    }
    for (words, expected) in [
        (&["1002:73ff", "--for", "apt", "--from", "repo"][..], "is ambiguous: gfx1031 or gfx1032"),
        (&["gfx1100", "--for", "pip", "--from", "repo"], "has no packages for pip"),
        (&["gfx1100", "--for", "pip", "--from", "out"], "has no packages for pip"),
        (&["gfx1100", "--for", "apt", "--from", "nothing"], "neither a set nor a repository"),
        (
            &["gfx1100", "--for", "apt", "--from", "out/packages.json"],
            "neither a set nor a repository",
        ),
        (&["gfx1100", "--from", "repo"], "--for"),
        (&["gfx1100", "--for", "dnf", "--from", "repo", "--suite", "stable"], "--suite needs"),
        (&["gfx1100", "--for", "apt", "--from", "out", "--suite", "stable"], "--suite needs"),
    ] {
        let (said, told, code) = from(&room, words);
        assert_eq!((said.as_str(), code), ("", Some(64)), "{words:?}");
        assert!(told.contains(expected), "{words:?}: {told}");
    }
}

#[test]
fn a_suite_is_named_where_there_are_several() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("repo");
    let both = [("stable", "blas-gfx110x"), ("testing", "fft-gfx110x")];
    for (suite, name) in both {
        let packages = room.path().join(suite);
        deb(&packages, (name, "1", "amd64"), "X-ROCm-GPU-Architecture: gfx1100\n");
        publish(repo(&[&packages], &out).args(["--suite", suite]));
    }
    let command = |suite: &[&str]| {
        let words = ["gfx1100", "--from", "repo", "--for", "apt"];
        from(room.path(), &[&words[..], suite].concat())
    };
    for (suite, name) in both {
        let (said, told, _) = command(&["--suite", suite]);
        assert_eq!(said, format!("apt install {name}\n"), "{told}");
    }
    for suite in [&[][..], &["--suite", "other"]] {
        let (said, told, code) = command(suite);
        assert_eq!((said.as_str(), code), ("", Some(64)), "{told}");
        assert!(told.contains("the apt suite is stable or testing"), "{told}");
    }
}

#[test]
fn generic_code_serves_its_members_where_every_library_has_it() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    let add = |library: &str, arch: &str| {
        deb(&packages, (library, "1", "amd64"), "");
        let fields = format!(
            "Depends: {library} (= 1)\nEnhances: {library}\nX-ROCm-GPU-Architecture: {arch}\n"
        );
        deb(&packages, (format!("{library}-{arch}").as_str(), "1", "amd64"), &fields);
        publish(&mut repo(&[&packages], &out));
    };
    let command = |target: &str| from(room.path(), &[target, "--from", "repo", "--for", "apt"]).0;
    add("blas", "gfx11-generic");
    add("fft", "gfx11-generic");
    let both = "apt install blas-gfx11-generic fft-gfx11-generic";
    assert_eq!(command("gfx1102"), format!("{both}\n"));
    assert_eq!(command("gfx1200"), "");
    add("rand", "gfx1100");
    assert_eq!(command("gfx1102"), "");
    assert_eq!(command("gfx1100"), format!("{both} rand-gfx1100\n"));
}

#[test]
fn wheels_are_installed_by_the_extras_of_their_hosts() {
    support::kpack::need_python();
    let made = Made::of(&fat(), &[]);
    let (room, out) = (made.room.path(), made.room.path().join("repo"));
    let words = |from| ["gfx1201", "RX 7900 XTX", "--from", from, "--for", "pip"];
    let extras = "'x[device-gfx1201]' 'x[device-gfx1100]'";
    let (said, told, _) = from(room, &words("out"));
    assert_eq!(said, format!("pip install --find-links out {extras}\n"), "{told}");
    publish(&mut repo(&[&made.out()], &out));
    let (said, told, _) = from(room, &words("repo"));
    let url = format!("file://{}/simple/", out.display());
    assert_eq!(said, format!("pip install --index-url {url} {extras}\n"), "{told}");
    let (said, _, code) = from(room, &["gfx1036", "--from", "out", "--for", "pip"]);
    assert_eq!((said.as_str(), code), ("", Some(1)));
}
