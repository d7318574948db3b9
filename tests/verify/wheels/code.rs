//! Device code of wheels: where it has to be, and where it must not.

use support::tampered::section;

use super::*;

#[test]
fn v020_host_wheels_have_no_device_code() {
    let fat = LooseWheel::read(&fat());
    let wheels = Wheels::new();
    wheels
        .edit(HOST, |host| drop(host.files.insert(LIBRARY.to_owned(), fat.files[LIBRARY].clone())));
    let run = wheels.verify(&[]);
    assert!(run.codes().contains(&"V020".to_owned()), "{}", run.text);
    let wheels = Wheels::new();
    let name = format!("{DATABASE}/Kernels.so-000-gfx1101.hsaco");
    let file = fat.files[&name].clone();
    wheels.edit(&device("gfx1101"), |wheel| drop(wheel.files.remove(&name)));
    wheels.edit(HOST, |host| drop(host.files.insert(name.clone(), file)));
    wheels.fires(&["V020"], &[&name]);
}

#[test]
fn v021_device_wheels_have_no_host_code() {
    let wheels = Wheels::new();
    let library = wheels.read(HOST).files[LIBRARY].clone();
    wheels.edit(&device("gfx1100"), |wheel| {
        drop(wheel.files.insert("lib/liby.so".to_owned(), library.clone()));
    });
    let run = wheels.verify(&[]);
    assert!(run.codes().contains(&"V021".to_owned()), "{}", run.text);
}

#[test]
fn v022_device_wheels_have_the_code_of_their_archs_alone() {
    let wheels = Wheels::new();
    let (own, other) = (archive("gfx1101"), device("gfx1101"));
    let file = wheels.read(&other).files[&own].clone();
    wheels.edit(&other, |wheel| drop(wheel.files.remove(&own)));
    wheels.edit(&device("gfx1100"), |wheel| drop(wheel.files.insert(own.clone(), file)));
    wheels.fires(&["V022"], &["gfx1101"]);
    let wheels = Wheels::new();
    let name = format!("{DATABASE}/Kernels.so-000-gfx1101.hsaco");
    let file = wheels.read(&other).files[&name].clone();
    wheels.edit(&other, |wheel| drop(wheel.files.remove(&name)));
    wheels.edit(&device("gfx1100"), |wheel| drop(wheel.files.insert(name.clone(), file)));
    wheels.fires(&["V022"], &["gfx1101"]);
}

#[test]
fn v023_an_archive_is_damaged() {
    let wheels = Wheels::new();
    wheels.edit(&device("gfx1100"), |wheel| {
        let file = wheel.files.get_mut(&archive("gfx1100")).unwrap();
        let middle = file.bytes.len() / 2;
        file.bytes[middle] ^= 0xff;
    });
    wheels.fires(&["V023"], &[&archive("gfx1100")]);
}

#[test]
fn v024_an_index_is_without_its_code() {
    let wheels = Wheels::new();
    wheels.edit(&device("gfx1100"), |wheel| {
        drop(wheel.files.remove(&format!("{DATABASE}/TensileLibrary_gfx1100.co")));
    });
    wheels.fires(&["V024"], &["TensileLibrary_gfx1100.dat"]);
}

#[test]
fn v030_no_archive_is_where_a_marker_leads() {
    let wheels = Wheels::new();
    for arch in ARCHS {
        wheels.edit(&device(arch), |wheel| {
            let file = wheel.files.remove(&archive(arch)).unwrap();
            wheel.files.insert(format!("lib/.kpack/other_{arch}.kpack"), file);
        });
    }
    // The archives have the code of binaries that do not find them.
    wheels.fires(&["V030", "V034"], &[LIBRARY]);
}

#[test]
fn v034_a_binary_of_an_archive_is_not_there() {
    let wheels = Wheels::new();
    wheels.edit(HOST, |host| drop(host.files.remove(LIBRARY)));
    wheels.fires(&["V034"], &[LIBRARY]);
}

#[test]
fn v032_a_wrapper_points_elsewhere() {
    let wheels = Wheels::new();
    wheels.edit(HOST, |host| {
        let file = host.files.get_mut(LIBRARY).unwrap();
        let (at, _) = section(&file.bytes, ".hipFatBinSegment");
        file.bytes[at + 4] = 9;
    });
    wheels.fires(&["V032"], &[LIBRARY]);
}
