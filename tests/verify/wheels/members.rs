//! RECORD against the members, and members that cannot be installed.

use support::wheels::{WheelFile, archive as zip};

use super::*;

/// Spoils a row of RECORD.
type Change = fn(&str) -> String;

#[test]
fn v093_record_lists_the_members_as_they_are() {
    let rows: [(&str, Change, &str); 4] = [
        (".kpack,", |_| String::new(), "is not in RECORD"),
        (".kpack,", |row| format!("{}1", row), "bytes, and RECORD says"),
        ("RECORD,", |_| String::new(), "has no row of itself"),
        ("RECORD,", |row| row.replace(",,", ",,7"), "has a digest or size of itself"),
    ];
    for (which, change, words) in rows {
        changed_record(which, change).fires(&["V093"], &[words]);
    }
    let bare = |row: &str| format!("{},,", row.split(',').next().unwrap());
    changed_record(".kpack,", bare).fires(&["V093"], &["has no digest in RECORD"]);
}

/// A set in which the rows of a device wheel with `which` in them are others.
fn changed_record(which: &str, change: impl Fn(&str) -> String) -> Wheels {
    let wheels = Wheels::new();
    wheels.edit_as_is(&device("gfx1100"), |wheel| {
        let record = wheel.info("RECORD");
        let text = wheel.text(&record);
        let row = |row: &str| if row.contains(which) { change(row) } else { row.to_owned() };
        let rows = text.lines().map(row).filter(|row| !row.is_empty());
        wheel.add(&record, rows.collect::<Vec<_>>().join("\n"));
    });
    wheels
}

#[test]
fn v093_bytes_and_members_that_record_does_not_know() {
    let text = format!("{DATABASE}/note.txt");
    for hash in ["sha256", "sha384", "sha512"] {
        let wheels = Wheels::new();
        wheels.edit_as_is(&device("gfx1100"), |wheel| {
            let len = match hash {
                "sha256" => 43,
                "sha384" => 64,
                _ => 86,
            };
            let record = wheel.info("RECORD");
            let row = format!("{text},{hash}={},1\n", "A".repeat(len));
            wheel.add(&record, wheel.text(&record) + &row);
            wheel.add(&text, "x");
        });
        wheels.fires(&["V093"], &["note.txt", &format!("has another {hash} than RECORD says")]);
    }
    let wheels = Wheels::new();
    wheels.edit_as_is(HOST, |host| host.add("lib/more.py", "import os\n"));
    wheels.fires(&["V093"], &["/lib/more.py", "is not in RECORD"]);
    let wheels = Wheels::new();
    wheels.edit_as_is(HOST, |host| {
        let record = host.info("RECORD");
        host.add(&record, host.text(&record) + "lib/gone.py,,\n");
    });
    wheels.fires(&["V093"], &["/lib/gone.py", "is in RECORD, and not in the wheel"]);
}

#[test]
fn v093_signatures_of_another_record() {
    let wheels = Wheels::new();
    wheels.edit_as_is(HOST, |host| host.add(&host.info("RECORD.jws"), "{}"));
    wheels.fires(&["V093"], &["RECORD.jws", "signs the RECORD of the wheel that was split"]);
}

#[test]
fn v098_members_that_nobody_can_install() {
    let wheels = Wheels::new();
    wheels.edit(HOST, |host| {
        let link = WheelFile { bytes: b"libexblas.so.1.2".to_vec(), mode: 0o120_777 };
        host.files.insert("lib/libexblas.so".to_owned(), link);
    });
    wheels.fires(&["V098"], &["/lib/libexblas.so", "is a symbolic link"]);
    for name in ["../evil.py", "/evil.py", "a/../../evil.py"] {
        let wheels = Wheels::new();
        wheels.edit(HOST, |host| host.add(name, ""));
        let run = wheels.verify(&[]);
        assert!(run.codes().contains(&"V001".to_owned()), "{}", run.text);
        says(&run, &["evil.py", "is not a path inside the wheel"]);
    }
    for name in ["other-1.0.data/purelib/more.py", "ex_blas-1.0+rocm7.1.data/odd/more.py"] {
        let wheels = Wheels::new();
        wheels.edit(HOST, |host| host.add(name, ""));
        wheels.fires(&["V098"], &["more.py", "by which nothing is installed"]);
    }
}

#[test]
fn v098_device_wheels_have_nothing_that_is_run() {
    let scripts = format!("ex_blas_device_gfx1100-{VERSION}.data/scripts/tool");
    let info = LooseWheel::new(&file_name(&device("gfx1100")), "").info("entry_points.txt");
    for (path, text) in [
        ("lib/evil.py", "import os\n"),
        ("evil.pth", "import os\n"),
        ("lib/run", "#!/bin/sh\n"),
        (&scripts, "text"),
        (&info, "[console_scripts]\n"),
    ] {
        let wheels = Wheels::new();
        wheels.edit(&device("gfx1100"), |wheel| wheel.add(path, text));
        wheels.fires(&["V098"], &["is run by Python or a shell"]);
    }
}

#[test]
fn v001_a_member_that_is_there_twice_or_damaged() {
    let wheels = Wheels::new();
    let loose = wheels.read(&device("gfx1100"));
    let members: Vec<_> = loose.files.iter().map(|(path, file)| (path.as_str(), file)).collect();
    let twice = zip(members.iter().chain(&members[..1]).copied());
    fs::write(wheels.path(&device("gfx1100")), twice).unwrap();
    let run = wheels.verify(&[]);
    assert!(run.codes().contains(&"V001".to_owned()), "{}", run.text);
    says(&run, &["twice"]);
    let mut bytes = zip(members.into_iter());
    let name = archive("gfx1100");
    let at = bytes.windows(name.len()).position(|window| window == name.as_bytes()).unwrap();
    bytes[at + name.len() + 100] ^= 1;
    fs::write(wheels.path(&device("gfx1100")), bytes).unwrap();
    let run = wheels.verify(&[]);
    assert!(run.codes().contains(&"V001".to_owned()), "{}", run.text);
    says(&run, &["is damaged"]);
}

#[test]
fn v040_a_path_that_two_members_are_installed_at() {
    let wheels = Wheels::new();
    wheels.edit(HOST, |host| {
        let inside = format!("ex_blas-{VERSION}.data/platlib/{LIBRARY}");
        let library = host.files[LIBRARY].clone();
        host.files.insert(inside, library);
    });
    wheels.fires(&["V040"], &[LIBRARY]);
    let wheels = Wheels::new();
    wheels.edit(HOST, |host| {
        host.add("lib/more.txt", "");
        host.add(&format!("ex_blas-{VERSION}.data/platlib/lib/more.txt/below.txt"), "");
    });
    wheels.fires(&["V040"], &["/lib/more.txt", "as a file and as a folder"]);
}

#[test]
fn what_is_installed_elsewhere_is_in_the_wheel() {
    let wheels = Wheels::new();
    wheels.edit(HOST, |host| {
        let library = host.files.remove(LIBRARY).unwrap();
        host.files.insert(format!("ex_blas-{VERSION}.data/platlib/{LIBRARY}"), library);
        host.add(&format!("ex_blas-{VERSION}.data/scripts/tool"), "#!python\n");
    });
    wheels.fires_nothing();
}
