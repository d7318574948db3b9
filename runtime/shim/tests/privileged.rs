//! Processes with privileges that their user lacks: variables do not count, and no line shows names of files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::archives::Draft;
use crate::fixtures::{ONE_WRAPPER, World, bundle, bundles, contents, plain, shim, succeed, told};

const OPEN: &str = "open - @/lib/x.so";

/// The steps as a process that the kernel calls privileged: its program, a copy in `folder`, is setgid. `None`
/// if the user has no other group, or the bit counts for nothing there.
fn privileged(folder: &Path, steps: &Command) -> Option<Command> {
    let program = folder.join("privileged");
    // Another process writes the file: a child of another test may not hold it open.
    succeed(Command::new("cp").arg(steps.get_program()).arg(&program));
    let groups = succeed(Command::new("id").arg("-G"));
    let groups = groups.split_whitespace().skip(1).map(|group| group.parse::<u32>().unwrap());
    let is_other = groups.chain([65_534]).any(|group| chown(&program, None, Some(group)).is_ok());
    fs::set_permissions(&program, Permissions::from_mode(0o2755)).unwrap();
    let is_privileged = succeed(plain(&program).arg("privileged")) == "1\n";
    if !is_other || !is_privileged {
        assert!(std::env::var_os("ROCKPACK_INTEROP").is_none(), "no privileged process");
        eprintln!("skipped: needs another group, and a file system without nosuid");
        return None;
    }
    let mut command = plain(&program);
    command.args(steps.get_args());
    Some(command)
}

#[test]
fn variables_of_its_user_do_not_reach_a_privileged_process() {
    // Next to the library, on a file system that programs run from.
    let folder = TempDir::new_in(shim().parent().unwrap()).unwrap();
    let world = World::new(&["gfx1100"]);
    let other = world.path().join("other.kpack");
    Draft::zstd(&["gfx1100"], &contents("other")).write(&other);
    world.library("x.so", &[ONE_WRAPPER]);
    let Some(mut command) = privileged(folder.path(), &world.steps(&[OPEN])) else { return };
    let other = other.to_str().unwrap();
    for (name, value) in [("PATH", other), ("PATH_PREFIX", other), ("DISABLE", "1")] {
        let variable = format!("ROCM_KPACK_{name}");
        let (out, errors) = told(command.env(&variable, value));
        command.env_remove(&variable);
        let own = bundle(&["gfx1100"], 0);
        assert_eq!((bundles(&out), errors.as_str()), (vec![own.as_str()], ""), "{name}");
        let (out, _) = told(world.steps(&[OPEN]).env(&variable, value));
        assert_ne!(bundles(&out), [own], "{name}");
    }
}

#[test]
fn lines_of_a_privileged_process_name_no_files() {
    let folder = TempDir::new_in(shim().parent().unwrap()).unwrap();
    let world = World::new(&[]);
    world.library("x.so", &[ONE_WRAPPER]);
    let Some(mut command) = privileged(folder.path(), &world.steps(&[OPEN])) else { return };
    for damaged in [false, true] {
        if damaged {
            fs::create_dir(world.path().join(".kpack")).unwrap();
            fs::write(world.archive("gfx1100"), b"s3cr3t:$y$:19000").unwrap();
        }
        let (out, errors) = told(&mut command);
        assert_eq!(bundles(&out), [bundle(&[], 0)]);
        let names = ["blas", "x.so", "s3cr", world.path().to_str().unwrap()];
        assert!(names.iter().all(|name| !errors.contains(name)), "{errors}");
    }
    let (_, errors) = world.told(&[OPEN]);
    assert!(errors.contains("blas_gfx1100.kpack"), "{errors}");
}
