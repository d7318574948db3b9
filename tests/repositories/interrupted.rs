//! Runs that end early, and runs at the same time.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use support::repo_fixture::{contents, deb, plain_spec, publish, refused, repo, repo_at, rpm};
use support::tools::need;
use support::waiting::Process;

/// Checks that all files of the suite's index exist under the names that apt asks for, and returns its packages.
fn valid(out: &Path) -> Vec<String> {
    let suite = out.join("dists/stable");
    let release = fs::read_to_string(suite.join("Release")).unwrap();
    let mut index = String::new();
    let rows = release.lines().skip_while(|line| *line != "SHA256:").skip(1);
    for row in rows.take_while(|line| line.starts_with(' ')) {
        let [digest, _, path] = row.split_whitespace().collect::<Vec<_>>().try_into().unwrap();
        let folder = suite.join(path);
        let hashed = folder.parent().unwrap().join("by-hash/SHA256").join(digest);
        let bytes = fs::read(&hashed).unwrap_or_else(|_| panic!("{path} by its digest"));
        let own =
            rockpack_core::content::Content::of_bytes(bytes.clone()).digest().unwrap().to_string();
        assert_eq!(own, digest);
        if path == "main/binary-amd64/Packages" {
            index = String::from_utf8(bytes).unwrap();
        }
    }
    let paths: Vec<String> = index
        .lines()
        .filter_map(|line| line.strip_prefix("Filename: "))
        .map(str::to_owned)
        .collect();
    assert!(paths.iter().all(|path| out.join(path).is_file()));
    paths
}

fn start(command: &mut std::process::Command) -> Process {
    Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
}

#[test]
fn a_killed_run_leaves_a_valid_repository_and_nothing_to_clean_up() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, more, out) =
        (room.path().join("packages"), room.path().join("more"), room.path().join("repo"));
    deb(&packages, ("one", "1", "amd64"), "");
    rpm(&packages, &plain_spec("plain", "1", ""));
    publish(&mut repo(&[&packages], &out));
    for number in 0..30 {
        deb(&more, (&format!("more{number}"), "1", "amd64"), "");
    }
    let old = valid(&out);
    let mut killed = 0;
    for delay in 0..40 {
        let mut run = start(&mut repo(&[&packages, &more], &out));
        std::thread::sleep(Duration::from_millis(delay));
        killed += usize::from(run.kill());
        let now = valid(&out);
        if now != old {
            assert_eq!(now.len(), 31, "either all or nothing");
            publish(
                repo_at(&[], &out, 0)
                    .args((0..30).flat_map(|n| ["--remove".to_owned(), format!("more{n}")])),
            );
        }
    }
    assert!(killed > 0, "no run was killed: the machine is too fast for this test");
    publish(&mut repo(&[&packages, &more], &out));
    // A repository that never had these accidents, without what waits to be removed.
    let fresh = room.path().join("fresh");
    publish(&mut repo(&[&packages], &fresh));
    publish(&mut repo(&[&packages, &more], &fresh));
    let there = contents(&out);
    assert!(contents(&fresh).keys().all(|name| there.contains_key(name)));
    assert!(fs::read_dir(out.join(".rockpack/unfinished")).unwrap().next().is_none());
    assert_eq!(valid(&out), valid(&fresh));
}

#[test]
fn two_writers_take_turns_or_the_second_says_why_not() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("repo");
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    publish(&mut repo(&[&one], &out));
    let lock = fs::File::open(out.join(".rockpack/lock")).unwrap();
    lock.lock().unwrap();
    let (said, code) = refused(&mut repo(&[&one], &out));
    assert!(code == 2 && said.contains("another run") && said.contains("--wait"), "{said}");
    let mut waiting = start(repo(&[&one], &out).arg("--wait"));
    std::thread::sleep(Duration::from_millis(200));
    assert!(waiting.has_ended().is_none(), "it waits");
    lock.unlock().unwrap();
    assert!(waiting.end().success());
    // Several at once lose nothing.
    let files: Vec<_> =
        (0..4).map(|n| deb(room.path(), (&format!("p{n}"), "1", "amd64"), "")).collect();
    let runs: Vec<Process> =
        files.iter().map(|file| start(repo(&[file], &out).arg("--wait"))).collect();
    for mut run in runs {
        assert!(run.end().success());
    }
    assert_eq!(valid(&out).len(), 5);
}

#[test]
fn no_name_of_a_suite_is_taken_for_an_interrupted_run() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("repo");
    let [one, two] = ["one", "two"].map(|name| deb(room.path(), (name, "1", "amd64"), ""));
    publish(&mut repo(&[&one], &out));
    let suites = ["stable.next", "next-stable", "next", "stable.json", "rpm"];
    for suite in suites {
        publish(repo(&[&two], &out).args(["--suite", suite]));
    }
    // A next run reads all states; each suite still has what it had.
    publish(&mut repo_at(&[], &out, 1));
    assert_eq!(valid(&out).len(), 1);
    for suite in suites {
        publish(repo_at(&[], &out, 1).args(["--suite", suite]));
        let index = out.join("dists").join(suite).join("main/binary-amd64/Packages");
        assert!(fs::read_to_string(index).unwrap().contains("Package: two\n"), "{suite}");
    }
}
