//! Wheels that cannot be split are refused by name, and nothing is written.

use std::fs;
use std::path::Path;

use support::example::{contents, names};
use support::fat_wheels::{TAGS, WheelSpec, library, wheel_command};
use support::tools::told;

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
    let info = |name: &str| format!("x-1.0.dist-info/{name}");
    refuses(&plain().without_record(), 2, &["has no x-1.0.dist-info/RECORD"]);
    refuses(&plain().without(&info("WHEEL")), 2, &["has no x-1.0.dist-info/WHEEL"]);
    refuses(&plain().without(&info("METADATA")), 2, &["has no x-1.0.dist-info/METADATA"]);
    let bare = plain().without(&info("WHEEL")).without(&info("METADATA"));
    refuses(&bare.without_record(), 2, &["has no dist-info folder"]);
    let two = plain().text("z-1.0.dist-info/METADATA", "");
    refuses(&two, 2, &["two dist-info folders", "x-1.0.dist-info", "z-1.0.dist-info"]);
    let metadata = |text: &str| plain().info("METADATA", text);
    refuses(&metadata("Name: x\nVersion: 1.0\n"), 2, &["METADATA", "has no Metadata-Version"]);
    refuses(&metadata("no field\n"), 2, &["METADATA", "no header field"]);
    refuses(&metadata("Metadata-Version: 3.0\nName: x\nVersion: 1.0\n"), 2, &["3.0"]);
    refuses(&plain().info("WHEEL", "Wheel-Version: 2.0\nRoot-Is-Purelib: true\n"), 2, &["2.0"]);
    refuses(&plain().info("WHEEL", "Wheel-Version: 1.0\n"), 2, &["has no Root-Is-Purelib"]);
}

#[test]
fn another_name_or_version_is_refused() {
    support::kpack::need_python();
    let text = |name: &str, version: &str| support::fat_wheels::metadata(name, version, "");
    refuses(&plain().info("METADATA", &text("z", "1.0")), 2, &["is z 1.0 by its METADATA"]);
    refuses(&plain().info("METADATA", &text("x", "1.1")), 2, &["is x 1.1 by its METADATA"]);
    refuses(&plain().info("METADATA", &text("x", "main")), 2, &["is x main by its METADATA"]);
    let renamed = |file: &str| plain().called(&format!("{file}-{TAGS}.whl"));
    refuses(&renamed("y-1.0"), 2, &["is x 1.0 by its METADATA"]);
    refuses(&renamed("x-main"), 2, &["main", "PEP 440"]);
    let other = renamed("y-1.0").info("METADATA", &text("y", "1.0"));
    refuses(&other, 2, &["has the folder x-1.0.dist-info"]);
    refuses(&plain().called("x-1.0.whl"), 2, &["is no name of a wheel"]);
    let windows = plain().called("x-1.0-cp312-cp312-win_amd64.whl");
    refuses(&windows, 2, &["for Windows", "win_amd64"]);
    // Different spellings of a version are the same version.
    let same = plain().info("METADATA", &text("X", "1"));
    let room = tempfile::tempdir().unwrap();
    let path = same.write(room.path());
    let said = told(&mut wheel_command(&[&path], &room.path().join("out")));
    assert!(said.ends_with("exit status: 0\n"), "{said}");
}

#[test]
fn records_that_say_something_else_are_refused() {
    support::kpack::need_python();
    let empty = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
    let hex = "sha256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let edit = |old: &str, new: &str| plain().edit(old, new);
    let row = format!("x/__init__.py,{empty},0");
    refuses(
        &edit("x/__init__.py,sha256=4", "x/__init__.py,sha256=5"),
        2,
        &["(x/__init__.py)", "another sha256"],
    );
    refuses(
        &edit(&row, &format!("x/__init__.py,{empty},1")),
        2,
        &["(x/__init__.py)", "has 0 bytes"],
    );
    refuses(&edit(empty, hex), 2, &["RECORD", "x/__init__.py", "in hexadecimal"]);
    refuses(&edit(empty, "md5=x"), 2, &["RECORD", "x/__init__.py", "md5"]);
    refuses(&edit(&row, &format!("{row}\n{row}")), 2, &["RECORD", "x/__init__.py twice"]);
    refuses(&edit(&row, "x/__init__.py"), 2, &["RECORD", "1 field"]);
    // The error lists all that differ.
    let both = edit("x/__init__.py,sha256=4", "x/__init__.py,sha256=5")
        .edit("x/_C.so,sha256=", "x/_C.so,sha512=");
    refuses(&both, 2, &["RECORD"]);
}

#[test]
fn members_that_no_installer_puts_there_are_refused() {
    support::kpack::need_python();
    let with = |name: &str| plain().text(name, "x");
    for name in ["../x", "x/../../y", "/etc/x", "x//y", "./x", "x/."] {
        refuses(&with(name), 2, &["no path inside the wheel", name]);
    }
    refuses(&with("x\\y"), 2, &["backslash"]);
    refuses(&with("x/same.py").text("x/same.py", "y"), 2, &["has the member x/same.py twice"]);
    let link = with("x/link").set("x/link", "mode", 0o120_777);
    refuses(&link, 2, &["(x/link)", "symbolic link"]);
    let pipe = with("x/pipe").set("x/pipe", "mode", 0o10_644);
    refuses(&pipe, 2, &["(x/pipe)", "no regular file"]);
    let folder = with("x/folder/").set("x/folder/", "mode", 0o40_755);
    refuses(&folder, 2, &["(x/folder/)", "has content"]);
    // One path for two files, and a file in place of a folder.
    let twice = with("x-1.0.data/platlib/x/__init__.py");
    refuses(&twice, 2, &["(x/__init__.py)", "as x-1.0.data/platlib/x/__init__.py is"]);
    let below = with("x/__init__.py/more.py");
    refuses(&below, 2, &["(x/__init__.py)", "other members lie below it"]);
    let script = plain().file("x-1.0.data/scripts/fat", &library());
    refuses(&script, 2, &["x-1.0.data/scripts/fat", "has device code"]);
    let hidden = plain().file("x-1.0.dist-info/fat.so", &library());
    refuses(&hidden, 2, &["x-1.0.dist-info/fat.so", "has device code"]);
    let placeholder = WheelSpec::new("x", "1.0").file("@GFXARCH@/_C.so", &library());
    refuses(&placeholder, 2, &["the folder @GFXARCH@"]);
    let mut pe = String::from("MZ") + &"\0".repeat(0x3a) + "\x40\0\0\0PE\0\0";
    pe.push_str("more");
    refuses(&with("x/x.dll").set("x/x.dll", "text", pe), 2, &["(x/x.dll)", "is a PE file"]);
}

#[test]
fn extras_that_are_there_are_refused() {
    support::kpack::need_python();
    let lines = "Provides-Extra: Device_GFX906\n";
    let text = support::fat_wheels::metadata("x", "1.0", lines);
    refuses(&plain().info("METADATA", &text), 2, &["has an extra device-gfx906 already"]);
    let lines = "Requires-Dist: foo; extra == 'device-gfx906' and os_name == 'posix'\n";
    let text = support::fat_wheels::metadata("x", "1.0", lines);
    refuses(&plain().info("METADATA", &text), 2, &["has an extra device-gfx906 already"]);
}

#[test]
fn arguments_that_are_no_wheels_are_refused() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let at = |name: &str| room.path().join(name);
    let wheel = plain().write(&at("in"));
    let says = |wheels: &[&Path], out: &Path, code: i32, words: &str| {
        let said = told(&mut wheel_command(wheels, out));
        assert!(said.ends_with(&format!("exit status: {code}\n")), "{words}: {said}");
        assert!(said.contains(words), "{words}: {said}");
    };
    let before = contents(&at("in"));
    says(&[&wheel], &at("in"), 64, "is in the output folder");
    says(&[&at("in")], &at("in"), 64, "");
    says(&[&at("in")], &at("in/out"), 64, "");
    says(&[&wheel], &wheel, 64, "");
    says(&[&at("absent.whl")], &at("out"), 2, "absent.whl");
    fs::write(at("x.zip"), "").unwrap();
    says(&[&at("x.zip")], &at("out"), 64, "neither a wheel nor a folder");
    fs::create_dir(at("empty")).unwrap();
    says(&[&at("empty")], &at("out"), 64, "is a folder without wheels");
    let other = plain().text("x/more.py", "").write(&at("other"));
    says(&[&wheel, &other], &at("out"), 2, "is the same version of the same wheel as");
    let name = other.file_name().unwrap().to_str().unwrap();
    let spelled = at("other").join(name.replace("x-1.0-", "X-1.0.0-"));
    fs::rename(&other, &spelled).unwrap();
    says(&[&wheel, &spelled], &at("out"), 2, "is the same version of the same wheel as");
    // The same wheel given twice counts once.
    says(&[&wheel, &at("in")], &at("out"), 0, "");
    assert!(before == contents(&at("in")));
    // If one of several wheels is refused, all are.
    let bad = WheelSpec::new("bad", "1.0").without_record().write(&at("bad"));
    says(&[&wheel, &bad], &at("none"), 2, "bad-1.0");
    assert!(!at("none").exists() || names(&at("none")).is_empty());
}

#[test]
fn settings_that_make_no_wheels_are_refused() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let wheel = plain().write(&room.path().join("in"));
    let (out, config) = (room.path().join("out"), room.path().join("config.toml"));
    let says = |options: &[&str], code: i32, words: &str| {
        let said = told(wheel_command(&[&wheel], &out).args(options));
        assert!(said.ends_with(&format!("exit status: {code}\n")), "{options:?}: {said}");
        assert!(said.contains(words), "{options:?}: {said}");
        assert!(!out.exists() || names(&out).is_empty(), "{options:?}");
    };
    for pattern in ["{name}-device", "{group}-", "a b{group}", "{name}/{group}", "{Group}"] {
        says(&["--device-name", pattern], 64, "--device-name");
    }
    says(&["--archive-level", "23"], 64, "no level of zstd");
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
        says(&["--config", config.to_str().unwrap()], 64, name);
    }
}
