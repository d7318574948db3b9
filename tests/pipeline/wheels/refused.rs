//! Wheels that cannot be split are refused by name, and nothing is written.

use std::fs;
use std::path::Path;

use support::example::{contents, names, rockpack};
use support::fat_wheels::{
    Made, TAGS, WheelSpec, library, library_needing, linked, metadata, wheel_command,
};
use support::tools::told;

use super::verifies;

fn plain() -> WheelSpec {
    WheelSpec::new("x", "1.0").text("x/__init__.py", "").file("x/_C.so", &library())
}

/// Fails unless splitting `wheel` ends with this exit code, reports its name and all of `words`, and writes
/// nothing.
fn refuses(wheel: &WheelSpec, code: i32, words: &[&str]) {
    let room = tempfile::tempdir().unwrap();
    let path = wheel.write(&room.path().join("in"));
    refuses_file(&path, code, words);
}

/// Fails like `refuses`, for an existing wheel.
pub fn refuses_file(path: &Path, code: i32, words: &[&str]) {
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    let said = told(&mut wheel_command(&[path], &out));
    assert!(said.ends_with(&format!("exit status: {code}\n")), "{words:?}: {said}");
    let name = path.file_name().unwrap().to_str().unwrap();
    for word in words.iter().chain([&name]) {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!said.contains("panicked") && !said.contains("bug in rockpack"), "{said}");
    let left = fs::read_dir(&out).map_or(0, Iterator::count);
    assert_eq!(left, 0, "{words:?} leaves {:?}", names(&out));
}

#[test]
fn what_is_no_wheel_is_refused() {
    support::kpack::need_python();
    refuses(&plain().without_record(), 2, &["has no x-1.0.dist-info/RECORD"]);
    refuses(&plain().without("x-1.0.dist-info/WHEEL"), 2, &["has no x-1.0.dist-info/WHEEL"]);
    refuses(&plain().without("x-1.0.dist-info/METADATA"), 2, &["has no x-1.0.dist-info/METADATA"]);
    let bare = plain().without("x-1.0.dist-info/WHEEL").without("x-1.0.dist-info/METADATA");
    refuses(&bare.without_record(), 2, &["has no .dist-info folder"]);
    let two = plain().text("z-1.0.dist-info/METADATA", "");
    refuses(&two, 2, &["two .dist-info folders", "x-1.0.dist-info", "z-1.0.dist-info"]);
    refuses(&with_metadata("Name: x\nVersion: 1.0\n"), 2, &["METADATA", "has no Metadata-Version"]);
    refuses(&with_metadata("no field\n"), 2, &["METADATA", "not a header field"]);
    refuses(&with_metadata("Metadata-Version: 3.0\nName: x\nVersion: 1.0\n"), 2, &["3.0"]);
    refuses(&plain().info("WHEEL", "Wheel-Version: 2.0\nRoot-Is-Purelib: true\n"), 2, &["2.0"]);
    refuses(&plain().info("WHEEL", "Wheel-Version: 1.0\n"), 2, &["has no Root-Is-Purelib"]);
}

fn with_metadata(text: &str) -> WheelSpec {
    plain().info("METADATA", text)
}

#[test]
fn another_name_or_version_is_refused() {
    support::kpack::need_python();
    refuses(&with_metadata(&metadata("z", "1.0", "")), 2, &["METADATA says z"]);
    refuses(&with_metadata(&metadata("x", "1.1", "")), 2, &["METADATA says 1.1"]);
    refuses(&with_metadata(&metadata("x", "main", "")), 2, &["version main", "PEP 440"]);
    refuses(&renamed("y-1.0"), 2, &["has the name y", "METADATA says x"]);
    refuses(&renamed("x-main"), 2, &["main", "PEP 440"]);
    let other = renamed("y-1.0").info("METADATA", &metadata("y", "1.0", ""));
    refuses(&other, 2, &["has its metadata in x-1.0.dist-info"]);
    refuses(&plain().called("x-1.0.whl"), 2, &["is not a valid wheel file name"]);
    let windows = plain().called("x-1.0-cp312-cp312-win_amd64.whl");
    refuses(&windows, 2, &["for Windows", "win_amd64"]);
    let variant = plain().called("x-1.0-cp312-cp312-linux_x86_64-null.whl");
    let is_variant = "is a variant wheel (PEP 825, label `null`)";
    refuses(&variant, 2, &[is_variant, "without a label, x-1.0-cp312-cp312-linux_x86_64.whl"]);
    // Different spellings of a version are the same version.
    let same = with_metadata(&metadata("X", "1", ""));
    let room = tempfile::tempdir().unwrap();
    let path = same.write(room.path());
    let said = told(&mut wheel_command(&[&path], &room.path().join("out")));
    assert!(said.ends_with("exit status: 0\n"), "{said}");
    let said = told(rockpack().arg("verify").arg(variant.write(room.path())));
    assert!(said.contains(is_variant), "{said}");
}

fn renamed(file: &str) -> WheelSpec {
    plain().called(&format!("{file}-{TAGS}.whl"))
}

#[test]
fn records_that_say_something_else_are_refused() {
    support::kpack::need_python();
    let empty = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
    let hex = "sha256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let row = format!("x/__init__.py,{empty},0");
    refuses(
        &plain().edit("x/__init__.py,sha256=4", "x/__init__.py,sha256=5"),
        2,
        &["(x/__init__.py)", "another sha256"],
    );
    refuses(
        &plain().edit(&row, &format!("x/__init__.py,{empty},1")),
        2,
        &["(x/__init__.py)", "has 0 bytes"],
    );
    refuses(&plain().edit(empty, hex), 2, &["RECORD", "x/__init__.py", "in hexadecimal"]);
    refuses(&plain().edit(empty, "md5=x"), 2, &["RECORD", "x/__init__.py", "md5"]);
    refuses(&plain().edit(&row, &format!("{row}\n{row}")), 2, &["RECORD", "x/__init__.py twice"]);
    refuses(&plain().edit(&row, "x/__init__.py"), 2, &["RECORD", "1 field"]);
    // The error lists all that differ.
    let both = plain()
        .edit("x/__init__.py,sha256=4", "x/__init__.py,sha256=5")
        .edit("x/_C.so,sha256=", "x/_C.so,sha512=");
    refuses(&both, 2, &["RECORD"]);
}

#[test]
fn members_that_no_installer_puts_there_are_refused() {
    support::kpack::need_python();
    for name in ["../x", "x/../../y", "/etc/x", "x//y", "./x", "x/."] {
        refuses(&with_member(name), 2, &["not a path inside the wheel", name]);
    }
    refuses(&with_member("x\\y"), 2, &["backslash"]);
    let same = with_member("x/same.py").text("x/same.py", "y");
    refuses(&same, 2, &["has the member x/same.py twice"]);
    let link = with_member("x/link").set("x/link", "mode", 0o120_777);
    refuses(&link, 2, &["(x/link)", "symbolic link"]);
    let pipe = with_member("x/pipe").set("x/pipe", "mode", 0o10_644);
    refuses(&pipe, 2, &["(x/pipe)", "not a regular file"]);
    let folder = with_member("x/folder/").set("x/folder/", "mode", 0o40_755);
    refuses(&folder, 2, &["x/folder/", "a folder with content"]);
    // One path for two files, and a file in place of a folder.
    let twice = with_member("x-1.0.data/platlib/x/__init__.py");
    refuses(&twice, 2, &["x-1.0.data/platlib/x/__init__.py", "the path of x/__init__.py"]);
    let below = with_member("x/__init__.py/more.py");
    refuses(&below, 2, &["the file x/__init__.py and members below it"]);
    let script = plain().file("x-1.0.data/scripts/fat", &library());
    refuses(&script, 2, &["x-1.0.data/scripts/fat", "has device code"]);
    let hidden = plain().file("x-1.0.dist-info/fat.so", &library());
    refuses(&hidden, 2, &["x-1.0.dist-info/fat.so", "has device code"]);
    let placeholder = WheelSpec::new("x", "1.0").file("@GFXARCH@/_C.so", &library());
    refuses(&placeholder, 2, &["the folder @GFXARCH@"]);
    let fat = plain().text("x/x.dll", &pe(".hip_fat"));
    refuses(&fat, 2, &["(x/x.dll)", "is a PE file", "with device code"]);
}

/// A PE file with one section of this name, which is not longer than eight bytes.
fn pe(section: &str) -> String {
    let [dos, rest] = [0x3a, 16].map(|count| "\0".repeat(count));
    let table = format!("{section}{}", "\0".repeat(40 - section.len()));
    format!("MZ{dos}\x40\0\0\0PE\0\0\0\0\x01\0{rest}{table}")
}

#[test]
fn pe_files_without_device_code_are_data() {
    support::kpack::need_python();
    let (exe, fat) = (pe(".text"), pe(".hip_fat"));
    // Nobody loads those that are cut.
    let wheel = plain().text("x/t64.exe", &exe).text("x/a", &fat[..88]).text("x/b", &fat[..62]);
    let made = Made::of(&wheel, &[]);
    let host = made.wheel("x");
    assert!(["x/t64.exe", "x/a", "x/b"].iter().all(|name| host.names().contains(name)));
    verifies(&made.out(), &[made.fat]);
}

fn with_member(name: &str) -> WheelSpec {
    plain().text(name, "x")
}

/// Nothing else is left to split.
#[test]
fn code_for_runtimes_before_rocm_7_alone_is_refused() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    for soname in ["libamdhip64.so.6", "librocblas.so.4"] {
        let library = library_needing(room.path(), soname);
        let old = WheelSpec::new("x", "1.0").text("x/__init__.py", "").file("x/_C.so", &library);
        refuses(&old, 2, &[soname, "R142", "leave the wheel as it is", "--hip-runtime any"]);
    }
    // Another module of the wheel loads the runtime, as in jax-rocm60-plugin.
    let silent = library_needing(room.path(), "libm.so.6");
    let silent = WheelSpec::new("x", "1.0").text("x/__init__.py", "").file("x/_C.so", &silent);
    for (soname, code) in [("libamdhip64.so.6", 2), ("libamdhip64.so.7", 0)] {
        let runtime = linked(room.path(), soname, "", &[]);
        let loader = linked(room.path(), &format!("loads-{soname}"), "", &[&runtime]);
        let [input, out] = ["in", "out"].map(|name| room.path().join(format!("{soname}-{name}")));
        let wheel = silent.clone().file("x/_loader.so", &loader).write(&input);
        let said = told(&mut wheel_command(&[&wheel], &out));
        assert!(said.ends_with(&format!("exit status: {code}\n")), "{said}");
        assert_eq!(said.contains("R142"), code == 2, "{said}");
    }
}

#[test]
fn extras_that_are_there_are_refused() {
    support::kpack::need_python();
    let already = "already has an extra device-gfx906";
    let bare = "requires device code without an extra, by";
    for (line, words) in [
        ("Provides-Extra: Device_GFX906", already.to_owned()),
        ("Requires-Dist: foo; extra == 'device-gfx906' and os_name == 'posix'", already.to_owned()),
        ("Provides-Extra: device-x", already.replace("gfx906", "x")),
        ("Requires-Dist: foo == 1.0; 'DEVICE__gfx11xx' == extra", already.replace("906", "11xx")),
        ("Requires-Dist: X[device_all]", format!("{bare} x")),
        ("Requires-Dist: x_device.gfx906; python_version > '3'", format!("{bare} x-device-gfx906")),
        ("Requires-Dist: x-device-gfx906; extra in 'test'", format!("{bare} x-device-gfx906")),
        ("Requires-Dist: a b", "`a b` is not a valid Python requirement".to_owned()),
    ] {
        let text = metadata("x", "1.0", &format!("{line}\n"));
        refuses(&plain().info("METADATA", &text), 2, &[&words]);
    }
    let room = tempfile::tempdir().unwrap();
    let (out, config) = (room.path().join("out"), room.path().join("config.toml"));
    fs::write(&config, "[wheels]\ndevice_requires = [\"X >= 2\"]\n").unwrap();
    let wheel = plain().write(&room.path().join("in"));
    let said = told(wheel_command(&[&wheel], &out).arg("--config").arg(&config));
    assert!(said.ends_with("exit status: 2\n"), "{said}");
    assert!(said.contains("takes other versions than 1.0"), "{said}");
}

/// A wheel of the input with the name of a device wheel that is made, if its host is no wheel of the input.
#[test]
fn names_of_device_wheels_are_refused() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let (input, out) = (room.path().join("in"), room.path().join("out"));
    plain().write(&input);
    WheelSpec::new("x_device_gfx906", "0.9").text("y.py", "").write(&input);
    let name = "x-device-gfx906 is in the input, but device wheels get its name";
    split_ends_with(&[&input], &out, 2, name);
    assert!(!out.exists() || names(&out).is_empty());
    let host = WheelSpec::new("x", "0.9").text("x/__init__.py", "");
    host.write(&input);
    split_ends_with(&[&input], &out, 0, "");
}

/// Extras and licences that collide with nothing are kept, and verify agrees.
#[test]
fn other_extras_and_odd_licences_are_kept() {
    support::kpack::need_python();
    let lines = "Provides-Extra: devices\nRequires-Dist: x[device-all]; extra == 'devices'\n\
                 License-File: METADATA\nLicense-File: entry_points.txt\nLicense-File: run.py\n";
    let wheel = plain()
        .info("METADATA", &metadata("x", "1.0", lines))
        .info("entry_points.txt", "[console_scripts]\nx = x:main\n")
        .info("run.py", "#!/bin/sh\n");
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    let wheel = wheel.write(room.path());
    for command in [&mut wheel_command(&[&wheel], &out), rockpack().arg("verify").arg(&out)] {
        let said = told(command);
        assert!(said.ends_with("exit status: 0\n"), "{said}");
    }
}

#[test]
fn arguments_that_are_no_wheels_are_refused() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let folder = room.path();
    let out = folder.join("out");
    let wheel = plain().write(&folder.join("in"));
    let before = contents(&folder.join("in"));
    let twice = "is the same version of the same wheel as";
    split_ends_with(&[&wheel], &folder.join("in"), 64, "is in the output folder");
    split_ends_with(&[&folder.join("in")], &folder.join("in"), 64, "");
    split_ends_with(&[&folder.join("in")], &folder.join("in/out"), 64, "");
    split_ends_with(&[&wheel], &wheel, 64, "");
    split_ends_with(&[&folder.join("absent.whl")], &out, 2, "absent.whl");
    fs::write(folder.join("x.zip"), "").unwrap();
    split_ends_with(&[&folder.join("x.zip")], &out, 64, "neither a wheel nor a folder");
    fs::create_dir(folder.join("empty")).unwrap();
    split_ends_with(&[&folder.join("empty")], &out, 64, "is a folder without wheels");
    let other = plain().text("x/more.py", "").write(&folder.join("other"));
    split_ends_with(&[&wheel, &other], &out, 2, twice);
    let name = other.file_name().unwrap().to_str().unwrap();
    let spelled = folder.join("other").join(name.replace("x-1.0-", "X-1.0.0-"));
    fs::rename(&other, &spelled).unwrap();
    split_ends_with(&[&wheel, &spelled], &out, 2, twice);
    // The same wheel given twice counts once.
    split_ends_with(&[&wheel, &folder.join("in")], &out, 0, "");
    assert!(before == contents(&folder.join("in")));
    // If one of several wheels is refused, all are.
    let bad = WheelSpec::new("bad", "1.0").without_record().write(&folder.join("bad"));
    split_ends_with(&[&wheel, &bad], &folder.join("none"), 2, "bad-1.0");
    assert!(!folder.join("none").exists() || names(&folder.join("none")).is_empty());
}

/// All faults are told. Nothing of a wheel that `--skip-bad` leaves out is written.
#[test]
fn one_bad_wheel_does_not_stop_the_others() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let [input, out] = ["in", "out"].map(|name| room.path().join(name));
    let good = plain().write(&input);
    let row = "b/__init__.py,sha256=";
    WheelSpec::new("b", "1.0")
        .text("b/__init__.py", "")
        .edit(&format!("{row}4"), &format!("{row}5"))
        .write(&input);
    // Its device wheels have the names of those of x, which shows when its host wheel is there.
    WheelSpec::new("y", "1.0").file("y/_C.so", &library()).write(&input);
    let bad = WheelSpec::new("a", "1.0").without_record().write(&input);
    let split = |options: &[&str]| {
        let mut command = wheel_command(&[&input], &out);
        told(command.args(["--device-name", "acme-{group}"]).args(options))
    };
    let faults = [
        "has no a-1.0.dist-info/RECORD",
        "(b/__init__.py): has another sha256",
        "two packages would both be written to acme_gfx",
    ];
    for (options, code) in [(&[][..], 2), (&["--skip-bad"][..], 1)] {
        assert!(!out.exists() || names(&out).is_empty());
        let said = split(options);
        assert!(said.ends_with(&format!("exit status: {code}\n")), "{said}");
        assert!(faults.iter().all(|fault| said.contains(fault)), "{said}");
        assert_eq!(
            said.matches("R058").count(),
            if code == 1 { faults.len() } else { 0 },
            "{said}"
        );
    }
    let made = names(&out);
    assert!(
        made.iter().all(|name| ["x-", "acme_", "wheels"].iter().any(|it| name.starts_with(it)))
    );
    verifies(&out, &[good]);
    // Two of one name hide no other fault, and neither is left out.
    let double = plain().text("x/more.py", "").write(&room.path().join("more"));
    let said = told(wheel_command(&[&input, &double], &out).arg("--skip-bad"));
    assert!(said.ends_with("exit status: 2\n") && said.contains("is the same version"), "{said}");
    assert!(said.contains(faults[0]) && names(&out) == made, "{said}");
    // Nothing is left.
    let none = room.path().join("none");
    let said = told(wheel_command(&[&bad], &none).arg("--skip-bad"));
    assert!(said.ends_with("exit status: 2\n") && said.contains(faults[0]), "{said}");
    assert!(!none.exists() || names(&none).is_empty());
}

fn split_ends_with(wheels: &[&Path], out: &Path, code: i32, words: &str) {
    let said = told(&mut wheel_command(wheels, out));
    assert!(said.ends_with(&format!("exit status: {code}\n")), "{words}: {said}");
    assert!(said.contains(words), "{words}: {said}");
}

#[test]
fn settings_that_make_no_wheels_are_refused() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let wheel = plain().write(&room.path().join("in"));
    let (out, config) = (room.path().join("out"), room.path().join("config.toml"));
    for pattern in ["{name}-device", "{group}-", "a b{group}", "{name}/{group}", "{Group}"] {
        options_are_refused(&wheel, &out, &["--device-name", pattern], "--device-name");
    }
    options_are_refused(&wheel, &out, &["--archive-level", "23"], "23 is not in 1..=22");
    // The name equals that of the host wheel with the group inserted.
    let own = WheelSpec::new("x-gfx906", "1.0").file("x/_C.so", &library());
    let own = own.write(&room.path().join("own"));
    let said = told(wheel_command(&[&own], &out).args(["--device-name", "x_{group}"]));
    assert!(said.ends_with("exit status: 2\n") && said.contains("x-gfx906"), "{said}");
    let keys = [
        "device_name = \"{name}\"",
        "host_requires = [\"a\\nProvides-Extra: device-gfx906\"]",
        "device_requires = [\"\"]",
        "host_requires = [\"rocm-{group} == 1\"]",
    ];
    for key in keys {
        fs::write(&config, format!("[wheels]\n{key}\n")).unwrap();
        let name = key.split(' ').next().unwrap();
        options_are_refused(&wheel, &out, &["--config", config.to_str().unwrap()], name);
    }
}

fn options_are_refused(wheel: &Path, out: &Path, options: &[&str], words: &str) {
    let said = told(wheel_command(&[wheel], out).args(options));
    assert!(said.ends_with("exit status: 64\n"), "{options:?}: {said}");
    assert!(said.contains(words), "{options:?}: {said}");
    assert!(!out.exists() || names(out).is_empty(), "{options:?}");
}
