//! Python code of the tests. One interpreter for each thread runs it: to start one takes longer than most code.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::tools;
use crate::waiting::Process;

/// Debian's Python interpreter, for which apt installs msgpack and zstandard.
pub const PYTHON: &str = "/usr/bin/python3";

/// Skips the calling test unless Python has msgpack and zstandard.
pub fn need_python() {
    static HAS: OnceLock<bool> = OnceLock::new();
    let has = HAS.get_or_init(|| {
        let run = Command::new(PYTHON).args(["-c", "import msgpack, zstandard"]).output();
        run.is_ok_and(|run| run.status.success())
    });
    if !has {
        tools::skip("needs python3-msgpack, python3-zstandard");
    }
}

/// Runs a script of tests/support and returns the JSON that it prints, or how it failed.
pub fn python(script: &str, arguments: &[&str]) -> Result<Value, String> {
    let code = fs::read_to_string(tools::repository("tests/support").join(script)).unwrap();
    Ok(serde_json::from_str(&run(&code, arguments, "")?).unwrap())
}

/// Runs code with this standard input. Returns what it prints, or how it failed.
pub fn run(code: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    thread_local! {
        static INTERPRETER: RefCell<Interpreter> = RefCell::new(Interpreter::start());
    }
    INTERPRETER.with_borrow_mut(|interpreter| interpreter.run(code, arguments, input))
}

struct Interpreter {
    process: Process,
    answers: BufReader<ChildStdout>,
}

impl Interpreter {
    fn start() -> Self {
        tools::need(&[PYTHON]);
        let mut command = Command::new(PYTHON);
        command.arg(tools::repository("tests/support/interpreter.py"));
        let mut process = Process::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let answers = BufReader::new(process.child().stdout.take().unwrap());
        Self { process, answers }
    }

    fn run(&mut self, code: &str, arguments: &[&str], input: &str) -> Result<String, String> {
        let request = format!("{}\n", json!([code, arguments, input]));
        self.process.child().stdin.as_mut().unwrap().write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }
}
