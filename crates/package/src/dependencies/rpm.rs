//! Capabilities of an `.rpm`, with the names that rpm's own generators give them.
//!
//! | generator of rpm 4.18 | here |
//! |---|---|
//! | `elf` | all: sonames, their versions, `rtld(GNU_HASH)` |
//! | `script` | the interpreter of executable files that begin with `#!`, but not of lines that start nothing |
//! | `debuginfo` | all: build-ids of files below `/usr/lib/debug/.build-id` |
//! | `pkgconfig`, `desktop`, `metainfo`, `font`, `rpm_macro`, `python` | nothing: they look into `/usr`, where no prefix is |
//! | `perl`, `perllib`, `pythondist`, `ocaml` | not covered: modules of a language are not looked for |
//!
//! Sources: rpm's `fileattrs`, `elfdeps` and `script.req`. `elfdeps` reads sections, this module program
//! headers: a library without section headers has capabilities only here.

use rockpack_elf::Linking;

use super::script::Start;

const MARKER: &str = "(64bit)";

/// The requirement of a library without `DT_HASH` on the dynamic linker.
const GNU_HASH: &str = "rtld(GNU_HASH)";

/// The prefixes of library names that give capabilities.
const LIBRARY_PREFIXES: [&str; 5] = ["lib", "ld.", "ld-", "ld64.", "ld64-"];

/// The capability of a soname, or of a symbol version in it.
fn capability(soname: &str, version: &str) -> Option<String> {
    let plain = soname.contains(".so");
    let known = LIBRARY_PREFIXES.iter().any(|start| soname.starts_with(start));
    (plain && known).then(|| format!("{soname}({version}){MARKER}"))
}

/// The capabilities that the file called `name` provides.
pub fn provides(linking: &Linking, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut soname = None;
    for version in &linking.versions.defined {
        let own = version.names.first().map(String::as_str);
        match (version.is_base, soname, own) {
            (true, _, own) => soname = own,
            (false, Some(soname), Some(own)) => found.extend(capability(soname, own)),
            _ => {}
        }
    }
    // Position independent programs have no soname either, but an entry for debuggers.
    if linking.is_shared_object && !linking.has_debug {
        found.extend(capability(linking.soname.as_deref().unwrap_or(name), ""));
    }
    found
}

/// The capabilities that a file requires; `counts` chooses libraries.
pub fn requires(
    linking: &Linking,
    is_executable: bool,
    counts: impl Fn(&str) -> bool,
) -> Vec<String> {
    // A program without execute permission is data.
    if linking.interpreter.is_some() && !is_executable {
        return Vec::new();
    }
    let counted = linking.versions.needed.iter().filter(|need| counts(&need.file));
    let versions = counted.flat_map(|need| {
        need.versions.iter().filter_map(|version| capability(&need.file, &version.name))
    });
    let needed = linking.needed.iter().filter(|name| counts(name));
    let mut found: Vec<String> =
        versions.chain(needed.filter_map(|name| capability(name, ""))).collect();
    if linking.has_gnu_hash && !linking.has_hash {
        found.push(GNU_HASH.to_owned());
    }
    found
}

/// The paths that a script requires. `script.req` reads only the line: a program that `env` finds by name, or
/// gives options to, is not in it.
pub fn interpreters(start: &Start) -> Vec<String> {
    match start {
        Start::Program(path) => vec![path.clone()],
        Start::ThroughEnv { env, program, has_options: false } if program.starts_with('/') => {
            vec![env.clone(), program.clone()]
        }
        Start::ThroughEnv { env, .. } => vec![env.clone()],
        Start::ThroughShell { shell, .. } => vec![shell.clone()],
        Start::Fails(_) => Vec::new(),
    }
}

/// The build-id of the debug file at the install path `path` (without its leading slash).
pub fn build_id(path: &str) -> Option<String> {
    let rest = path.strip_prefix("usr/lib/debug/.build-id/")?;
    let (start, end) = rest.strip_suffix(".debug")?.split_once('/')?;
    (is_hex(start) && is_hex(end)).then(|| format!("{start}{end}"))
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_needed_libraries_are_not_capabilities() {
        let needed = vec!["$ORIGIN/../lib/libx.so.1".to_owned()];
        let linking = Linking { needed, ..Linking::default() };
        assert!(requires(&linking, true, |_| true).is_empty());
    }

    #[test]
    fn build_ids_are_those_of_the_debug_folder() {
        assert_eq!(build_id("usr/lib/debug/.build-id/ab/cdef.debug").as_deref(), Some("abcdef"));
        for path in ["usr/lib/debug/.build-id/ab/c", "usr/lib/debug/.build-id/x/y.debug", "a"] {
            assert_eq!(build_id(path), None, "{path}");
        }
    }
}
