//! Programs on a terminal, and the content of its screen.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, ExitStatus, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use vt100::Parser;

/// Rows and columns of the screen.
const SIZE: (u16, u16) = (24, 200);

/// Lines of scrollback above the screen.
const SCROLLBACK: usize = 10_000;

/// The result of a program on a terminal.
#[derive(Debug)]
pub struct Shown {
    /// The program's exit status.
    pub status: ExitStatus,
    /// The program's output, including control sequences.
    pub written: String,
    /// The lines readable at the end, with the scrollback first.
    pub lines: Vec<String>,
}

impl Shown {
    /// The lines, as one text.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// Runs `command` with both of its outputs on one terminal.
pub fn on_terminal(command: &mut Command) -> Shown {
    command.stdin(Stdio::null());
    run(command, None)
}

/// Runs `command` in a terminal of its own, and types Ctrl-C once it has written `text`: the terminal shows
/// `^C` at the cursor, and sends the signal.
pub fn interrupted_on_terminal(command: &Command, text: &str) -> Shown {
    // Background processes ignore the signal, and their children would, too.
    let mut own = Command::new("env");
    own.args(["--default-signal=INT", "setsid", "--ctty"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => own.env(name, value),
            None => own.env_remove(name),
        };
    }
    run(&mut own, Some(text))
}

/// Runs `command` on a terminal, which is also its input; with `behind`, types Ctrl-C once that text is
/// written.
fn run(command: &mut Command, behind: Option<&str>) -> Shown {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let (rows, columns) = SIZE;
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let flags = i32::try_from(OpenptFlags::NOCTTY.bits()).unwrap();
    let slave = File::options().read(true).write(true).custom_flags(flags).open(name).unwrap();
    if behind.is_some() {
        command.stdin(slave.try_clone().unwrap());
    }
    command.stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.env("TERM", "xterm").spawn().unwrap();
    // Only the child has the other end now: when it ends, nothing more can be read.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (mut written, mut buffer) = (Vec::new(), [0; 1 << 16]);
    let (mut master, mut behind) = (File::from(master), behind);
    while let Ok(read @ 1..) = master.read(&mut buffer) {
        written.extend(&buffer[..read]);
        if behind.is_some_and(|text| String::from_utf8_lossy(&written).contains(text)) {
            behind = None;
            master.write_all(b"\x03").unwrap();
        }
    }
    let status = child.wait().unwrap();
    let lines = rendered(&written);
    Shown { status, written: String::from_utf8_lossy(&written).into_owned(), lines }
}

/// The lines that a terminal shows for this output.
fn rendered(written: &[u8]) -> Vec<String> {
    let (rows, columns) = SIZE;
    let [height, width] = [rows, columns].map(|length| NonZero::new(length).unwrap());
    let mut parser = Parser::new(height, width, SCROLLBACK);
    parser.process(written);
    let screen = parser.screen_mut();
    screen.set_scrollback(usize::MAX);
    let mut lines = Vec::new();
    for above in (1..=screen.scrollback()).rev() {
        screen.set_scrollback(above);
        lines.extend(screen.rows(0, columns).next());
    }
    screen.set_scrollback(0);
    lines.extend(screen.rows(0, columns));
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}
