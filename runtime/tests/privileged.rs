//! Processes with privileges that their user lacks: setuid, setgid, file capabilities. The user's variables do
//! not count, and no text shows bytes of files, which the user may not be allowed to read.

use std::fs;
use std::process::Command;

use rmpv::Value;
use tempfile::TempDir;

use crate::archives::{Draft, code, marker};
use crate::program::{both, library, privileged, steps};
use crate::world::{World, loaded};

/// The text of an error with variable parts, without its hint.
const HIDDEN: &str = "the cause is hidden, because the process is privileged";

/// The standard output and error of steps with one cache and a variable.
struct Said {
    /// The text of an ordinary process.
    plain: (String, String),
    /// The text of a privileged process.
    privileged: (String, String),
}

/// Runs the same steps without and with privileges; `None` where no process can have them.
fn said(world: &World, list: &[&str], variable: (&str, &str)) -> Option<Said> {
    // Next to the library, on a file system that programs run from.
    let folder = TempDir::new_in(library().parent().unwrap()).unwrap();
    let arguments = world.with_cache(list);
    let run = |mut command: Command| both(command.env(variable.0, variable.1));
    let privileged = run(privileged(folder.path(), &arguments)?);
    let plain = run(steps(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
    Some(Said { plain, privileged })
}

#[test]
fn variables_of_its_user_do_not_reach_a_privileged_process() {
    let world = World::new(&["x.kpack"]);
    world.archive("x.kpack", 1);
    let other = world.archive("other.kpack", 2);
    let other = other.to_str().unwrap();
    let variables = [("PATH", other), ("PATH_PREFIX", other), ("DISABLE", "1"), ("DEBUG", "1")];
    let own = (format!("{}\n", loaded(1)), String::new());
    for (name, value) in variables {
        let variable = format!("ROCM_KPACK_{name}");
        let Some(said) = said(&world, &["load @/x.so 0 gfx1100"], (&variable, value)) else {
            return;
        };
        assert_eq!(said.privileged, own, "{name}");
        assert_ne!(said.plain, own, "{name}");
    }
}

/// A word of the files that only the process may read.
const SECRET: &str = "s3cr";

/// Files that the user may name, and that are no archives or damaged ones.
fn secrets() -> World {
    let world = World::new(&[]);
    marker(world.path(), &["s3cr_@GFXARCH@.kpack", "rows.kpack"]);
    fs::write(world.path().join("shadow"), format!("{SECRET}3t:$y$:19000::::::")).unwrap();
    fs::write(world.path().join("version"), format!("KPAK{SECRET}12345678")).unwrap();
    fs::write(world.path().join("table"), b"KPAK\x01\0\0\0\x10\0\0\0\0\0\0\0\xc1").unwrap();
    let mut draft = Draft::zstd(&["gfx1100"], &[code(1, 5000), code(2, 400)]);
    draft.rows[0].0 = format!("{SECRET}#0");
    draft.rows[0].3 = 4999.into();
    draft.rows[1].2 = 7.into();
    draft.write(world.path().join("rows.kpack"));
    draft.zstd_size = Some(Value::from(1_u64 << 31));
    draft.write(world.path().join("frames.kpack"));
    world
}

#[test]
fn texts_of_a_privileged_process_show_no_bytes_of_files() {
    let world = secrets();
    let list = [
        "open @/shadow",
        "open @/version",
        "open @/table",
        "open @/frames.kpack",
        "open @/rows.kpack",
        "get s3cr#0 gfx1100",
        "load @/x.so 1 gfx1100",
        "load @/x.so 1 gfx1103",
        "error",
    ];
    let Some(said) = said(&world, &list, ("ROCM_KPACK_QUIET", "0")) else { return };
    let Said { plain: (plain, told), privileged: (hidden, errors) } = said;
    // As anyone else, the user learns what is wrong, and where.
    let shown =
        ["begins with s3cr", "version 1919103859", "0xc1", "2147483648", "s3cr#0 for gfx1100"];
    for part in shown {
        assert!(plain.contains(part), "{part}: {plain}");
    }
    assert!(told.contains("s3cr_gfx1103.kpack"), "{told}");
    assert_eq!(errors, "");
    let hints = ["", "; install it again", "; install the kernels for it"];
    for (number, (plain, hidden)) in plain.lines().zip(hidden.lines()).enumerate() {
        let text = hidden.split_once(HIDDEN);
        match number {
            // The archive with wrong rows opens.
            4 => assert_eq!([plain, hidden], ["0", "0"]),
            8 => assert_eq!(text, Some(("", hints[2])), "{hidden}"),
            _ => {
                let (code, hint) = text.unwrap_or_else(|| panic!("{number}: {hidden}"));
                assert!(plain.starts_with(code) && code.len() <= 7, "{number}: {plain}: {hidden}");
                assert!(hints.contains(&hint), "{number}: {hidden}");
            }
        }
    }
    assert_eq!([plain.lines().count(), hidden.lines().count()], [9, 9]);
}
