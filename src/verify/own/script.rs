//! The interpreter and the words of a script: a second reading, independent of the build's.
//!
//! Source: `load_script` of Linux (`fs/binfmt_script.c`).

use std::io::{BufRead, BufReader, Read};

use rockpack_base::content::Content;
use rockpack_base::error::Result;
use rockpack_base::formats::hold::fault;

use super::digest::{Sha, hash};

/// The bytes that start a script.
pub(super) const MAGIC: &[u8] = b"#!";

/// Bytes of a file that Linux reads to start it.
const READ: u64 = 256;

/// Bytes in which a second line is looked for.
const SECOND_READ: u64 = 4096;

/// A script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::verify) struct Script {
    pub(in crate::verify) runner: Runner,
    /// The first line without its line feed, as far as anything reads it.
    pub(in crate::verify) line: Vec<u8>,
    /// The digest of everything behind the first line.
    pub(in crate::verify) body: Sha,
}

/// The interpreter that a first line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::verify) enum Runner {
    /// The program at this absolute path.
    Path(String),
    /// The program that `env` finds by this name.
    Named(String),
    /// `env` decides at run time, as with its options.
    Env,
    /// Nothing that Linux could start.
    Nothing,
}

/// Reads `content`; none if it is no script.
pub(in crate::verify) fn read(content: &Content) -> Result<Option<Script>> {
    let start = content.read_vec(0..content.len().min(READ), READ, "first line")?;
    if !start.starts_with(MAGIC) {
        return Ok(None);
    }
    let mut reader = BufReader::new(content.reader());
    let first = reader.skip_until(b'\n').map_err(fault)? as u64;
    let body = hash(&mut reader as &mut dyn Read)?;
    let runner = match runner(&start) {
        Runner::Path(shell) if shell.ends_with("/sh") => {
            let end = content.len().min(first + SECOND_READ);
            let second = content.read_vec(first..end, SECOND_READ, "second line")?;
            Runner::Path(successor(&second).unwrap_or(shell))
        }
        other => other,
    };
    let first_line = content.read_vec(0..first.min(SECOND_READ), SECOND_READ, "first line")?;
    let line = first_line.strip_suffix(b"\n").unwrap_or(&first_line).to_vec();
    Ok(Some(Script { runner, line, body }))
}

/// The program for which the shell of a script makes way in the second line, where `'''exec'` is both a
/// command of the shell and the start of a text for that program.
fn successor(second: &[u8]) -> Option<String> {
    let line = second.split(|byte| *byte == b'\n').next()?;
    let words = std::str::from_utf8(line).ok()?.strip_prefix("'''exec' ")?;
    let end = if words.starts_with('"') { '"' } else { ' ' };
    let path = words.trim_start_matches('"').split(end).next()?;
    path.starts_with('/').then(|| path.to_owned())
}

/// Reads the first bytes of a script.
fn runner(start: &[u8]) -> Runner {
    let end = start.iter().position(|byte| *byte == b'\n');
    if end.is_none() && start.len() as u64 == READ {
        return Runner::Nothing;
    }
    let line = start
        .get(MAGIC.len()..end.unwrap_or(start.len()))
        .unwrap_or_default()
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    let text = String::from_utf8_lossy(line);
    if text.trim_end_matches([' ', '\t']).ends_with('\r') {
        return Runner::Nothing;
    }
    let mut words = text.split([' ', '\t']).filter(|word| !word.is_empty());
    match (words.next(), words.next()) {
        // The replacement for bytes that are no text.
        (Some(path), _) if path.contains(char::REPLACEMENT_CHARACTER) => Runner::Nothing,
        (Some(env), Some(option)) if env.ends_with("/bin/env") && option.starts_with('-') => {
            Runner::Env
        }
        (Some(env), Some(name)) if env.ends_with("/bin/env") => match name {
            path if path.contains(char::REPLACEMENT_CHARACTER) => Runner::Nothing,
            path if path.starts_with('/') => Runner::Path(path.to_owned()),
            other if other.contains(['/', '=']) => Runner::Env,
            name if words.next().is_none() => Runner::Named(name.to_owned()),
            _ => Runner::Nothing,
        },
        (Some(path), _) if path.starts_with('/') => Runner::Path(path.to_owned()),
        _ => Runner::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_names_what_starts_the_script() {
        let long = format!("#!/{}\n", "x".repeat(252));
        for (start, expected) in [
            ("#! /bin/sh -e\n", program("/bin/sh")),
            ("#!/usr/bin/env python3\n", Runner::Named("python3".to_owned())),
            ("#!/usr/bin/env /opt/x\n", program("/opt/x")),
            ("#!/usr/bin/env -S python3 -u\n", Runner::Env),
            ("#!/usr/bin/env python3 -u\n", Runner::Nothing),
            ("#!/bin/sh\r\n", Runner::Nothing),
            ("#!python\n", Runner::Nothing),
            ("#!\n", Runner::Nothing),
            (&long, program(&long[2..255])),
            ("#!/bin/sh\n'''exec' /x/python \"$0\" \"$@\"\n", program("/x/python")),
            ("#!/bin/sh\n'''exec' \"/a b/python\" \"$0\"\n", program("/a b/python")),
            ("#!/bin/sh\nexec /x/python \"$0\"\n", program("/bin/sh")),
            ("#!/usr/bin/perl\n'''exec' /x/python \"$0\"\n", program("/usr/bin/perl")),
            (&long.replace('\n', "x\n"), Runner::Nothing),
        ] {
            let content = Content::of_bytes(start.as_bytes());
            assert_eq!(read(&content).unwrap().unwrap().runner, expected, "{start:?}");
        }
        let latin = Content::of_bytes(*b"#!/usr/bin/perl -w # caf\xe9\n");
        assert_eq!(read(&latin).unwrap().unwrap().runner, program("/usr/bin/perl"));
        let latin = Content::of_bytes(*b"#!/usr/bin/caf\xe9\n");
        assert_eq!(read(&latin).unwrap().unwrap().runner, Runner::Nothing);
        assert_eq!(read(&Content::of_bytes(*b"/bin/sh\n")).unwrap(), None);
    }

    fn program(path: &str) -> Runner {
        Runner::Path(path.to_owned())
    }
}
