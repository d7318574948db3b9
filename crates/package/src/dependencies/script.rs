//! The start of scripts on Linux, by the interpreter in their first line.
//!
//! ```text
//! #! /usr/bin/perl -w            the interpreter, and all the rest as one argument
//! #!/usr/bin/env python3         the program that env finds in PATH
//! #!/usr/bin/env -S python3 -u   the same with arguments, which env splits
//! #!/bin/sh                      a shell that runs the program in the second line, which is
//! '''exec' /x/python "$0" "$@"   a string for that program: pip writes this if paths are long
//! ```
//!
//! Sources: `load_script` of Linux (`fs/binfmt_script.c`), which reads `BINPRM_BUF_SIZE`, 256 bytes;
//! env(1) of coreutils; `distlib.scripts` of pip.

use std::ops::Range;

use rockpack_core::content::Content;
use rockpack_core::error::Result;

use rockpack_report::StartFault;

/// Longest first line that Linux reads, in bytes without the line feed.
pub const LONGEST_LINE: usize = 255;

/// Bytes that are searched for the end of a line, so that a line that is too long can be replaced.
const WINDOW: u64 = 4096;

const MAGIC: &str = "#!";

const BLANKS: [char; 2] = [' ', '\t'];

/// Characters that give a word of `env -S` another meaning.
const SPECIAL: [char; 5] = ['\'', '"', '\\', '$', '#'];

/// The long form of the option with which `env` splits a text.
const SPLIT: &str = "--split-string";

/// Options of `env` without a value, which may precede the short form of [`SPLIT`] in one word.
const ENV_FLAGS: &str = "iv0";

/// Options of `env` with a value in the next word.
const ENV_OPTIONS_WITH_VALUE: [&str; 4] = ["-u", "--unset", "-C", "--chdir"];

/// The start of a script's second line with which a shell hands over to another program.
const EXEC_LINE: &str = "'''exec' ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstLine {
    /// The interpreter, e.g. `/usr/bin/perl`, or `/usr/bin/env python3`.
    pub interpreter: String,
    /// The program that running the script starts.
    pub start: Start,
    line: String,
    /// The range of the line in which another interpreter would be put.
    place: Range<usize>,
    /// Whether the file's whole line was read, and is text.
    is_whole: bool,
}

/// The program that running a script starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// The program at this absolute path.
    Program(String),
    /// The `env` at this path, and through it `program`: a name, or an absolute path.
    ThroughEnv { env: String, program: String, has_options: bool },
    /// The `shell` at this path, which hands over to the absolute path `program`.
    ThroughShell { shell: String, program: String },
    /// No program, or an unintended one.
    Fails(StartFault),
}

struct ParsedInterpreter {
    interpreter: String,
    start: Start,
    place: Range<usize>,
}

impl FirstLine {
    /// Reads the first line of `content`; `None` if the file does not begin like a script.
    pub fn read(content: &Content) -> Result<Option<Self>> {
        let magic = MAGIC.len() as u64;
        let start = content.read_vec(0..content.len().min(magic), magic, "start of a file")?;
        if start != MAGIC.as_bytes() {
            return Ok(None);
        }
        let end = content.len().min(WINDOW);
        let start = content.read_vec(0..end, WINDOW, "first line of a script")?;
        let mut lines = start.split(|byte| *byte == b'\n');
        let line = lines.next().unwrap_or_default();
        let is_whole = line.len() < start.len() || end == content.len();
        let found = Self::parse(String::from_utf8_lossy(line).into_owned());
        let second = lines.next().and_then(|line| std::str::from_utf8(line).ok());
        let found = match second.and_then(exec_target) {
            Some(program) => found.handing_over(program),
            None => found,
        };
        let is_text = std::str::from_utf8(line).is_ok();
        Ok(Some(Self { is_whole: is_whole && is_text, ..found }))
    }

    /// The line of a script whose shell hands over to `program`. That program reads the second line as a
    /// string, so it can be in the first line, too.
    fn handing_over(self, program: &str) -> Self {
        match &self.start {
            Start::Program(shell) if shell.ends_with("/sh") => Self {
                interpreter: program.to_owned(),
                start: Start::ThroughShell { shell: shell.clone(), program: program.to_owned() },
                place: self.place.start..self.line.len(),
                ..self
            },
            _ => self,
        }
    }

    fn parse(line: String) -> Self {
        let ParsedInterpreter { interpreter, start, place } = parse_interpreter(&line);
        let start =
            if line.len() > LONGEST_LINE { Start::Fails(StartFault::TooLong) } else { start };
        Self { interpreter, start, line, place, is_whole: true }
    }

    /// Replaces the interpreter in the line; `None` if the end of the line is not known.
    pub fn with_interpreter(&self, interpreter: &str) -> Option<Self> {
        let before = self.line.get(..self.place.start)?;
        let behind = self.line.get(self.place.end..)?;
        self.is_whole.then(|| Self::parse(format!("{before}{interpreter}{behind}")))
    }

    /// `content` with this first line in place of its own.
    pub fn put_into(&self, content: &Content) -> Result<Content> {
        let own = Self::read(content)?.map_or(0, |own| own.line.len() as u64);
        let rest = content.slice(own..content.len())?;
        Ok(Content::concat([&Content::of_bytes(self.line.as_bytes()), &rest]))
    }
}

/// The absolute path of the program to which the second line of a script hands over, if it does.
fn exec_target(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(EXEC_LINE)?;
    let program = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split(BLANKS).next(),
    };
    program.filter(|path| path.starts_with('/') && !path.contains(char::is_control))
}

/// Reads the interpreter of a line that begins with `#!`.
fn parse_interpreter(line: &str) -> ParsedInterpreter {
    // Linux ends the line at a zero byte, and ignores blanks at its end.
    let seen = line.split('\0').next().unwrap_or_default().trim_end_matches(BLANKS);
    let text = seen.trim_end_matches('\r');
    let behind_magic = text.strip_prefix(MAGIC).unwrap_or_default().trim_start_matches(BLANKS);
    let at = text.len() - behind_magic.len();
    let path = behind_magic.split(BLANKS).next().unwrap_or_default();
    if path.is_empty() || path == "/" {
        at_path(path, at, Start::Fails(StartFault::Nothing))
    } else if path.contains(is_odd) {
        at_path(path, at, Start::Fails(StartFault::NotText))
    } else if !path.starts_with('/') {
        at_path(path, at, Start::Fails(StartFault::Relative))
    } else {
        let program = at_path(path, at, Start::Program(path.to_owned()));
        let found = if path.ends_with("/bin/env") { through_env(text, path, at) } else { program };
        match found.start {
            Start::Program(_) | Start::ThroughEnv { .. } if seen.ends_with('\r') => {
                ParsedInterpreter { start: Start::Fails(StartFault::CarriageReturn), ..found }
            }
            _ => found,
        }
    }
}

fn is_odd(c: char) -> bool {
    c.is_control() || c.is_whitespace() || c == char::REPLACEMENT_CHARACTER
}

/// The interpreter at `path`, which is at `at` in its line.
fn at_path(path: &str, at: usize, start: Start) -> ParsedInterpreter {
    ParsedInterpreter { interpreter: path.to_owned(), start, place: at..at + path.len() }
}

/// Reads the program that the `env` at `path`, which is at `at` in `text`, starts.
fn through_env(text: &str, path: &str, at: usize) -> ParsedInterpreter {
    let rest = text.get(at + path.len()..).unwrap_or_default().trim_start_matches(BLANKS);
    let rest_at = text.len() - rest.len();
    let has_options = rest.starts_with('-');
    let found = if has_options { program_after_options(rest) } else { words(rest).next() };
    // Only a text that `env` splits has quotes and variables.
    let plain =
        found.filter(|(_, word)| !(word.contains('=') || has_options && word.contains(SPECIAL)));
    let Some((offset, program)) = plain else {
        let fault = Start::Fails(StartFault::Nothing);
        let start = if rest.is_empty() { fault } else { Start::Program(path.to_owned()) };
        return at_path(path, at, start);
    };
    let start = if program.contains('/') && !program.starts_with('/') {
        Start::Fails(StartFault::Relative)
    } else if !has_options && program.len() < rest.len() {
        Start::Fails(StartFault::EnvArguments)
    } else {
        let (env, program) = (path.to_owned(), program.to_owned());
        Start::ThroughEnv { env, program, has_options }
    };
    let end = rest_at + offset + program.len();
    // Options stay before their program.
    let begin = if has_options { rest_at + offset } else { at };
    ParsedInterpreter { interpreter: format!("{path} {program}"), start, place: begin..end }
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let words = text.split(BLANKS).scan(0, |at, word| {
        let begin = *at;
        *at += word.len() + 1;
        Some((begin, word))
    });
    words.filter(|(_, word)| !word.is_empty())
}

/// The program in the text after `env` and its options; `None` if there is none, or if `env` does not split it.
fn program_after_options(text: &str) -> Option<(usize, &str)> {
    let mut words = words(text);
    let (at, first) = words.next()?;
    let start = split_text_offset(first)?;
    if start < first.len() {
        return Some(unquoted(at + start, first.get(start..)?));
    }
    while let Some((at, word)) = words.next() {
        if ENV_OPTIONS_WITH_VALUE.contains(&word) {
            words.next();
        } else if !word.starts_with('-') && !word.contains('=') {
            return Some(unquoted(at, word));
        }
    }
    None
}

/// The offset of the text that the option `word` makes `env` split: in the word itself, or after it.
fn split_text_offset(word: &str) -> Option<usize> {
    if word == SPLIT {
        return Some(word.len());
    }
    if let Some(rest) = word.strip_prefix(SPLIT).and_then(|rest| rest.strip_prefix('=')) {
        return Some(word.len() - rest.len());
    }
    let (flags, rest) = word.strip_prefix('-')?.split_once('S')?;
    flags.chars().all(|flag| ENV_FLAGS.contains(flag)).then(|| word.len() - rest.len())
}

/// A word and its offset, without quotes around the whole word; `at` is its offset with them.
fn unquoted(at: usize, word: &str) -> (usize, &str) {
    let inside =
        ['"', '\''].into_iter().find_map(|quote| word.strip_prefix(quote)?.strip_suffix(quote));
    match inside {
        Some(inside) => (at + 1, inside),
        None => (at, word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        let found = FirstLine::parse(line.to_owned());
        let start = match found.start {
            Start::Program(path) => path,
            Start::ThroughEnv { env, program, .. } => format!("{env} -> {program}"),
            Start::ThroughShell { shell, program } => format!("{shell} => {program}"),
            Start::Fails(fault) => format!("{fault:?}"),
        };
        format!("{} | {start}", found.interpreter)
    }

    #[test]
    fn the_interpreter_is_that_of_the_first_line() {
        let long = format!("#!/{}", "x".repeat(LONGEST_LINE - 3));
        for (line, expected) in [
            ("#!/bin/sh -e", "/bin/sh | /bin/sh"),
            ("#! \t/bin/sh", "/bin/sh | /bin/sh"),
            ("#!/bin/sh\0junk", "/bin/sh | /bin/sh"),
            ("#!/usr/bin/env python3", "/usr/bin/env python3 | /usr/bin/env -> python3"),
            ("#!/usr/bin/env  /opt/x ", "/usr/bin/env /opt/x | /usr/bin/env -> /opt/x"),
            ("#!/usr/bin/env -S A=1 python3 -u", "/usr/bin/env python3 | /usr/bin/env -> python3"),
            ("#!/usr/bin/env -Spython3 -u", "/usr/bin/env python3 | /usr/bin/env -> python3"),
            ("#!/usr/bin/env -vS -u X python3", "/usr/bin/env python3 | /usr/bin/env -> python3"),
            (
                "#!/usr/bin/env -iS/x/python3 -u",
                "/usr/bin/env /x/python3 | /usr/bin/env -> /x/python3",
            ),
            ("#!/usr/bin/env -S \"/x/py\" -u", "/usr/bin/env /x/py | /usr/bin/env -> /x/py"),
            ("#!/usr/bin/env --split-string=/x/py", "/usr/bin/env /x/py | /usr/bin/env -> /x/py"),
            ("#!/usr/bin/env -i", "/usr/bin/env | /usr/bin/env"),
            ("#!/usr/bin/env -S 'a b'", "/usr/bin/env | /usr/bin/env"),
            ("#!/usr/bin/env python3 -u", "/usr/bin/env python3 | EnvArguments"),
            ("#!/usr/bin/env bin/x", "/usr/bin/env bin/x | Relative"),
            ("#!/usr/bin/env", "/usr/bin/env | Nothing"),
            ("#!/usr/bin/env $PY", "/usr/bin/env $PY | /usr/bin/env -> $PY"),
            ("#!/usr/bin/env 'sh'", "/usr/bin/env 'sh' | /usr/bin/env -> 'sh'"),
            ("#!/bin/sh\r", "/bin/sh | CarriageReturn"),
            ("#!/bin/sh -e\r", "/bin/sh | CarriageReturn"),
            ("#!/usr/bin/env python3\r", "/usr/bin/env python3 | CarriageReturn"),
            ("#!python", "python | Relative"),
            ("#!\r", " | Nothing"),
            ("#! ", " | Nothing"),
            ("#!/", "/ | Nothing"),
            ("#!/bin/\u{1b}[31m", "/bin/\u{1b}[31m | NotText"),
            (&long, &format!("{0} | {0}", &long[2..])),
            (&format!("{long}x"), &format!("{}x | TooLong", &long[2..])),
        ] {
            assert_eq!(shown(line), expected, "{line:?}");
        }
    }

    #[test]
    fn another_interpreter_takes_the_place_of_the_first() {
        for (line, expected) in [
            ("#! /opt/p/bin/python3 -u", "#! /new -u"),
            ("#!/usr/bin/env python3.12", "#!/new"),
            ("#!/usr/bin/env python3 -u", "#!/new -u"),
            ("#!/usr/bin/env -S X=python3 python3 -u", "#!/usr/bin/env -S X=python3 /new -u"),
            ("#!/usr/bin/env -Spython3 -u", "#!/usr/bin/env -S/new -u"),
            ("#!python\r", "#!/new\r"),
        ] {
            let content = Content::of_bytes(format!("{line}\nrest\n").into_bytes());
            let own = FirstLine::read(&content).unwrap().unwrap();
            let new = own.with_interpreter("/new").unwrap().put_into(&content).unwrap();
            let bytes = new.read_vec(0..new.len(), new.len(), "script").unwrap();
            assert_eq!(String::from_utf8(bytes).unwrap(), format!("{expected}\nrest\n"));
        }
    }

    #[test]
    fn a_shell_hands_over_in_the_second_line() {
        for (second, program) in [
            ("'''exec' /x/python3 \"$0\" \"$@\"", "/x/python3"),
            ("'''exec' \"/a b/python3\" \"$0\" \"$@\"", "/a b/python3"),
        ] {
            let content = handing_over_script("#!/bin/sh -e", second);
            let found = FirstLine::read(&content).unwrap().unwrap();
            assert_eq!(found.interpreter, program);
            let shell = "/bin/sh".to_owned();
            assert_eq!(found.start, Start::ThroughShell { shell, program: program.to_owned() });
            let new = found.with_interpreter("/new").unwrap().put_into(&content).unwrap();
            let bytes = new.read_vec(0..new.len(), new.len(), "script").unwrap();
            let expected = format!("#!/new\n{second}\n' '''\nrest\n");
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        }
        for (first, second) in [
            ("#!/usr/bin/python3", "'''exec' /x/python3 \"$0\" \"$@\""),
            ("#!/bin/sh", "exec /x/python3 \"$0\" \"$@\""),
            ("#!/bin/sh", "'''exec' python3 \"$0\" \"$@\""),
        ] {
            let found = FirstLine::read(&handing_over_script(first, second)).unwrap().unwrap();
            assert_eq!(found.start, Start::Program(first[2..].to_owned()));
        }
    }

    fn handing_over_script(first: &str, second: &str) -> Content {
        Content::of_bytes(format!("{first}\n{second}\n' '''\nrest\n").into_bytes())
    }

    #[test]
    fn only_scripts_have_a_first_line_and_only_whole_lines_are_replaced() {
        for bytes in [b"".to_vec(), b"#".to_vec(), b"\x7fELF".to_vec(), b" #!/bin/sh".to_vec()] {
            assert_eq!(first_line(bytes), None);
        }
        let long = [b"#!/".to_vec(), vec![b'x'; 5000]].concat();
        assert!(!can_be_replaced(long.clone()));
        assert!(can_be_replaced(long[..4000].to_vec()));
        assert!(can_be_replaced([&long[..4000], b"\n".as_slice(), &long].concat()));
        assert!(!can_be_replaced(b"#!/bin/sh \xff\n".to_vec()));
        let not_text = first_line(b"#!/bin/\xff\n".to_vec()).unwrap();
        assert_eq!(not_text.start, Start::Fails(StartFault::NotText));
    }

    fn first_line(bytes: Vec<u8>) -> Option<FirstLine> {
        FirstLine::read(&Content::of_bytes(bytes)).unwrap()
    }

    fn can_be_replaced(bytes: Vec<u8>) -> bool {
        first_line(bytes).unwrap().with_interpreter("/new").is_some()
    }
}
