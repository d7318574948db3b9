//! pip and uv install, upgrade and remove the wheels.

use std::process::Command;

use support::example::{files, names};
use support::installers::{CLIENTS, Environment};
use support::tools::{self, need, said, told};

use super::{archives, install};

/// The distributions installed with the extra for gfx1100.
const WITH_GFX1100: [&str; 3] = ["x-1.0", SHARED, "x_device_gfx1100-1.0"];

/// The wheel with the files for all archs of gfx11.
const SHARED: &str = "x_device_gfx11-1.0";

#[test]
fn extras_bring_their_device_wheels() {
    need(&CLIENTS);
    support::kpack::need_python();
    for client in CLIENTS {
        let room = tempfile::tempdir().unwrap();
        let environment = Environment::new(room.path());
        said(&mut install(&environment, client, &["x==1.0"]));
        assert_eq!(environment.installed(), ["x-1.0"], "{client}");
        assert_eq!(archives(&environment), [""; 0], "{client}");
        said(&mut install(&environment, client, &["x[device-gfx1100]==1.0"]));
        assert_eq!(environment.installed(), WITH_GFX1100, "{client}");
        assert_eq!(archives(&environment), ["gfx1100"], "{client}");
        let two_more = ["x[device-gfx1201,device-gfx90a]==1.0"];
        said(&mut install(&environment, client, &two_more));
        assert_eq!(archives(&environment), ["gfx1100", "gfx1201", "gfx90a"], "{client}");
        said(&mut install(&environment, client, &["x[device-all]==1.0"]));
        assert_eq!(environment.installed().len(), 1 + 9, "{client}");
        assert_eq!(archives(&environment).len(), 8, "{client}");
        said(&mut environment.client(client, "check"));
        // Python imports the installed package, and finds the wheel's program.
        let mut python = Command::new(environment.python());
        let text = tools::succeed(python.args(["-c", "import x.pure, y; print(x.pure.pure)"]));
        assert_eq!(text.trim(), "True");
        assert!(environment.folder.join("bin/x-tool").is_file());
    }
}

/// An upgrade with the extra also upgrades the device wheels. Without it, pip warns and leaves them; their
/// archives have other names, so no kernel of the old build is mistaken for a new one.
#[test]
fn upgrades_take_device_wheels_along_by_their_extra() {
    need(&CLIENTS);
    support::kpack::need_python();
    for client in CLIENTS {
        let room = tempfile::tempdir().unwrap();
        let environment = Environment::new(room.path());
        told(&mut install(&environment, client, &["x[device-gfx1100]==1.0"]));
        let text = told(&mut install(&environment, client, &["--upgrade", "x"]));
        assert!(text.ends_with("exit status: 0\n"), "{client}: {text}");
        assert!(client == "uv" || text.contains("x-device-gfx1100 1.0 requires x==1.0"), "{text}");
        let left = ["x-2.0", SHARED, "x_device_gfx1100-1.0"];
        assert_eq!(environment.installed(), left, "{client}");
        let check = told(&mut environment.client(client, "check"));
        assert!(
            check.ends_with("exit status: 1\n") && check.contains("x-device-gfx1100"),
            "{check}"
        );
        let upgrade = ["--upgrade", "x[device-gfx1100]"];
        told(&mut install(&environment, client, &upgrade));
        let new: Vec<String> = WITH_GFX1100.iter().map(|name| name.replace("1.0", "2.0")).collect();
        assert_eq!(environment.installed(), new, "{client}");
        said(&mut environment.client(client, "check"));
    }
}

#[test]
fn wheels_are_uninstalled_in_either_order() {
    need(&CLIENTS);
    support::kpack::need_python();
    let devices = &WITH_GFX1100.map(|name| name.split("-1.0").next().unwrap())[1..];
    for client in CLIENTS {
        let room = tempfile::tempdir().unwrap();
        let environment = Environment::new(room.path());
        // The device wheel by itself is as complete as the extra.
        for (asked, host_first) in [("x[device-gfx1100]", true), ("x-device-gfx1100", false)] {
            let asked = format!("{asked}==1.0");
            said(&mut install(&environment, client, &[&asked]));
            assert_eq!(environment.installed(), WITH_GFX1100, "{client} {asked}");
            if host_first {
                environment.uninstall(client, &["x"]);
                assert_eq!(archives(&environment), ["gfx1100"], "{client}");
            }
            environment.uninstall(client, devices);
            assert_eq!(archives(&environment), [""; 0], "{client}");
            if !host_first {
                assert!(environment.site().join("x/_C.so").is_file(), "{client}");
                said(&mut environment.client(client, "check"));
                environment.uninstall(client, &["x"]);
            }
            let left = files(&environment.site());
            assert!(left.is_empty(), "{client}: {:?}", left.keys());
        }
    }
}

/// A host wheel and its device wheels all go into one folder.
#[test]
fn a_target_folder_gets_all_of_it() {
    need(&CLIENTS);
    support::kpack::need_python();
    for client in CLIENTS {
        let room = tempfile::tempdir().unwrap();
        let environment = Environment::new(&room.path().join("venv"));
        let target = room.path().join("target");
        let mut command = install(&environment, client, &["x[device-gfx1100]==1.0"]);
        said(command.arg("--target").arg(&target));
        let own = names(&target.join("x/.kpack"));
        assert!(
            own.len() == 1 && own.first().unwrap().ends_with("_gfx1100.kpack"),
            "{client}: {own:?}"
        );
        for name in ["x/_C.so", "x/pure.py", "y/_D.so"] {
            assert!(target.join(name).is_file(), "{client}: {name}");
        }
    }
}
