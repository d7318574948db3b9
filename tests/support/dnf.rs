//! dnf of this machine.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::program::scratch;
use crate::python::PYTHON;
use crate::tools;
use crate::waiting::Process;

/// A command for dnf in English. It runs in a fork of a process that has loaded dnf's modules, which takes
/// longer than most of what dnf does.
pub fn dnf() -> Command {
    static SERVER: OnceLock<(Process, PathBuf)> = OnceLock::new();
    let script = tools::repository("tests/support/dnf_server.py");
    let (_, socket) = SERVER.get_or_init(|| {
        let socket = scratch("dnf").join("socket");
        let mut serve = Command::new(PYTHON);
        serve.arg(&script).arg("--serve").arg(&socket).env("LC_ALL", "C");
        let mut server = Process::start(serve.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut said = String::new();
        BufReader::new(server.child().stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n");
        (server, socket)
    });
    let mut dnf = Command::new(PYTHON);
    // -I and -S: without what Python loads for other scripts.
    dnf.args(["-I", "-S"]).arg(script).arg(socket).env("LC_ALL", "C");
    dnf
}
