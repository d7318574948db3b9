//! Wheels where they are installed, beside RECORD.

use std::collections::BTreeSet;

use support::tampered::Archive;

use super::together::installed;
use super::*;

/// A file of `dist-info`.
fn info(distribution: &str, file: &str) -> String {
    LooseWheel::new(&file_name(distribution), "").info(file)
}

#[test]
fn v093_each_file_is_as_record_says() {
    let (wheels, gfx1100) = (Wheels::new(), device("gfx1100"));
    wheels.edit(HOST, |host| {
        host.add("lib/ex_blas.py", "import os\n");
        host.add("lib/gone.py", "");
        host.add(&host.info("licenses/LICENSE"), "MIT\n");
    });
    let folder = installed(&wheels, &[HOST.to_owned(), gfx1100.clone()]);
    let mut changed = BTreeSet::from([
        LIBRARY.to_owned(),
        "lib/ex_blas.py".to_owned(),
        archive("gfx1100"),
        format!("{DATABASE}/TensileLibrary_gfx1100.co"),
        info(HOST, "METADATA"),
        info(HOST, "licenses/LICENSE"),
        info(&gfx1100, "METADATA"),
        info(&gfx1100, "WHEEL"),
    ]);
    for path in changed.iter().map(|path| folder.path().join(path)) {
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(path, bytes).unwrap();
    }
    fs::remove_file(folder.path().join("lib/gone.py")).unwrap();
    let stray = archive("gfx1101");
    fs::copy(folder.path().join(archive("gfx1100")), folder.path().join(&stray)).unwrap();
    changed.extend(["lib/gone.py".to_owned(), stray]);
    let run = verify(&[folder.path().to_str().unwrap()], &["--installed"]);
    let problems = run.problems();
    let named = problems.iter().filter(|problem| problem["code"] == "V093");
    let named = named.map(|it| it["file"]["path"].as_str().unwrap()[1..].to_owned());
    assert_eq!(named.collect::<BTreeSet<_>>(), changed, "{}", run.text);
    for (path, words) in [
        (LIBRARY, "has another sha256 than RECORD says"),
        ("lib/gone.py", "is in RECORD, and not there"),
        (&archive("gfx1101"), "is in no RECORD"),
    ] {
        says(&run, &[path, words]);
    }
}

#[test]
fn byte_code_and_other_distributions_may_differ_from_record() {
    let wheels = Wheels::new();
    let folder = installed(&wheels, &[HOST.to_owned(), device("gfx1100")]);
    let record = folder.path().join(info(HOST, "RECORD"));
    let rows = fs::read_to_string(&record).unwrap();
    fs::write(&record, rows + "lib/__pycache__/a.cpython-312.pyc,,\n").unwrap();
    for (other, rows) in [("one-1", "gone.py,,\n"), ("two-1", "no row")] {
        let other = folder.path().join(format!("{other}.dist-info"));
        fs::create_dir(&other).unwrap();
        fs::write(other.join("RECORD"), rows).unwrap();
    }
    verify(&[folder.path().to_str().unwrap()], &["--installed"]).fired(&[]);
    // A RECORD that cannot be read says nothing of the files.
    fs::write(&record, "a").unwrap();
    let run = verify(&[folder.path().to_str().unwrap()], &["--installed"]);
    run.fired(&["V001"]);
    says(&run, &["RECORD"]);
}

#[test]
fn v034_a_wrapper_of_an_archive_is_not_there() {
    let (wheels, gfx1100) = (Wheels::new(), device("gfx1100"));
    let (one, other) = (format!("{LIBRARY}#1"), format!("{LIBRARY}#2"));
    wheels.edit(&gfx1100, |wheel| {
        let (folder, name) = (tempfile::tempdir().unwrap(), archive("gfx1100"));
        let path = folder.path().join("a.kpack");
        fs::write(&path, &wheel.files[&name].bytes).unwrap();
        Archive::edit(&path, |archive| archive.rename(&one, &other));
        wheel.add(&name, fs::read(&path).unwrap());
    });
    wheels.fires(&["V034"], &[&other]);
    let folder = installed(&wheels, &[HOST.to_owned(), gfx1100]);
    let run = verify(&[folder.path().to_str().unwrap()], &["--installed"]);
    run.fired(&["V034"]);
    says(&run, &[&other]);
}
