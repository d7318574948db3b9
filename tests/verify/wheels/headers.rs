//! METADATA and WHEEL beside the file name, and archives that are no wheels.

use super::*;

#[test]
fn v094_texts_say_what_the_file_name_says() {
    for (file, old, new, words) in [
        ("METADATA", "Name: ex_blas_device_gfx1100", "Name: other", "has the name"),
        ("METADATA", "Version: 1.0+rocm7.1", "Version: 1.0", "has the version"),
        ("WHEEL", TAGS, "py3-none-linux_x86_64", "has the tags"),
        ("WHEEL", "Root-Is-Purelib: false", "Root-Is-Purelib: false\nBuild: 2", "has the build"),
    ] {
        let wheels = Wheels::new();
        wheels.edit(&device("gfx1100"), |wheel| wheel.replace(&wheel.info(file), old, new));
        wheels.fires(&["V094"], &[words, file]);
    }
}

#[test]
fn v094_the_folder_of_the_metadata_is_that_of_the_file_name() {
    let wheels = Wheels::new();
    let mut wheel = wheels.read(&device("gfx1100"));
    let (own, other) = (wheel.info(""), "ex_blas_device_gfx1100-2.0.dist-info/");
    let record = wheel.files.remove(&wheel.info("RECORD")).unwrap();
    let text = String::from_utf8(record.bytes).unwrap().replace(&own, other);
    let moved = wheel.files.into_iter().map(|(path, file)| (path.replace(&own, other), file));
    wheel.files = moved.collect();
    wheel.add(&format!("{other}RECORD"), text);
    wheel.write_as_is(wheels.0.path());
    wheels.fires(&["V094"], &["has its metadata in ex_blas_device_gfx1100-2.0.dist-info"]);
}

#[test]
fn v094_versions_are_those_of_pep_440() {
    let folder = tempfile::tempdir().unwrap();
    let path = LooseWheel::new("demo-abc-py3-none-any.whl", "").write(folder.path());
    let run = verify(&[path.to_str().unwrap()], &[]);
    run.fired(&["V094"]);
    says(&run, &["its file name has the version abc, which PEP 440 does not know"]);
}

/// Spoils a wheel.
type Edit = fn(&mut LooseWheel);

#[test]
fn v001_archives_that_are_no_wheels() {
    let edits: [(&str, Edit); 5] = [
        ("has no ex_blas_device_gfx1100-1.0+rocm7.1.dist-info/RECORD", |wheel| {
            drop(wheel.files.remove(&wheel.info("RECORD")));
        }),
        ("has no ex_blas_device_gfx1100-1.0+rocm7.1.dist-info/METADATA", |wheel| {
            drop(wheel.files.remove(&wheel.info("METADATA")));
        }),
        ("has two .dist-info folders", |wheel| wheel.add("a-1.dist-info/METADATA", "")),
        ("has no .dist-info folder", |wheel| {
            let info = wheel.info("");
            wheel.files.retain(|path, _| !path.starts_with(&info));
        }),
        ("in hexadecimal", |wheel| {
            let record = wheel.info("RECORD");
            wheel.add(&record, format!("a,sha256={},0\n", "0".repeat(64)));
        }),
    ];
    for (words, edit) in edits {
        let wheels = Wheels::new();
        wheels.edit_as_is(&device("gfx1100"), edit);
        let run = wheels.verify(&[]);
        assert!(run.codes().contains(&"V001".to_owned()), "{}", run.text);
        says(&run, &[words]);
    }
}

#[test]
fn v001_damaged_archives() {
    let wheels = Wheels::new();
    let path = wheels.path(&device("gfx1100"));
    let bytes = fs::read(&path).unwrap();
    for (changed, words) in [
        (bytes[..bytes.len() - 30].to_vec(), "end record"),
        (b"PK".to_vec(), "end record"),
        ([bytes.as_slice(), b"x"].concat(), "end record"),
    ] {
        fs::write(&path, changed).unwrap();
        let run = wheels.verify(&[]);
        // That nobody can read it does not make it absent.
        run.fired(&["V001"]);
        says(&run, &[words]);
    }
}

#[test]
fn v001_wheels_for_windows_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut wheel = LooseWheel::new("a-1-cp311-cp311-win_amd64.whl", "");
    let path = wheel.write(folder.path());
    let run = verify(&[path.to_str().unwrap()], &[]);
    run.fired(&["V001"]);
    says(&run, &["is for Windows (win_amd64)"]);
}

#[test]
fn v001_a_name_that_is_none_of_a_wheel() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("torch.whl");
    fs::copy(fat(), &path).unwrap();
    let run = verify(&[path.to_str().unwrap()], &[]);
    run.fired(&["V001"]);
    says(&run, &["is not a valid wheel file name"]);
}
