//! The tutorial and README are true: the commands in their `console` blocks run in order, and print the
//! output shown.
//!
//! Commands are in blocks marked `console`, each after `$ ` (continued after a `\`), followed by its standard
//! output. A document's commands run in a folder with nothing but `examples`. With `ROCKPACK_BLESS=1` the
//! output is written into the document instead; look at the difference before you keep it.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use support::program::rockpack_path;
use support::tools;

/// The documents, each with the least number of commands.
const DOCUMENTS: [(&str, usize); 2] = [("docs/tutorial.md", 10), ("README.md", 1)];

/// A part of a document.
enum Part {
    /// Unchanged lines.
    Text(String),
    /// A command with its lines, and the output shown.
    Step { command: String, output: String },
}

/// Cuts a document at its commands.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = vec![Part::Text(String::new())];
    let (mut in_block, mut continued) = (false, false);
    for line in text.split_inclusive('\n') {
        if line.starts_with("```") {
            in_block = line == "```console\n";
        }
        match parts.last_mut().unwrap() {
            Part::Step { command, .. } if continued => command.push_str(line),
            _ if in_block && line.starts_with("$ ") => {
                parts.push(Part::Step { command: line.to_owned(), output: String::new() });
            }
            Part::Step { output, .. } if in_block => output.push_str(line),
            Part::Text(text) => text.push_str(line),
            Part::Step { .. } => parts.push(Part::Text(line.to_owned())),
        }
        let is_command =
            matches!(parts.last(), Some(Part::Step { output, .. }) if output.is_empty());
        continued = is_command && line.ends_with("\\\n");
    }
    parts
}

/// The standard output of a command, which must succeed.
fn run(command: &str, folder: &Path) -> String {
    let program = rockpack_path().parent().unwrap();
    let path = env::join_paths(
        [program.to_path_buf()].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap())),
    );
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", command.trim_start_matches("$ ")]).current_dir(folder);
    shell.env("PATH", path.unwrap()).env("LC_ALL", "C").env_remove("SOURCE_DATE_EPOCH");
    tools::succeed(&mut shell)
}

#[test]
fn every_command_prints_what_the_tutorial_shows() {
    tools::need(&["dpkg-deb", "gpg"]);
    for (document, fewest) in DOCUMENTS {
        let steps = walk_through(document);
        assert!(steps >= fewest, "only {steps} commands were found in {document}");
    }
}

/// Runs the commands of a document, and compares their output with the text. Returns their number.
fn walk_through(document: &str) -> usize {
    let file = tools::repository(document);
    let shown = fs::read_to_string(&file).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(tools::repository("examples"), folder.path().join("examples"))
        .unwrap();
    let bless = env::var("ROCKPACK_BLESS").as_deref() == Ok("1");
    let (mut steps, mut blessed) = (0, String::new());
    for part in parts(&shown) {
        match part {
            Part::Text(text) => blessed.push_str(&text),
            Part::Step { command, output } => {
                let actual = run(&command, folder.path());
                assert!(
                    bless || actual == output,
                    "{command}\nprints\n{actual}\nand not\n{output}"
                );
                blessed.push_str(&(command + &actual));
                steps += 1;
            }
        }
    }
    if bless {
        fs::write(&file, blessed).unwrap();
    }
    steps
}
