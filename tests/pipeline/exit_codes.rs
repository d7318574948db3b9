//! The exit codes of the documentation, each tried with every case that the page lists for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use support::example::{Set, build_of, plant, rockpack, shards, tree};
use support::tools::{repository, told};
use tempfile::TempDir;

/// A folder with files for commands that fail.
struct Room(TempDir);

impl Room {
    fn new() -> Self {
        let room = Self(tempfile::tempdir().unwrap());
        for folder in ["empty", "damaged/blas_lib_gfx1151", "taken.toml"] {
            fs::create_dir_all(room.path(folder)).unwrap();
        }
        for (name, text) in [
            ("file", "text"),
            ("damaged.kpack", "KPAK"),
            ("version.toml", "version = '7_1'"),
            ("key.toml", "versoin = '7.1.0'"),
            ("syntax.toml", "version = "),
        ] {
            fs::write(room.path(name), text).unwrap();
        }
        room
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn build(&self, words: &[&str]) -> Command {
        let mut build = build_of(&shards(), &self.path("out"));
        build.current_dir(self.0.path()).args(words);
        build
    }

    /// `rockpack plan` by the configuration of this name, with further arguments.
    fn plan(&self, words: &[&str]) -> Command {
        let mut plan = self.command(&["plan", "--artifacts"]);
        plan.arg(shards()).args(words);
        plan
    }

    fn plan_with_version(&self, words: &[&str]) -> Command {
        self.plan(&[&["--version", "7.1.0"], words].concat())
    }

    fn repo_of_nothing(&self, words: &[&str]) -> Command {
        self.command(&[&["repo", "empty", "--out", "repository"], words].concat())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = rockpack();
        command.current_dir(self.0.path()).args(words);
        command
    }

    /// Puts the `.deb` packages of the example, which are built once, into the output folder.
    fn build_debs(&self) {
        static DEBS: OnceLock<Set> = OnceLock::new();
        let set = DEBS.get_or_init(|| Set::with(&["--format", "deb"]));
        plant(&tree(&set.out()), &self.path("out"), false);
    }

    /// Verifies a built set; if `lost`, without one of its packages.
    fn verify(&self, lost: bool) -> Command {
        self.build_debs();
        if lost {
            fs::remove_file(self.path("out/rocm_7.1.0-1_amd64.deb")).unwrap();
        }
        self.command(&["verify", "out"])
    }

    /// Compares the set with one of another prefix.
    fn compare(&self, more: &[&str]) -> Command {
        self.build_debs();
        let words = ["--version", "7.1.0", "--format", "deb", "--only", "blas", "--diff", "out"];
        self.plan(&[&words[..], more].concat())
    }

    /// Every command that reads `name`, which it expects to be a folder of artifacts.
    fn of_artifacts(&self, name: &str) -> Vec<Command> {
        let commands: [&[&str]; 5] = [
            &["build", "--out", "out", "--artifacts", name],
            &["plan", "--artifacts", name],
            &["discover", name],
            &["split", "--output-dir", "out", "--artifacts", name],
            &["recombine", "--output-dir", "out", "--artifacts", name],
        ];
        commands.iter().map(|words| self.command(words)).collect()
    }

    /// The commands that produce the case described by `words` on the page.
    fn commands(&self, words: &str) -> Vec<Command> {
        let version = ["--version", "7.1.0"];
        match words {
            "a build" => vec![self.build(&[])],
            "help" => vec![self.command(&["verify", "--help"]), self.command(&["--version"])],
            "a verification without a failed check" => vec![self.verify(false)],
            "differences without `--exit-code`" => vec![self.compare(&[])],
            "a failed check" => vec![self.verify(true)],
            "differences with `--exit-code`" => vec![self.compare(&["--exit-code"])],
            "a bad package that was left out" => {
                self.build_debs();
                fs::write(self.path("out/bad_1_all.deb"), "!<arch>\n").unwrap();
                vec![self.command(&["repo", "out", "--out", "repository", "--skip-bad"])]
            }
            "a machine without a known GPU" => vec![self.command(&["gpu", "--sysfs", "empty"])],
            "a GPU that no package serves" => {
                self.build_debs();
                vec![self.command(&["gpu", "gfx1036", "--from", "out", "--for", "apt"])]
            }
            "an unknown GPU" => {
                vec![self.command(&["gpu", "MI300"]), self.command(&["explain", "MI300"])]
            }
            "a damaged artifact" => self.of_artifacts("damaged"),
            "a damaged file to inspect" => vec![
                self.command(&["inspect", "damaged.kpack"]),
                self.command(&["extract", "damaged.kpack", "--out", "out"]),
            ],
            "a warning under `--strict`" => vec![self.build(&["--strict"])],
            "an output folder that cannot be made" => {
                vec![build_of(&shards(), Path::new("/proc/packages"))]
            }
            "an unknown option" => vec![self.command(&["build", "--no-such-option"])],
            "a missing folder" => {
                let mut all = self.of_artifacts("nothing");
                all.push(self.command(&["verify", "nothing"]));
                all.push(self.command(&["verify", "empty", "--against", "nothing"]));
                all.push(self.command(&["repo", "nothing", "--out", "repository"]));
                all
            }
            "an empty folder" => {
                let mut all = self.of_artifacts("empty");
                all.push(self.command(&["verify", "empty"]));
                all.push(self.command(&["verify", "--installed", "empty"]));
                all.push(self.command(&["inspect", "empty"]));
                all.push(self.command(&["repo", "empty", "--out", "repository"]));
                all
            }
            "a folder of packages under `--installed`" => {
                self.build_debs();
                vec![self.command(&["verify", "--installed", "out"])]
            }
            "a missing file to inspect" => vec![
                self.command(&["inspect", "nothing"]),
                self.command(&["extract", "nothing", "--out", "out"]),
                self.command(&["verify", "nothing.kpack"]),
            ],
            "a missing configuration" => self.plans_by("nothing.toml"),
            "a wrong version" => vec![self.plan(&["--version", "7_1"])],
            "a wrong version in the configuration" => self.plans_by("version.toml"),
            "an unknown key in the configuration" => self.plans_by("key.toml"),
            "a file that is not a configuration" => {
                self.plans_by("syntax.toml").into_iter().chain(self.plans_by("file")).collect()
            }
            "a missing key" => self.of_key("nothing"),
            "a file that is not a key" => self.of_key("file"),
            "a missing earlier set" => vec![
                self.plan(&[&version[..], &["--since", "nothing"]].concat()),
                self.plan(&[&version[..], &["--diff", "nothing"]].concat()),
            ],
            "a file of an unknown kind" => vec![
                self.command(&["inspect", "file"]),
                self.command(&["extract", "file", "--out", "out"]),
                self.command(&["repo", "file", "--out", "repository"]),
                self.command(&["verify", "file"]),
            ],
            "a file that is not an earlier set" => vec![
                self.plan(&[&version[..], &["--since", "file"]].concat()),
                self.plan(&[&version[..], &["--diff", "file"]].concat()),
            ],
            "a validity of more than 36,525 days" => {
                let days = "valid_days=36526";
                vec![
                    self.command(&["repo", "empty", "--out", "repository", "--set", days]),
                    self.build(&["--repo", "repository", "--repo-set", days]),
                ]
            }
            "a file in the way" => vec![
                build_of(&shards(), &self.path("file")),
                self.command(&["repo", "empty", "--out", "file"]),
                self.command(&["verify", "empty", "--join", "file/below"]),
                self.command(&["discover", "empty", "--propose", "taken.toml"]),
            ],
            "standard output in place of a folder" => vec![
                self.command(&["extract", "file", "--out", "-"]),
                self.command(&["build", "--artifacts", "empty", "--out", "-"]),
                self.command(&["repo", "empty", "--out", "-"]),
                self.command(&["split", "--artifacts", "empty", "--output-dir", "-"]),
                self.command(&["verify", "empty", "--join", "-"]),
                self.command(&["discover", "empty", "--propose", "-"]),
            ],
            "a malformed time" => {
                let mut build = self.build(&[]);
                build.env("SOURCE_DATE_EPOCH", "yesterday");
                vec![build]
            }
            other => panic!("the page names `{other}`, which nothing here tries"),
        }
    }

    fn plans_by(&self, config: &str) -> Vec<Command> {
        vec![self.plan(&["--config", config])]
    }

    fn of_key(&self, name: &str) -> Vec<Command> {
        vec![
            self.build(&["--sign-key", name]),
            self.command(&["repo", "empty", "--out", "repository", "--sign-key", name]),
            self.command(&["verify", "empty", "--key", name]),
        ]
    }
}

/// The table's rows: the cases described for each code.
fn rows() -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(repository("docs/reference/exit-codes.md")).unwrap();
    let (_, table) = text.split_once("<!-- exit codes: ").unwrap();
    let (table, _) = table.split_once("<!-- end of exit codes -->").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let examples = cells[3].split("; ").filter(|words| !words.is_empty());
        (cells[1].to_owned(), examples.map(str::to_owned).collect())
    };
    rows.map(row).collect()
}

#[test]
fn each_example_ends_with_the_code_of_its_row() {
    let rows = rows();
    let codes: Vec<&str> = rows.keys().map(String::as_str).collect();
    // tests/disturbed/signals.rs tries the codes of signals.
    assert_eq!(codes, ["0", "1", "129, 130, 143", "2", "64"]);
    let mut wrong = Vec::new();
    for (code, examples) in rows.iter().filter(|(code, _)| !code.contains(',')) {
        let code: i32 = code.parse().unwrap();
        for words in examples {
            let room = Room::new();
            for mut command in room.commands(words) {
                let output = command.output().unwrap();
                if output.status.code() != Some(code) {
                    let said = String::from_utf8_lossy(&output.stderr).into_owned();
                    wrong.push(format!("{words}: {command:?}: {}\n{said}", output.status));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every option that names a file reports the missing one, and what to do.
#[test]
fn a_path_of_nothing_is_told_with_its_name_and_what_to_do() {
    let room = Room::new();
    let public = ["--sign-command", "false", "--public-key", "nothing"];
    for mut command in [
        room.command(&["config", "show", "--config", "nothing.toml"]),
        room.command(&["config", "show", "--config", "nothing"]),
        room.plan_with_version(&["--config", "nothing.yaml"]),
        room.plan_with_version(&["--config", "empty"]),
        room.plan_with_version(&["--packages", "nothing.json"]),
        room.plan_with_version(&["--since", "nothing"]),
        room.plan_with_version(&["--diff", "nothing"]),
        room.repo_of_nothing(&["--sign-key", "nothing"]),
        room.repo_of_nothing(&public),
        room.command(&["verify", "nothing.deb"]),
        room.command(&["verify", "empty", "--key", "nothing"]),
        room.command(&["verify", "empty", "--against", "nothing"]),
        room.command(&["inspect", "nothing"]),
        room.command(&["extract", "nothing", "--out", "out"]),
        room.command(&["discover", "nothing"]),
        room.command(&["recombine", "--output-dir", "out", "--artifacts", "nothing"]),
    ] {
        let said = told(&mut command);
        assert!(said.ends_with("exit status: 64\n"), "{command:?}: {said}");
        let is_named = said.contains("nothing") || said.contains("empty: ");
        let why =
            ["No such file or directory", "Is a directory", "is not a regular file", "is a folder"];
        assert!(is_named && why.iter().any(|why| said.contains(why)), "{command:?}: {said}");
        assert!(said.contains("help: "), "{command:?}: {said}");
        assert!(!said.contains("syntax"), "{command:?}: {said}");
    }
    let said = told(&mut room.plan_with_version(&["--config", "file"]));
    assert!(said.contains("file: cannot tell the syntax of the configuration:"), "{said}");
}
