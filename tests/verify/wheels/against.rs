//! Split wheels beside the fat one: all of it is there, and nothing else.

use support::program::rockpack;
use support::tampered::section;
use support::tools;
use support::wheels::WheelFile;

use super::*;
use crate::signed::Signer;

/// The set beside the fat wheel.
#[track_caller]
fn fires(wheels: &Wheels, codes: &[&str], words: &[&str]) {
    let run = wheels.verify(&["--against", fat().to_str().unwrap()]);
    run.fired(codes);
    says(&run, words);
}

#[test]
fn a_set_passes_beside_its_fat_wheel() {
    let run = Wheels::new().verify(&["--against", fat().to_str().unwrap()]);
    run.fired(&[]);
    let json: serde_json::Value = serde_json::from_str(&run.text).unwrap();
    assert!(json["input_code_objects"].as_u64().unwrap() > 0, "{}", run.text);
}

#[test]
fn v013_a_file_is_lost_or_another() {
    let index = format!("{DATABASE}/TensileLibrary_fallback.dat");
    let wheels = Wheels::new();
    wheels.edit(HOST, |host| drop(host.files.remove("libexec/exblas/exblas-tune")));
    fires(
        &wheels,
        &["V013", "V034"],
        &["/libexec/exblas/exblas-tune", "is in no package as a host binary"],
    );
    let name = format!("{DATABASE}/Kernels.so-000-gfx1101.hsaco");
    let wheels = Wheels::new();
    wheels.edit(&device("gfx1101"), |wheel| drop(wheel.files.remove(&name)));
    fires(&wheels, &["V010", "V013"], &[&name, "is in no package"]);
    let wheels = Wheels::new();
    wheels.edit(HOST, |host| {
        if host.files.contains_key(&index) {
            host.files.get_mut(&index).unwrap().mode = 0o100_755;
        }
        let library = host.files.get_mut(LIBRARY).unwrap();
        library.mode = 0o100_755;
    });
    fires(&wheels, &["V013"], &[LIBRARY, "with mode 755"]);
}

#[test]
fn v013_modes_without_a_type_are_those_of_plain_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut other = LooseWheel::read(&fat());
    other.files.get_mut(LIBRARY).unwrap().mode = 0o755;
    let other = other.write(folder.path());
    for (mode, codes) in [(0o100_755, ["V013"].as_slice()), (0o755, &[]), (0o100_644, &[])] {
        let wheels = Wheels::new();
        wheels.edit(HOST, |host| host.files.get_mut(LIBRARY).unwrap().mode = mode);
        wheels.verify(&["--against", other.to_str().unwrap()]).fired(codes);
    }
}

#[test]
fn v013_a_byte_of_a_host_binary_is_another() {
    let wheels = Wheels::new();
    wheels.edit(HOST, |host| {
        let library = host.files.get_mut(LIBRARY).unwrap();
        let (at, _) = section(&library.bytes, ".rodata");
        library.bytes[at] ^= 1;
    });
    fires(&wheels, &["V013"], &[LIBRARY]);
}

#[test]
fn v013_licences_and_entry_points_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut fat = LooseWheel::read(&fat());
    fat.add(&fat.info("entry_points.txt"), "[console_scripts]\n");
    fat.add(&fat.info("licenses/LICENSE"), "MIT\n");
    let fat = fat.write(folder.path());
    let wheels = Wheels::new();
    let run = wheels.verify(&["--against", fat.to_str().unwrap()]);
    run.fired(&["V013"]);
    says(&run, &["entry_points.txt", "is in no package"]);
    wheels.edit(HOST, |host| {
        host.add(&host.info("entry_points.txt"), "[console_scripts]\n");
        host.add(&host.info("licenses/LICENSE"), "MIT\n");
    });
    for (licence, codes) in [("other\n", ["V101"].as_slice()), ("MIT\n", &[])] {
        wheels.edit(&device("gfx1100"), |wheel| {
            wheel.add(&wheel.info("licenses/LICENSE"), licence);
        });
        wheels.verify(&["--against", fat.to_str().unwrap()]).fired(codes);
    }
    wheels.verify(&["--against", fat.to_str().unwrap()]).fired(&[]);
    wheels.edit(HOST, |host| host.add(&host.info("entry_points.txt"), "[others]\n"));
    let run = wheels.verify(&["--against", fat.to_str().unwrap()]);
    run.fired(&["V013"]);
}

#[test]
fn v013_metadata_have_all_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mut fat = LooseWheel::read(&fat());
    let metadata = fat.info("METADATA");
    fat.add(&metadata, fat.text(&metadata) + "License: MIT\n");
    let fat = fat.write(folder.path());
    let run = Wheels::new().verify(&["--against", fat.to_str().unwrap()]);
    run.fired(&["V013"]);
    says(&run, &["METADATA", "other content"]);
}

#[test]
fn v010_and_v011_code_objects_are_those_of_the_fat_wheel() {
    let folder = tempfile::tempdir().unwrap();
    let mut other = LooseWheel::read(&fat());
    // The device code of another build: a byte in the code of gfx1100.
    let library = other.files.get_mut(LIBRARY).unwrap();
    let (start, size) = section(&library.bytes, ".hip_fatbin");
    let text = &library.bytes[start..start + size];
    let at = text.windows(4).rposition(|window| window == b"\x7fELF").unwrap();
    library.bytes[start + at + 64 + 56 * 8] ^= 1;
    let other = other.write(folder.path());
    let run = Wheels::new().verify(&["--against", other.to_str().unwrap()]);
    assert!(run.codes().contains(&"V010".to_owned()), "{}", run.text);
    assert!(run.codes().contains(&"V011".to_owned()), "{}", run.text);
}

#[test]
fn v101_what_no_fat_wheel_has() {
    for distribution in [HOST.to_owned(), device("gfx1100")] {
        let wheels = Wheels::new();
        wheels.edit(&distribution, |wheel| {
            let file = WheelFile { bytes: b"text\n".to_vec(), mode: 0o100_644 };
            wheel.files.insert("lib/evil.txt".to_owned(), file);
        });
        fires(&wheels, &["V101"], &["/lib/evil.txt"]);
    }
}

#[test]
fn v101_v111_and_v013_texts_are_those_of_the_fat_wheel() {
    let (device, fat) = (device("gfx1100"), LooseWheel::read(&fat()));
    let other = fat.text(&fat.info("WHEEL"));
    for (distribution, file, old, new, codes) in [
        (HOST, "direct_url.json", "", "{}", ["V101"].as_slice()),
        // The fat wheel has this text under another name.
        (&device, "NOTICE", "", &other, &["V101"]),
        (&device, "entry_points.txt", "", "[console_scripts]", &["V098", "V101"]),
        (&device, "top_level.txt", "", "x", &["V101"]),
        (HOST, "METADATA", "", "Requires-Dist: evil\n", &["V111"]),
        (HOST, "METADATA", "", "Requires-Dist: evil == 1; extra == 'device-gfx906'\n", &["V111"]),
        (&device, "METADATA", "", "Requires-Dist: evil\n", &["V111"]),
        (&device, "METADATA", "", "Requires-Dist: evil[device-gfx1100]\n", &["V111"]),
        (&device, "METADATA", "", "requires-dist: evil == 1; extra == 'x'\n", &["V111"]),
        (&device, "METADATA", "", "Requires-Dist: evil @ https://evil.example/e.whl\n", &["V111"]),
        (&device, "METADATA", "", "Provides-Extra: more\n", &["V111"]),
        (&device, "METADATA", "", "Home-page: https://evil.example\n", &["V111"]),
        (
            HOST,
            "METADATA",
            "",
            "Requires-Dist: evil[device-gfx906]; extra == 'device-gfx906'\n",
            &["V111"],
        ),
        (HOST, "METADATA", "", "Provides-Extra: more\n", &["V111"]),
        (
            HOST,
            "METADATA",
            "extra == \"device-gfx1100\"",
            "extra == \"device-gfx1100\" or os_name == \"posix\"",
            &["V111"],
        ),
        (HOST, "METADATA", "", "\nRequires-Dist: evil\n", &["V013"]),
        (HOST, "METADATA", "\nVersion:", "\nRequires-Dist: evil\nVersion:", &["V013"]),
        (HOST, "WHEEL", "", "Generator: x\n", &["V013"]),
    ] {
        let wheels = Wheels::new();
        wheels.edit(distribution, |wheel| {
            let path = wheel.info(file);
            let before =
                if wheel.files.contains_key(&path) { wheel.text(&path) } else { String::new() };
            let added = || before.clone() + new;
            let text = if old.is_empty() { added() } else { before.replace(old, new) };
            wheel.add(&path, text);
        });
        fires(&wheels, codes, &[file]);
    }
}

#[test]
fn what_is_installed_elsewhere_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("ex_blas-{VERSION}.data/scripts/tool");
    let mut fat = LooseWheel::read(&fat());
    fat.add(&script, "#!python\n");
    let fat = fat.write(folder.path());
    let wheels = Wheels::new();
    let run = wheels.verify(&["--against", fat.to_str().unwrap()]);
    run.fired(&["V013"]);
    says(&run, &["/.data/scripts/tool"]);
    wheels.edit(HOST, |host| host.add(&script, "#!python\n"));
    wheels.verify(&["--against", fat.to_str().unwrap()]).fired(&[]);
    fires(&wheels, &["V101"], &["/.data/scripts/tool"]);
}

#[test]
fn a_set_is_compared_with_the_wheel_of_its_name() {
    let wheels = Wheels::new();
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other-1.0-py3-none-any.whl");
    fs::copy(fat(), &other).unwrap();
    let run = wheels.verify(&["--against", other.to_str().unwrap()]);
    assert_eq!(run.status, 64, "{}", run.text);
    assert!(run.text.contains("has the file name of this fat wheel"), "{}", run.text);
    let artifacts = tools::repository("examples/shards");
    let run = wheels.verify(&["--against", artifacts.to_str().unwrap()]);
    assert_eq!(run.status, 64, "{}", run.text);
    let run = verify(&[artifacts.to_str().unwrap()], &["--against", fat().to_str().unwrap()]);
    assert_eq!(run.status, 64, "{}", run.text);
}

/// The output of `rockpack wheel` for the fat wheel.
pub(super) fn written() -> (TempDir, PathBuf) {
    written_by("")
}

/// The wheels that `rockpack wheel` writes with this configuration.
fn written_by(config: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (out, file) = (folder.path().join("out"), folder.path().join("rockpack.toml"));
    fs::write(&file, config).unwrap();
    tools::run(rockpack().arg("wheel").arg(fat()).arg("--config").arg(file).arg("--out").arg(&out));
    (folder, out)
}

#[test]
fn what_wheel_writes_passes() {
    let (_folder, out) = written();
    let out = out.to_str().unwrap();
    verify(&[out], &[]).fired(&[]);
    // By its folder.
    verify(&[out], &["--against", fat().parent().unwrap().to_str().unwrap()]).fired(&[]);
    let receipt = Path::new(out).join("wheels.json");
    fs::remove_file(receipt).unwrap();
    verify(&[out], &["--against", fat().to_str().unwrap()]).fired(&[]);
}

#[test]
fn what_the_configuration_adds_is_in_a_signed_receipt() {
    let config = "[wheels]\nhost_requires = ['numpy>=2']\ndevice_requires = ['x-{group}', 'y']\n";
    let (_folder, out) = written_by(config);
    let fat = fat();
    let against = ["--against", fat.to_str().unwrap()];
    let wheels = [out.to_str().unwrap()];
    let run = verify(&wheels, &against);
    run.fired(&["V111"]);
    for line in ["numpy>=2", "x-gfx1100", "y"] {
        says(&run, &[&format!("METADATA has `Requires-Dist: {line}`")]);
    }
    let own = Signer::new("own");
    own.sign(&out.join("wheels.json"));
    verify(&wheels, &[against, own.option()].concat()).fired(&[]);
}

#[test]
fn v002_and_v003_the_receipt_names_the_wheels() {
    let (_folder, out) = written();
    let wheels = [out.to_str().unwrap()];
    let wheel = out.join(file_name(&device("gfx1100")));
    let mut loose = LooseWheel::read(&wheel);
    loose.add("lib/note.txt", "x");
    loose.write(&out);
    verify(&wheels, &[]).fired(&["V002"]);
    fs::remove_file(&wheel).unwrap();
    verify(&wheels, &[]).fired(&["V003", "V095"]);
    LooseWheel::new("other-1-py3-none-any.whl", "").write(&out);
    verify(&wheels, &[]).fired(&["V003", "V095"]);
}

#[test]
fn a_wheel_that_was_copied_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let [input, out] = ["in", "out"].map(|name| folder.path().join(name));
    for folder in [&input, &out] {
        fs::create_dir(folder).unwrap();
    }
    let mut plain = LooseWheel::new("plain-1-py3-none-any.whl", "");
    plain.add("plain.py", "print()\n");
    let own = plain.write(&input);
    let (wheels, against) = ([out.to_str().unwrap()], ["--against", own.to_str().unwrap()]);
    plain.write(&out);
    verify(&wheels, &against).fired(&[]);
    plain.add("plain.py", "input()\n");
    plain.write(&out);
    verify(&wheels, &against).fired(&["V013"]);
    plain.write(&input);
    verify(&wheels, &against).fired(&[]);
    // Nobody knows where another wheel is from.
    LooseWheel::new("other-1-py3-none-any.whl", "").write(&out);
    let run = verify(&wheels, &against);
    assert_eq!(run.status, 64, "{}", run.text);
    assert!(run.text.contains("is named other-1-py3-none-any.whl"), "{}", run.text);
}

#[test]
fn a_host_wheel_that_cannot_be_read_is_told() {
    let wheels = Wheels::new();
    fs::write(wheels.path(HOST), "PK").unwrap();
    let run = wheels.verify(&["--against", fat().to_str().unwrap()]);
    run.fired(&["V001", "V097"]);
}
