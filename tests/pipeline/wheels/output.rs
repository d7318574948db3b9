//! The output folder before and after a run.

use std::fs;

use support::example::{contents, names};
use support::fat_wheels::{WheelSpec, library, of_shard, wheel_command};
use support::tools::{said, told};

#[test]
fn an_earlier_set_is_replaced_and_other_files_stay() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let (out, at) = (room.path().join("out"), |name: &str| room.path().join(name));
    fs::create_dir(&out).unwrap();
    let foreign = ["torch-2.0-py3-none-any.whl", "notes.txt", "x_1.0-1_amd64.deb", "packages.txt"];
    for name in foreign {
        fs::write(out.join(name), name).unwrap();
    }
    let first = WheelSpec::new("x", "1.0").file("x/_C.so", &library()).write(&at("1"));
    let text = said(&mut wheel_command(&[&first], &out));
    let next = format!(" in {0}; publish them with `rockpack repo {0} --out REPO`", out.display());
    assert!(text.contains(&next), "{text}");
    let before = names(&out);
    let second = of_shard(2, "lib/libexblas.so.1.2");
    let second = WheelSpec::new("x", "2.0").file("x/_C.so", &second).write(&at("2"));
    let text = said(&mut wheel_command(&[&second], &out));
    assert!(text.contains("x_device_gfx1100-1.0-"), "{text}");
    let after = names(&out);
    for name in foreign {
        assert_eq!(fs::read(out.join(name)).unwrap(), name.as_bytes());
    }
    let first = wheel_count(&before, "x-1.0-") + wheel_count(&before, "-1.0-py3-none-many");
    assert_eq!((first, wheel_count(&before, "-2.0-")), (6, 1));
    assert_eq!((wheel_count(&after, "-1.0-"), wheel_count(&after, "-2.0-")), (0, 1 + 4));
    // A failing run leaves the folder unchanged.
    let kept = contents(&out);
    let bad = WheelSpec::new("bad", "1.0").without_record().write(&at("bad"));
    let said = told(&mut wheel_command(&[&second, &bad], &out));
    assert!(said.ends_with("exit status: 2\n"), "{said}");
    assert!(contents(&out) == kept);
}

fn wheel_count(names: &std::collections::BTreeSet<String>, version: &str) -> usize {
    names.iter().filter(|name| name.contains(version) && name.ends_with(".whl")).count()
}

#[test]
fn files_in_the_way_are_not_written_over() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    fs::create_dir(&out).unwrap();
    let wheel =
        WheelSpec::new("x", "1.0").file("x/_C.so", &library()).write(&room.path().join("in"));
    // No receipt claims this file.
    let name = wheel.file_name().unwrap();
    fs::write(out.join(name), "another").unwrap();
    let said = told(&mut wheel_command(&[&wheel], &out));
    assert!(said.ends_with("exit status: 2\n") && said.contains("x-1.0-"), "{said}");
    assert_eq!(fs::read(out.join(name)).unwrap(), b"another");
    assert_eq!(names(&out).len(), 1, "{:?}", names(&out));
    // This receipt is not valid.
    fs::remove_file(out.join(name)).unwrap();
    fs::write(out.join("wheels.json"), "{}").unwrap();
    let said = told(&mut wheel_command(&[&wheel], &out));
    assert!(!said.ends_with("exit status: 0\n") && said.contains("wheels.json"), "{said}");
    assert_eq!(fs::read(out.join("wheels.json")).unwrap(), b"{}");
}

#[test]
fn the_receipt_says_what_is_there() {
    support::kpack::need_python();
    let made = super::made();
    let receipt = made.receipt();
    let wheels = made.wheels();
    let records = receipt["wheels"].as_array().unwrap();
    assert_eq!(records.len(), wheels.len());
    assert_eq!(records[0]["role"], "host");
    for record in records {
        let name = record["file_name"].as_str().unwrap();
        let bytes = fs::read(made.out().join(name)).unwrap();
        assert_eq!(record["size"], bytes.len());
        assert_eq!(record["sha256"], support::sha256(&bytes).as_str());
        assert_eq!(record["made_of"], made.fat.file_name().unwrap().to_str().unwrap());
        let (last, own) = wheels[name].members.split_last().unwrap();
        assert!(last["name"].as_str().unwrap().ends_with("/RECORD"), "{name}");
        let size: u64 = own.iter().map(|member| member["size"].as_u64().unwrap()).sum();
        assert_eq!(record["installed_size"], size, "{name}");
    }
}

/// The headers are as PyPI, pip and uv require.
#[test]
fn archives_are_plain() {
    support::kpack::need_python();
    for (file, wheel) in super::made().wheels() {
        assert_eq!(wheel.value["whole"], true, "{file}");
        assert_eq!(wheel.value["comment"], "", "{file}");
        let mut at = 0;
        for member in &wheel.members {
            let local = &member["local"];
            assert_eq!(member["start"], at, "{file} {member}");
            at = member["end"].as_u64().unwrap();
            assert_eq!(
                (&member["extra"], &local["extra"]),
                (&0.into(), &0.into()),
                "{file} {member}"
            );
            assert_eq!(member["comment"], "", "{file} {member}");
            let is_ascii = member["name"].as_str().unwrap().is_ascii();
            let flags = if is_ascii { 0 } else { 1 << 11 };
            assert_eq!(
                (&member["flags"], &local["flags"]),
                (&flags.into(), &flags.into()),
                "{member}"
            );
            for field in ["crc", "size", "compressed"] {
                assert_eq!(member[field], local[field], "{file} {member}");
            }
            assert_eq!(member["system"], 3, "{file} {member}");
            let mode = member["mode"].as_u64().unwrap();
            assert!([0o100_644, 0o100_755].contains(&mode), "{file} {member}");
        }
        assert_eq!(wheel.value["directory"], at, "{file}");
        let program = file.starts_with("x-").then(|| &wheel.member("x/bin/tune")["mode"]);
        assert!(program.is_none_or(|mode| *mode == 0o100_755), "{file}");
    }
}
