//! Files below `.rockpack`: damaged ones are refused and change nothing, and states are those of the indexes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::example::{files, tree};
use support::repo_fixture::{contents, failed_checks, publish, refused, verify};
use support::sweep::or_all;
use support::tools::{need, run, succeed};

use crate::broken_off::Room;
use crate::pool::state_text;
use crate::python::wheels::Wheel;

const STATES: [&str; 3] = ["apt-stable", "rpm", "python"];

/// A signed repository with packages of all kinds, of which a wheel is yanked and one was removed, and packages that
/// are new to it.
struct Repository {
    room: Room,
    out: PathBuf,
    more: PathBuf,
}

impl Repository {
    fn new() -> Self {
        let room = Room::new();
        let (first, more, out) = (room.packages("1"), room.packages("2"), room.path("out"));
        for (folder, name, version) in
            [(&first, "demo", "1.0"), (&first, "core", "1.0"), (&more, "demo", "2.0")]
        {
            Wheel::of(name, version, "").write(folder);
        }
        publish(with_keys(&mut room.run(&[&first], &out, 0)));
        let old = Wheel::of("core", "0.9", "").write(&room.path("old"));
        publish(room.run_and_keep_all(&[&old], &out, 1).args(["--yank", "core=1.0=so it is"]));
        publish(room.run(&[], &out, 2).args(["--remove", "core=0.9"]));
        Self { room, out, more }
    }

    /// Adds the new packages to a copy.
    fn add(&self, out: &Path) -> Command {
        let mut command = self.run(out);
        with_keys(&mut command);
        command
    }

    /// The same without a key package.
    fn run(&self, out: &Path) -> Command {
        self.room.run(&[&self.more], out, 20)
    }

    fn state(&self, channel: &str) -> PathBuf {
        self.out.join(format!(".rockpack/{channel}.json.zst"))
    }

    /// A copy of which a publication ended while the files that clients read were replaced.
    fn interrupted(&self) -> PathBuf {
        let out = self.room.path("interrupted");
        let before = contents(&self.out);
        for ends in 20.. {
            copy(&self.out, &out);
            let is_done = self.room.fails_after(ends, &self.more, &out, 10);
            assert!(!is_done, "no run ended among the files that clients read");
            let release = "dists/stable/Release";
            if contents(&out)[release] != before[release] {
                break;
            }
        }
        out
    }
}

fn with_keys(command: &mut Command) -> &mut Command {
    command.args(["--set", "name=own", "--key-package", "1"])
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    run(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// Replaces a file, of which others may be hard links.
fn replace(file: &Path, bytes: &[u8]) {
    fs::remove_file(file).unwrap();
    fs::write(file, bytes).unwrap();
}

/// Bits that are changed, as offset and number: those of the header of a frame, and one in some of all bytes.
fn bits(len: usize, name: &str) -> Vec<(usize, usize)> {
    let header = if name == "apt-stable.json.zst" { 4..6 } else { 0..0 };
    let step = len / or_all(6, len).max(1) + 1;
    let all = header.flat_map(|at| (0..8).map(move |bit| (at, bit)));
    all.chain((0..len).step_by(step).map(|at| (at, at / step % 8))).collect()
}

#[test]
fn a_changed_bit_is_refused_or_changes_nothing() {
    need(&["dpkg-deb", "rpmbuild", "gpg", "python3"]);
    let repository = Repository::new();
    let (out, interrupted) = (repository.room.path("damaged"), repository.interrupted());
    for base in [&repository.out, &interrupted] {
        copy(base, &out);
        publish(&mut repository.add(&out));
        let (before, good) = (contents(base), contents(&out));
        copy(base, &out);
        for (name, bytes) in files(&base.join(".rockpack")) {
            let (file, is_state) = (out.join(".rockpack").join(&name), name.ends_with(".zst"));
            let (mut count, mut same) = (0, 0);
            for (at, bit) in bits(bytes.len(), &name) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                replace(&file, &damaged);
                let is_told = is_state.then(|| verify(&out).contains("V109"));
                let ended = repository.add(&out).output().unwrap();
                count += 1;
                if ended.status.success() {
                    assert!(contents(&out) == good, "{name}: bit {bit} of {at} is published");
                    same += 1;
                    copy(base, &out);
                } else {
                    let said = String::from_utf8(ended.stderr).unwrap();
                    // An interrupted publication is finished before packages with keys are looked at.
                    let is_finished = !is_state && *base == interrupted;
                    let is_same = contents(&out) == before;
                    assert!(is_same || is_finished, "{name}: bit {bit} of {at}: {said}");
                    assert!(!is_state || said.contains(&name), "{name}: {said}");
                    assert_ne!(is_told, Some(false), "{name}: bit {bit} of {at}");
                    copy(base, &out);
                }
            }
            note!("{name}: {count} bits, {same} of them without effect");
            // Some bits of the frame's header say nothing, or the size of the window.
            assert!(!is_state || same <= 10, "{name}: {same} of {count}");
        }
    }
}

#[test]
fn what_is_no_whole_state_of_the_channel_is_refused() {
    need(&["dpkg-deb", "rpmbuild", "gpg", "python3"]);
    let repository = Repository::new();
    let before = contents(&repository.out);
    let others = STATES.map(|channel| fs::read(repository.state(channel)).unwrap());
    for (channel, whole) in STATES.into_iter().zip(&others) {
        let other = others.iter().find(|other| *other != whole).unwrap();
        let mut unchecked = whole[..whole.len() - 4].to_vec();
        unchecked[4] &= !4;
        let forms = [
            ("empty", Vec::new()),
            ("plain JSON", zstd::decode_all(&whole[..]).unwrap()),
            ("cut", whole[..whole.len() - 1].to_vec()),
            ("without checksum", unchecked),
            ("longer", [&whole[..], &b"\0"[..]].concat()),
            ("twice", [&whole[..], &whole[..]].concat()),
            ("skippable frame", [&b"\x50\x2a\x4d\x18\0\0\0\0"[..], &whole[..]].concat()),
            ("of another channel", other.clone()),
        ];
        for (name, bytes) in forms {
            fs::write(repository.state(channel), bytes).unwrap();
            let (said, _) = refused(&mut repository.add(&repository.out));
            let file = format!(".rockpack/{channel}.json.zst");
            for part in [file.as_str(), "restore the file from a backup", "yanked wheels"] {
                assert!(said.contains(part), "{name}: {said}");
            }
            assert!(contents(&repository.out) == before, "{name}");
            let said = verify(&repository.out);
            assert!(said.contains(&format!("V109 state-mismatch: {file}")), "{name}: {said}");
        }
        fs::write(repository.state(channel), whole).unwrap();
    }
    assert_eq!(failed_checks(&verify(&repository.out)), [""; 0]);
}

/// Writes the text of a state with a checksum.
fn write_state(file: &Path, text: &str) {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    std::io::copy(&mut text.as_bytes(), &mut encoder).unwrap();
    fs::write(file, encoder.finish().unwrap()).unwrap();
}

#[test]
fn verify_compares_states_with_the_indexes() {
    need(&["dpkg-deb", "rpmbuild", "gpg", "python3"]);
    let repository = Repository::new();
    let out = &repository.out;
    let earlier = STATES.map(|channel| fs::read(repository.state(channel)).unwrap());
    publish(&mut repository.add(out));
    assert_eq!(failed_checks(&verify(out)), [""; 0]);
    let changes = [
        ("apt-stable", "\"sha256\":\"", "\"sha256\":\"0"),
        ("rpm", "\"sha256\":\"", "\"sha256\":\"0"),
        ("python", "wheels/demo/demo-2.0", "wheels/demo/demo-2.1"),
    ];
    for (channel, from, to) in changes {
        let file = repository.state(channel);
        let (whole, text) = (fs::read(&file).unwrap(), state_text(&file));
        assert!(text.contains(from), "{from}: {text}");
        write_state(&file, &text.replace(from, to));
        let said = verify(out);
        assert_eq!(failed_checks(&said), ["V109"], "{from}: {said}");
        assert!(
            said.contains(&format!("{channel}.json.zst: contradicts the indexes about")),
            "{said}"
        );
        fs::write(&file, whole).unwrap();
    }
    // The state of an earlier publication, and one whose indexes are gone.
    for (channel, earlier) in STATES.into_iter().zip(&earlier) {
        let file = repository.state(channel);
        let whole = fs::read(&file).unwrap();
        fs::write(&file, earlier).unwrap();
        let codes = failed_checks(&verify(out));
        assert!(codes.contains(&"V109".to_owned()), "{channel}: {codes:?}");
        fs::write(&file, whole).unwrap();
    }
    for signature in ["dists/stable/InRelease", "dists/stable/Release.gpg"] {
        let whole = fs::read(out.join(signature)).unwrap();
        fs::remove_file(out.join(signature)).unwrap();
        assert_eq!(failed_checks(&verify(out)), ["V104"], "{signature}");
        fs::write(out.join(signature), whole).unwrap();
    }
    // The pages stay as they are, and the next state says so.
    fs::write(repository.state("python"), &earlier[2]).unwrap();
    publish(&mut repository.add(out));
    assert_eq!(failed_checks(&verify(out)), [""; 0]);
    fs::remove_dir_all(out.join("repodata")).unwrap();
    let said = verify(out);
    assert!(said.contains("V109 state-mismatch: .rockpack/rpm.json.zst: is the state"), "{said}");
}

#[test]
fn a_dry_run_says_what_a_publication_does_and_changes_nothing() {
    need(&["dpkg-deb", "rpmbuild", "gpg", "python3"]);
    let repository = Repository::new();
    let [fresh, out] = ["fresh", "published"].map(|name| repository.room.path(name));
    let json = |command: &mut Command| -> Value {
        serde_json::from_str(&succeed(command.arg("--json"))).unwrap()
    };
    let interrupted = repository.interrupted();
    for base in [&interrupted, &repository.out, &fresh] {
        let before = tree(base);
        let mut planned = json(repository.run(base).arg("--dry-run"));
        assert_eq!((tree(base), base.exists()), (before, *base != fresh));
        assert_eq!(planned.as_object_mut().unwrap().remove("dry_run"), Some(true.into()));
        // Pages of wheels that stay as they are are not written again.
        let of_channels = |report: &mut Value, field: &str| -> Vec<Value> {
            let channels = report["channels"].as_array_mut().unwrap().iter_mut();
            channels.filter_map(|it| it.as_object_mut().unwrap().remove(field)).collect()
        };
        assert!(of_channels(&mut planned, "indexes").len() >= 2);
        let _ = fs::remove_dir_all(&out);
        if base.exists() {
            copy(base, &out);
        }
        let mut published = json(&mut repository.run(&out));
        // The URL of an index is that of the folder, and these are two.
        let urls = [&mut planned, &mut published].map(|it| of_channels(it, "index_url"));
        assert!(urls.iter().all(|urls| urls.len() == 1), "{urls:?}");
        assert_eq!(planned, published, "{}", base.display());
    }
}
