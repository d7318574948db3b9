//! Texts of the input on a terminal: none becomes a command for the terminal, or a forged line.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use rmpv::Value;
use support::archives::Handmade;
use support::example::rockpack;
use support::tools::need;

use crate::bombs::bundle;
use crate::hostile_packages::{CONTROL, controlled, deb, rpm};
use crate::{Input, STAGE, inspect};

/// A hostile text: it clears the screen in two ways, and starts a new line.
const HOSTILE: &str = "x\u{1b}[2J\u{7f}\u{9b}2J\r\nforged: all checks passed";

/// A hostile text without line breaks, for texts made of lines.
const IN_LINE: &str = "x\u{1b}[2J\u{7f}\u{9b}2J\rforged";

/// The start of both texts as rockpack shows it.
const SHOWN: &str = r"x\u{1b}[2J\u{7f}\u{9b}2J\r";

fn run(arguments: &[&str], file: &Path) -> Command {
    let mut command = rockpack();
    command.args(arguments).arg(file);
    command
}

/// Returns both streams of a command. Fails if they contain terminal commands or forged lines.
fn harmless(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let Output { stdout, stderr, .. } = output;
    let both = [stdout, stderr].map(|stream| String::from_utf8(stream).unwrap());
    for said in &both {
        let odd: Vec<char> = said.chars().filter(|c| c.is_control() && *c != '\n').collect();
        assert!(odd.is_empty(), "{command:?} prints {odd:?}: {said:?}");
        let start = |line: &str| line.trim_start_matches([' ', '│', '×']).starts_with("forged");
        assert!(!said.lines().any(start), "{command:?}: {said}");
    }
    assert!(!both[1].contains("a bug in rockpack"), "{}", both[1]);
    both.concat()
}

/// Runs [`harmless`], and fails unless the hostile text is shown: otherwise the check saw another text.
fn escaped(command: &mut Command) {
    // In JSON, the `\` of escaped text is escaped again.
    let said = harmless(command).replace(r"\\", r"\");
    let json = r"x\u001b[2J\u007f\u009b2J\r";
    assert!(said.contains(SHOWN) || said.contains(json), "{command:?}: {said}");
}

/// Runs `command` twice, with its events as text and as JSON.
fn both_ways(command: impl Fn() -> Command) {
    escaped(&mut command());
    escaped(command().args(["--log-format", "json"]));
}

#[test]
fn nothing_of_a_packed_artifact_reaches_the_terminal_raw() {
    for (kind, name, target) in
        [(b'1', "x", HOSTILE), (b'S', HOSTILE, ""), (b'3', HOSTILE, ""), (b'0', HOSTILE, "")]
    {
        let input = Input::handmade(|archive| {
            archive.member(&format!("{STAGE}/{name}"), kind, target, 0o644, b"");
        });
        both_ways(|| input.build());
        both_ways(|| run(&["inspect", "--json"], &input.shard().join("a_lib_generic.tar.zst")));
    }
}

#[test]
fn nothing_of_a_folder_reaches_the_terminal_raw() {
    let input = Input::folder();
    fs::write(input.stage().join("lib/file"), "").unwrap();
    // R005: outside of all prefixes. R008: packed in an unknown way.
    fs::write(input.shard().join("a_lib_generic").join(HOSTILE), "").unwrap();
    fs::write(input.shard().join(format!("b_lib_generic.tar.{HOSTILE}")), "").unwrap();
    both_ways(|| input.build());
    escaped(&mut run(&["discover"], &input.shard()));
    escaped(&mut run(&["inspect"], &input.shard().join("a_lib_generic")));
    symlink(HOSTILE, input.stage().join("link")).unwrap();
    both_ways(|| input.build());
    let named = input.shard().join(HOSTILE);
    fs::write(&named, "").unwrap();
    both_ways(|| run(&["inspect"], &named));
    // An argument that a shell may make of `*`.
    escaped(rockpack().arg("inspect").arg(format!("--{HOSTILE}")));
}

/// Opens a `.deb` with every command that opens packages.
fn opened(package: &Path) {
    for arguments in [&["inspect"][..], &["inspect", "--json"], &["verify"], &["verify", "--json"]]
    {
        harmless(&mut run(arguments, package));
    }
}

#[test]
fn nothing_of_the_members_of_a_package_reaches_the_terminal_raw() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, target) in [(b'1', "./etc/passwd"), (b'3', ""), (b'0', "")] {
        let package = deb(folder.path(), |data| {
            data.member(&format!("./{HOSTILE}"), kind, target, 0o644, b"")
        });
        opened(&package);
        if kind != b'0' {
            both_ways(|| run(&["inspect", "--json"], &package));
            escaped(&mut run(&["verify"], &package));
        }
    }
    let linked = |data: &mut Handmade| data.member("./opt/link", b'2', HOSTILE, 0o777, b"");
    let package = deb(folder.path(), linked);
    opened(&package);
    both_ways(|| run(&["inspect"], &package));
    let short = "x\u{1b}[2J\u{7f}\u{9b}2J\r\nforged";
    for owners in [[short, "root"], ["root", short]] {
        let package = deb(folder.path(), |data| {
            data.owned(owners, ("./opt/file", b'0', "", 0o644), b"");
        });
        opened(&package);
        both_ways(|| run(&["inspect"], &package));
    }
}

#[test]
fn nothing_of_a_control_archive_reaches_the_terminal_raw() {
    let folder = tempfile::tempdir().unwrap();
    let fields = CONTROL.lines().map(|line| line.split_once(": ").unwrap().0);
    for field in
        fields.chain(["Depends", "Provides", "Conflicts", "Odd", "X-ROCm-GPU-Architecture"])
    {
        let others = CONTROL.lines().filter(|line| !line.starts_with(field));
        let mut control: String = others.map(|line| format!("{line}\n")).collect();
        control.push_str(&format!("{field}: {IN_LINE}\n"));
        let package = controlled(folder.path(), &[("control", &control)], |_| {});
        opened(&package);
        both_ways(|| run(&["inspect"], &package));
        let mut repo = run(&["repo"], &package);
        harmless(repo.arg("--out").arg(folder.path().join("repo")));
    }
    let named = format!("{CONTROL}{}: x\n", IN_LINE.replace('\r', ""));
    opened(&controlled(folder.path(), &[("control", &named)], |_| {}));
    let sums = format!("{}  {IN_LINE}\n", "0".repeat(32));
    let package = controlled(folder.path(), &[("control", CONTROL), ("md5sums", &sums)], |_| {});
    opened(&package);
    both_ways(|| run(&["verify"], &package));
}

/// The names of the members around a `.deb`'s archives are ASCII, with at most 16 letters.
#[test]
fn nothing_of_the_framing_of_a_package_reaches_the_terminal_raw() {
    let folder = tempfile::tempdir().unwrap();
    let package = deb(folder.path(), |_| {});
    let bytes = fs::read(&package).unwrap();
    for name in ["control.tar.zst", "data.tar.zst", "debian-binary"] {
        let mut odd = bytes.clone();
        let at = odd.windows(name.len()).position(|window| window == name.as_bytes()).unwrap();
        odd[at..at + 16].copy_from_slice(b"x\x1b[2J\x7f\r\nforged  ");
        fs::write(&package, odd).unwrap();
        opened(&package);
        let mut repo = run(&["repo"], &package);
        harmless(repo.arg("--out").arg(folder.path().join("repo")));
    }
}

#[test]
fn nothing_about_device_code_reaches_the_terminal_raw() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = bundle(1, &[[4096, 0]], &format!("odd-{HOSTILE}"));
    bytes.resize(4096, 0);
    let bundle = folder.path().join("bundle");
    fs::write(&bundle, &bytes).unwrap();
    both_ways(|| run(&["inspect"], &bundle));
    both_ways(|| run(&["inspect", "--json"], &bundle));
    for field in ["component_name", "prefix", "arch", "file", "odd"] {
        let path = folder.path().join("odd.kpm");
        fs::write(&path, manifest(field)).unwrap();
        harmless(&mut run(&["inspect"], &path));
        harmless(&mut run(&["inspect", "--json"], &path));
        if field != "odd" {
            both_ways(|| run(&["inspect"], &path));
        }
        let package = deb(folder.path(), |data| data.file("./opt/odd.kpm", &manifest(field)));
        opened(&package);
    }
}

/// A manifest of archives with one hostile text.
fn manifest(hostile: &str) -> Vec<u8> {
    let arch = unless_hostile("arch", "gfx1100", hostile);
    let file = unless_hostile("file", "a_gfx1100.kpack", hostile);
    let archive = map(vec![
        ("architecture", arch.as_str().into()),
        ("file", file.as_str().into()),
        ("filename", file.as_str().into()),
        ("size", 1.into()),
        ("kernel_count", 1.into()),
    ]);
    let name = unless_hostile("odd", "format_version", hostile);
    let manifest = map(vec![
        (&name, 1.into()),
        ("component_name", unless_hostile("component_name", "a", hostile).into()),
        ("prefix", unless_hostile("prefix", "lib", hostile).into()),
        ("kpack_files", map(vec![(&arch, archive)])),
    ]);
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &manifest).unwrap();
    bytes
}

/// The text of a field: the usual one, unless `hostile` names the field.
fn unless_hostile(field: &str, usual: &str, hostile: &str) -> String {
    if field == hostile { HOSTILE.to_owned() } else { usual.to_owned() }
}

fn map(fields: Vec<(&str, Value)>) -> Value {
    Value::Map(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

#[test]
fn nothing_of_an_rpm_reaches_the_terminal_raw() {
    need(&["rpmbuild"]);
    let folder = tempfile::tempdir().unwrap();
    let specification = "Name: odd\nVersion: 1\nRelease: 1\nSummary: x%(printf '\\033[2J')\nLicense: MIT\n\
        BuildArch: noarch\nVendor: v%(printf '\\033[2J')\n%description\nfirst%(printf '\\033[2J')\nsecond\n%install\n\
        mkdir -p %{buildroot}/opt\n\
        ln -s \"$(printf 'x\\033[2J\\177\\302\\2332J\\r\\nforged')\" %{buildroot}/opt/link\n\
        %files\n/opt/link\n";
    let package = rpm(folder.path(), specification);
    opened(&package);
    both_ways(|| run(&["inspect"], &package));
    let shown = harmless(&mut inspect(&package));
    assert!(shown.contains("  Summary: x\\u{1b}[2J\n"), "{shown}");
    assert!(shown.contains("  Description: first\\u{1b}[2J\n    second\n"), "{shown}");
}

#[test]
fn a_description_keeps_its_lines_and_begins_none() {
    let folder = tempfile::tempdir().unwrap();
    // A control file with other ASCII control characters is refused.
    let control = format!("{CONTROL} one\u{9b}2J\n .\n  two\tthree\r\n");
    let package = controlled(folder.path(), &[("control", &control)], |_| {});
    let shown = harmless(&mut inspect(&package));
    let lines = "  Description: x\n    one\\u{9b}2J\n\n     two\\tthree\n";
    assert!(shown.contains(lines), "{shown}");
}

#[test]
fn json_keeps_every_text_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let package = deb(folder.path(), |data| data.member("./opt/link", b'2', HOSTILE, 0o777, b""));
    let shown = harmless(inspect(&package).arg("--json"));
    let found: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(found[0]["members"][0]["target"], HOSTILE);
}
