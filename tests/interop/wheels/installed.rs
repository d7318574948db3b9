//! pip and uv install, upgrade and remove the wheels.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use rockpack_archive::wheel::installed_mode;
use rockpack_archive::zip::ZipReader;
use rockpack_core::content::Content;
use support::example::{files, names, rockpack};
use support::installers::{CLIENTS, Environment};
use support::tools::{self, need, said, told};
use support::wheels::{LooseWheel, WheelFile};

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
        let hint = "(gfx1100): ";
        let remedy = "; install 'x[device-gfx1100]'\n";
        let text = verify_on_a_machine(&environment.site());
        assert!(text.contains(hint) && text.contains(remedy), "{text}");
        said(&mut install(&environment, client, &["x[device-gfx1100]==1.0"]));
        let text = verify_on_a_machine(&environment.site());
        assert!(text.contains(hint) && !text.contains(remedy), "{text}");
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
        verify_by_record(&environment.site(), &environment.folder.join("bin/x-tool"));
    }
}

/// What `verify` prints on a made-up machine with a GPU of gfx1100.
fn verify_on_a_machine(site: &Path) -> String {
    let mut verify = rockpack();
    verify.args(["verify", "--installed"]).arg(site).arg("--sysfs");
    told(verify.arg(tools::repository("tests/machines/apu-beside-card")))
}

/// What a client installs is as its RECORD says, until somebody changes a program.
fn verify_by_record(site: &Path, program: &Path) {
    let verify = || told(rockpack().args(["verify", "--installed"]).arg(site));
    let text = verify();
    assert!(text.ends_with("exit status: 0\n"), "{text}");
    assert!(program.is_file());
    fs::write(program, "#!/bin/sh\n").unwrap();
    let text = verify();
    assert!(text.contains("V093") && text.contains("bin/x-tool: has 10 bytes"), "{text}");
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
        verify_by_record(&target, &target.join("bin/x-tool"));
    }
}

/// uv goes by the bits alone, and pip by the type, too.
#[test]
fn modes_are_those_of_pip() {
    need(&["pip"]);
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let mut wheel = LooseWheel::new("m-1.0-py3-none-any.whl", "");
    for mode in [0, 0o644, 0o755, 0o100_644, 0o100_755, 0o100_600, 0o100_711, 0o104_755] {
        wheel.files.insert(format!("m/{mode:o}"), WheelFile { bytes: Vec::new(), mode });
    }
    let wheel = wheel.write(room.path());
    let environment = Environment::new(&room.path().join("environment"));
    said(environment.client("pip", "install").arg("--no-index").arg(&wheel));
    let zip = ZipReader::open(Content::of_bytes(fs::read(&wheel).unwrap())).unwrap();
    for member in zip.members().iter().filter(|member| member.name.starts_with("m/")) {
        let file = fs::metadata(environment.site().join(&member.name)).unwrap();
        let may_run = [file.permissions().mode(), installed_mode(member)].map(|it| it & 0o111 != 0);
        assert_eq!(may_run[0], may_run[1], "{}", member.name);
    }
}
