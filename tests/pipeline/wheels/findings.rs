//! Findings about wheels that can be split nevertheless.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use support::example::{names, rockpack};
use support::fat_wheels::{
    Made, WheelSpec, fat, library, library_needing, linked, read_one, wheel_command,
};
use support::tools::{self, told};

use super::verifies;

fn plain() -> WheelSpec {
    WheelSpec::new("x", "1.0").text("x/__init__.py", "").file("x/_C.so", &library())
}

/// The findings of a run, as (code, finding).
fn findings(made: &Made) -> Vec<(String, Value)> {
    let receipt = made.receipt();
    let findings = receipt["findings"].as_array().unwrap().clone();
    let code = |finding: Value| (finding["code"].as_str().unwrap().to_owned(), finding);
    findings.into_iter().map(code).collect()
}

/// The codes of a run's findings, without those for a runtime elsewhere, for the names of device wheels, and for sets
/// larger than their wheel, which all these small wheels have.
fn codes(made: &Made) -> Vec<String> {
    let codes = findings(made).into_iter().map(|(code, _)| code);
    codes.filter(|code| !["R124", "R145", "R151"].contains(&code.as_str())).collect()
}

/// The text of the only finding with this code.
fn text(made: &Made, code: &str) -> String {
    let own: Vec<_> = findings(made).into_iter().filter(|(own, _)| own == code).collect();
    let [(_, finding)] = &own[..] else { panic!("{code}: {own:?}\n{}", made.said) };
    finding["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_plain_wheel_has_no_finding_but_its_runtime() {
    support::kpack::need_python();
    let made = Made::of(&plain(), &[]);
    assert_eq!(codes(&made), [""; 0], "{}", made.said);
    let said = text(&made, "R124");
    assert!(said.contains("libamdhip64.so.7"), "{said}");
    let receipt = made.receipt();
    let own = receipt["findings"][0].to_string();
    assert!(own.contains("x-1.0-py3-none-manylinux_2_17_x86_64.whl"), "{own}");
}

/// Nobody has registered names like x-device-gfx1100. A run says so once, unless it makes none.
#[test]
fn names_that_are_open_to_everyone_are_told() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let (input, out) = (room.path().join("in"), room.path().join("out"));
    plain().write(&input);
    WheelSpec::new("y", "1.0").file("y/_C.so", &library()).write(&input);
    let said = told(wheel_command(&[&input], &out).arg("--device-name").arg("{name}-gpu-{group}"));
    assert_eq!(said.matches("R145").count(), 1, "{said}");
    assert!(said.contains("x-gpu-gfx1100") && said.contains("--index-url"), "{said}");
    assert!(said.contains("note: R145"), "{said}");
    for (input, options) in [
        // No wheel is split.
        (&out, &[][..]),
        (&input, &["--device-name", "amd-{name}-device-{group}"]),
    ] {
        let said = told(wheel_command(&[input], &room.path().join("more")).args(options));
        assert!(said.ends_with("exit status: 0\n") && !said.contains("R145"), "{said}");
    }
}

#[test]
fn records_that_say_too_little_are_completed() {
    support::kpack::need_python();
    let made = Made::of(&plain().set("x/_C.so", "hash", false), &[]);
    assert_eq!(codes(&made), ["R120"], "{}", made.said);
    assert!(text(&made, "R120").contains("1 member has no digest"), "{}", made.said);
    let wheel = plain().edit("x/__init__.py,", "x/other.py,");
    let made = Made::of(&wheel, &[]);
    let said = text(&made, "R120");
    assert!(said.contains("x/__init__.py") && said.contains("x/other.py"), "{said}");
    let record = &made.wheel("x").texts["RECORD"];
    assert!(record.contains("x/__init__.py,sha256=") && !record.contains("other"), "{record}");
}

/// Tools that edit METADATA or WHEEL may leave RECORD as it was.
#[test]
fn stale_rows_of_edited_texts_are_told() {
    support::kpack::need_python();
    let own = plain().edit("RECORD,,", "RECORD,,7");
    let info = "x-1.0.dist-info";
    for (wheel, parts) in [
        (plain().stale(), [format!("{info}/METADATA has "), format!("{info}/WHEEL has ")]),
        (own, [format!("{info}/RECORD has a digest or size"), "`wheel pack`".to_owned()]),
    ] {
        let made = Made::of(&wheel, &[]);
        assert_eq!(codes(&made), ["R149"], "{}", made.said);
        let said = text(&made, "R149");
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        verifies(&made.out(), &[made.fat]);
    }
}

#[test]
fn other_digests_of_records_are_compared() {
    support::kpack::need_python();
    let empty = "sha384=OLBgp1GsljhM2TJ-sbHjaiH9txEUvgdDTAzHv2P24donTt6_529l-9Ua0vFImLlb";
    let sha256 = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
    let made = Made::of(&plain().edit(sha256, empty), &[]);
    assert_eq!(codes(&made), [""; 0], "{}", made.said);
    assert!(made.wheel("x").texts["RECORD"].contains(sha256));
}

#[test]
fn folders_and_signatures_are_left_out() {
    support::kpack::need_python();
    let wheel = plain()
        .text("x/empty/", "")
        .set("x/empty/", "mode", 0o40_755)
        .info("RECORD.jws", "{}")
        .info("RECORD.p7s", "x");
    let made = Made::of(&wheel, &[]);
    assert_eq!(codes(&made), ["R122"], "{}", made.said);
    let said = text(&made, "R122");
    for name in ["x/empty/", "RECORD.jws", "RECORD.p7s"] {
        assert!(said.contains(name), "{name}: {said}");
    }
    let host = made.wheel("x");
    assert!(host.names().iter().all(|name| !name.contains("RECORD.") && !name.ends_with('/')));
}

#[test]
fn what_pypi_refuses_is_told() {
    support::kpack::need_python();
    let wheel = WheelSpec::tagged("x", "1.0+rocm7.1", "cp312-cp312-linux_x86_64");
    let made = Made::of(&wheel.file("x/_C.so", &library()), &[]);
    let own = findings(&made);
    let own: Vec<&Value> = own.iter().filter(|(code, _)| code == "R126").map(|(_, f)| f).collect();
    // The finding is about the host wheel and four device wheels.
    assert_eq!(own.len(), 5, "{}", made.said);
    for finding in own {
        let said = finding["message"].as_str().unwrap();
        assert!(said.contains("1.0+rocm7.1") && said.contains("linux_x86_64"), "{said}");
        assert_eq!(finding["severity"], "note", "{finding}");
    }
}

/// The functions that a runtime takes from others or defines decide, not the texts that patchelf leaves.
#[test]
fn a_runtime_in_the_wheel_has_to_read_archives() {
    support::kpack::need_python();
    tools::need(&["patchelf", "eu-strip"]);
    let room = tempfile::tempdir().unwrap();
    let link = |name, code, libraries: &[&Path]| linked(room.path(), name, code, libraries);
    let kpack = link("librocm_kpack-1a2b3c4d.so.0.1.0", "", &[]);
    let calls =
        "int kpack_load_code_object(void);\nint f(void) { return kpack_load_code_object(); }\n";
    let texts =
        "const char *texts = \"librocm_kpack.so.0 ROCM_KPACK_PATH kpack_load_code_object\";\n";
    let imports = link("imports.so", calls, &[]);
    let defines = link("defines.so", "int kpack_load_code_object(void) { return 0; }\n", &[]);
    let needs = link("needs.so", texts, &[&kpack]);
    let name = "x/lib/libamdhip64.so.7";
    for able in [&imports, &defines, &needs] {
        let made = Made::of(&plain().file(name, able), &[]);
        assert!(codes(&made).is_empty() && !made.said.contains("R124"), "{able:?}: {}", made.said);
    }
    let unable = room.path().join("unable.so");
    fs::copy(&needs, &unable).unwrap();
    tools::run(
        Command::new("patchelf")
            .args(["--remove-needed"])
            .arg(kpack.file_name().unwrap())
            .arg(&unable),
    );
    let unable = plain().file(name, &unable);
    let wheel = unable.write(&room.path().join("in"));
    let out = room.path().join("out");
    let said = told(&mut wheel_command(&[&wheel], &out));
    assert!(said.ends_with("exit status: 2\n"), "{said}");
    for part in [name, "x-1.0-py3", "ROCM_KPACK_ENABLED", "--hip-runtime other"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!out.join("wheels.json").exists());
    let made = Made::of(&unable, &["--hip-runtime", "other"]);
    assert_eq!(codes(&made), ["R125"], "{}", made.said);
    assert!(text(&made, "R125").contains(name));
    // Two copies, as auditwheel makes them: one supports archives, one does not.
    let two = unable.file("x.libs/libamdhip64-1a2b3c4d.so.7.1", &imports);
    let wheel = two.write(&room.path().join("two"));
    let said = told(&mut wheel_command(&[&wheel], &out));
    assert!(said.ends_with("exit status: 2\n") && said.contains(name), "{said}");
    assert!(!said.contains("1a2b3c4d"), "{said}");
    // Neither loads anything.
    let debug = room.path().join("debug");
    let mut strip = Command::new("eu-strip");
    tools::run(strip.arg("-f").arg(&debug).arg("-o").arg(room.path().join("rest")).arg(&imports));
    let others = plain().text(name, "\u{7f}ELF without anything of it");
    let made = Made::of(&others.file(&format!("{name}.debug"), &debug), &[]);
    assert!(codes(&made).is_empty() && made.said.contains("R124"), "{}", made.said);
}

/// Libraries that need the runtime of ROCm 6 or older, or what only such releases have, stay fat.
#[test]
fn code_for_runtimes_before_rocm_7_stays_fat() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let folder = room.path();
    let runtime = linked(folder, "libamdhip64.so.6", "", &[]);
    let kept = [
        ("x/_runtime.so", "libamdhip64.so.6"),
        ("x/_blas.so", "libhipblas.so.2"),
        ("x.libs/lib_rtc-1a2b3c4d.so", "libhiprtc-1.so.6"),
    ];
    let mut wheel = plain()
        .file("x/_new.so", &library_needing(folder, "libhipblas.so.3"))
        .file("x/_any.so", &library_needing(folder, "libm.so.6"))
        // Only what stays fat loads it.
        .file("x.libs/libamdhip64-1a2b3c4d.so.6.4", &runtime);
    for (member, needed) in kept {
        wheel = wheel.file(member, &library_needing(folder, needed));
    }
    let made = Made::of(&wheel, &[]);
    assert_eq!(codes(&made), ["R142"; 3], "{}", made.said);
    assert!(made.said.contains("R124"), "{}", made.said);
    let host = made.wheel("x");
    let fat = read_one(&made.fat);
    let file_name = made.fat.file_name().unwrap().to_str().unwrap();
    for (member, library) in kept {
        let named = |text: &str| text.contains(member) && text.contains(library);
        let mut all = findings(&made).into_iter();
        let (_, own) = all.find(|(_, it)| named(&it.to_string())).expect(&made.said);
        assert_eq!(own["file"], json!({"wheel": file_name, "path": member}));
        assert_eq!(own["subject"], format!("{file_name}({member})"));
        assert_eq!(host.member(member)["sha256"], fat.member(member)["sha256"], "{member}");
    }
    for member in ["x/_C.so", "x/_new.so", "x/_any.so"] {
        assert_ne!(host.member(member)["sha256"], fat.member(member)["sha256"], "{member}");
    }
    let said = told(rockpack().arg("verify").arg(made.out()).arg("--against").arg(&made.fat));
    assert!(said.ends_with("exit status: 0\n"), "{said}");
    // A host wheel with such libraries is copied.
    let again = room.path().join("again");
    let host_file = made.out().join(made.fat.file_name().unwrap());
    let said = told(&mut wheel_command(&[&host_file], &again));
    assert!(said.ends_with("exit status: 0\n"), "{said}");
    assert!(fs::read_to_string(again.join("wheels.json")).unwrap().contains("R123"), "{said}");
    let any = Made::of(&wheel, &["--hip-runtime", "other"]);
    assert_eq!(codes(&any), ["R125", "R142", "R142", "R142"], "{}", any.said);
    let host = any.wheel("x");
    for (member, _) in kept {
        assert_ne!(host.member(member)["sha256"], fat.member(member)["sha256"], "{member}");
    }
}

/// A library of the wheel needs the old runtime for a binary that does not; it stays fat, although no transform
/// could take its code out.
#[test]
fn binaries_need_what_their_libraries_need() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let folder = room.path();
    let runtime = linked(folder, "libamdhip64.so.6", "", &[]);
    let helper = linked(folder, "libhelper.so.1", "", &[&runtime]);
    let binary = library_needing(folder, "libhelper.so.1");
    let mut bytes = fs::read(&binary).unwrap();
    let at = bytes.windows(18).position(|name| name == b".hipFatBinSegment\0").unwrap();
    bytes[at + 1] = b'x';
    fs::write(&binary, bytes).unwrap();
    let wheel = plain().file("x/_old.so", &binary);
    let made = Made::of(&wheel.clone().file("x.libs/libhelper.so.1", &helper), &[]);
    assert_eq!(codes(&made), ["R142"], "{}", made.said);
    let said = text(&made, "R142");
    assert!(said.contains("libamdhip64.so.6") && said.contains("stays in it"), "{said}");
    let said = told(rockpack().arg("verify").arg(made.out()).arg("--against").arg(&made.fat));
    assert!(said.ends_with("exit status: 0\n"), "{said}");
    let wheel = wheel.write(&folder.join("in"));
    let said = told(&mut wheel_command(&[&wheel], &folder.join("out")));
    assert!(said.contains("but no section .hipFatBinSegment") && !said.contains("R142"), "{said}");
}

/// Code that is left out, and errors, are told with the path in the wheel, and with nothing that artifacts have.
#[test]
fn files_are_named_by_their_wheel() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let config = room.path().join("config.json");
    let split_with = |arch: &str| {
        let groups = json!({"architecture_groups": {"own": {"architectures": [arch]}}});
        fs::write(&config, groups.to_string()).unwrap();
        let wheel = plain().write(&room.path().join("in"));
        let mut run = wheel_command(&[&wheel], &room.path().join("out"));
        told(run.arg("--config").arg(&config))
    };
    let file = "x-1.0-py3-none-manylinux_2_17_x86_64.whl(x/_C.so)";
    let said = split_with("gfx1100");
    assert!(said.contains("R012") && said.contains(&format!("({file}: ")), "{said}");
    for said in [said, split_with("gfx942")] {
        assert!(!said.contains("x_lib"), "{said}");
    }
}

/// A split that saves nothing, and one that needs more room, are told with the bytes before and after.
#[test]
fn sizes_before_and_after_are_told() {
    support::kpack::need_python();
    let data = "a".repeat(400_000);
    let stored = |name: &str| plain().text("x/data.txt", &data).set(name, "method", 0);
    for (wheel, codes) in [
        // The device code is less than 1 % of it.
        (stored("x/data.txt"), &["R150", "R151"][..]),
        (plain(), &["R151"]),
        (stored("x/_C.so"), &[]),
    ] {
        let made = Made::of(&wheel, &[]);
        let mut own = findings(&made);
        own.retain(|(code, _)| ["R150", "R151"].contains(&code.as_str()));
        let found: Vec<&str> = own.iter().map(|(code, _)| code.as_str()).collect();
        assert_eq!(found, codes, "{}", made.said);
        let size = |name: &str| fs::metadata(made.out().join(name)).unwrap().len();
        let bytes = made.wheels().into_keys().map(|name| (size(&name), name.contains("device")));
        let (devices, host): (Vec<_>, Vec<_>) = bytes.partition(|(_, is_device)| *is_device);
        let least = host[0].0 + devices.iter().map(|it| it.0).min().unwrap();
        let all: u64 = devices.iter().chain(&host).map(|it| it.0).sum();
        let before = fs::metadata(&made.fat).unwrap().len();
        for (code, finding) in own {
            let (field, after) =
                if code == "R150" { ("least_size", least) } else { ("set_size", all) };
            assert_eq!([&finding["size"], &finding[field]], [&json!(before), &json!(after)]);
            let said = finding["message"].as_str().unwrap();
            assert!([before, after].iter().all(|it| said.contains(&it.to_string())), "{said}");
            assert_eq!(finding["severity"], "note");
        }
    }
}

#[test]
fn warnings_can_be_errors_or_accepted() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let wheel = fat().write(&room.path().join("in"));
    let out = room.path().join("out");
    let mut strict = wheel_command(&[&wheel], &out);
    strict.arg("--strict");
    let said = told(&mut strict);
    assert!(said.contains("R124") && said.ends_with("exit status: 2\n"), "{said}");
    assert!(!out.join("wheels.json").exists());
    let config = room.path().join("config.toml");
    let text = "[[accept]]\ncode = \"R124\"\nsubject = \"*\"\nreason = \"the driver brings it\"\n";
    fs::write(&config, text).unwrap();
    let said = told(strict.arg("--config").arg(&config));
    assert!(said.ends_with("exit status: 0\n"), "{said}");
}

/// The host wheel keeps data files as they are, and verify agrees.
#[test]
fn device_code_in_data_files_is_named() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let [with, without] = ["with", "without"].map(|name| room.path().join(name));
    support::kpack::data_files(&crate::odd_code::code_object(0x41, "data"), &with, &without);
    let mut wheel = plain();
    for folder in [&with, &without] {
        for name in names(folder) {
            let member = format!("x/{}/{name}", folder.file_name().unwrap().to_str().unwrap());
            wheel = wheel.file(&member, &folder.join(name));
        }
    }
    let config = room.path().join("config.toml");
    let accept =
        |code: &str| format!("[[accept]]\ncode = \"{code}\"\nsubject = \"*\"\nreason = \"test\"\n");
    fs::write(&config, ["R124", "R141"].map(accept).concat()).unwrap();
    let made = Made::of(&wheel, &["--strict", "--config", config.to_str().unwrap()]);
    let found: BTreeSet<String> = findings(&made)
        .into_iter()
        .filter(|(code, _)| code == "R141")
        .map(|(_, finding)| finding["file"]["path"].as_str().unwrap().to_owned())
        .collect();
    let expected = names(&with).into_iter().map(|name| format!("x/with/{name}"));
    assert_eq!(found, expected.collect::<BTreeSet<_>>());
    let mut verify = rockpack();
    let said = told(verify.arg("verify").arg(made.out()).arg("--against").arg(&made.fat));
    assert!(said.ends_with("exit status: 0\n"), "{said}");
}
