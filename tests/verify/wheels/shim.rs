//! Wheels with binaries that register their wrappers with the shim: it is in the host wheel, where they need it.

use support::program::rockpack;
use support::shim_library::{SHIM, compile};
use support::tampered::section;
use support::tools;

use super::*;

/// A fat wheel, and the wheels that `rockpack wheel` makes of it for every HIP runtime. It lacks the program for a fixed
/// address, which would keep its device code.
struct Split {
    room: TempDir,
    wheels: Wheels,
}

impl Split {
    fn new() -> Self {
        let (folder, room) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut wheel = LooseWheel::read(&fat());
        wheel.files.remove("libexec/exblas/exblas-tune").unwrap();
        let (fat, out) = (wheel.write(room.path()), room.path().join("out"));
        let mut split = rockpack();
        split.arg("wheel").arg(fat).args(["--hip-runtime", "any", "--hip-shim"]);
        tools::run(split.arg(compile(room.path())).arg("--out").arg(&out));
        for entry in fs::read_dir(out).unwrap() {
            let file = entry.unwrap().path();
            if file.extension().is_some_and(|ending| ending == "whl") {
                fs::copy(&file, folder.path().join(file.file_name().unwrap())).unwrap();
            }
        }
        Self { room, wheels: Wheels(folder) }
    }

    fn verify_against(&self) -> Run {
        let fat = self.room.path().join(file_name(HOST));
        self.wheels.verify(&["--against", fat.to_str().unwrap()])
    }
}

/// The path of the shim in the host wheel.
fn path(host: &LooseWheel) -> String {
    host.files.keys().find(|path| path.ends_with(&format!("/{SHIM}"))).unwrap().clone()
}

#[test]
fn a_set_with_the_shim_passes() {
    let split = Split::new();
    split.wheels.fires_nothing();
    split.verify_against().fired(&[]);
}

#[test]
fn v063_the_shim_is_not_where_binaries_need_it() {
    let wheels = Split::new().wheels;
    wheels.edit(HOST, |host| {
        let path = path(host);
        let file = host.files.remove(&path).unwrap();
        host.files.insert(format!("elsewhere/{SHIM}"), file);
    });
    wheels.fires(&["V063"], &[LIBRARY, SHIM, "not at that path"]);
    let wheels = Split::new().wheels;
    wheels.edit(HOST, |host| {
        let path = path(host);
        host.files.remove(&path);
    });
    wheels.fires(&["V063"], &[LIBRARY, SHIM, "not at that path"]);
    // Another file of that name is not the shim.
    let wheels = Split::new().wheels;
    wheels.edit(HOST, |host| {
        let path = path(host);
        host.add(&path, "no library\n");
    });
    wheels.fires(&["V063"], &[LIBRARY, SHIM, "not at that path"]);
}

#[test]
fn v013_and_v101_beside_the_fat_wheel() {
    let split = Split::new();
    split.wheels.edit(HOST, |host| {
        let bytes = &mut host.files.get_mut(LIBRARY).unwrap().bytes;
        let (versions, size) = section(bytes, ".gnu.version");
        let global = (versions + 2..versions + size).step_by(2).find(|at| bytes[*at] == 1).unwrap();
        bytes[global] = 2;
    });
    let run = split.verify_against();
    run.fired(&["V013"]);
    says(&run, &[LIBRARY, ".gnu.version"]);
    let split = Split::new();
    split.wheels.edit(HOST, |host| host.add(&format!("elsewhere/{SHIM}"), "no library\n"));
    let run = split.verify_against();
    run.fired(&["V101"]);
    says(&run, &["elsewhere", SHIM]);
}
