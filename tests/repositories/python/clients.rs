//! pip and uv install from an index that a plain web server serves.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use support::fat_wheels::{WheelSpec, library, metadata, wheel_command};
use support::installers::{self, CLIENTS};
use support::python::PYTHON;
use support::repo_fixture::{publish, repo, repo_at};
use support::tools::{need, run, said};
use support::waiting::{Process, until};

use super::wheels::{Wheel, family};
use crate::server::Server;

/// A virtual environment, into which both install from an index.
pub struct Environment {
    of_python: installers::Environment,
    index: String,
}

impl Environment {
    pub fn new(folder: &Path, url: &str) -> Self {
        let of_python = installers::Environment::new(folder);
        Self { of_python, index: format!("{url}/simple/") }
    }

    pub fn installs(&self, client: &str, words: &[&str]) -> Command {
        let mut command = self.of_python.client(client, "install");
        command.args(["--index-url", &self.index]).args(words);
        command
    }

    pub fn installed(&self) -> Vec<String> {
        self.of_python.installed()
    }
}

#[test]
fn hosts_and_their_device_wheels_are_installed_and_upgraded() {
    need(&["python3", "pip", "uv"]);
    let room = tempfile::tempdir().unwrap();
    let [first, second, out] = ["first", "second", "repo"].map(|name| room.path().join(name));
    family(&first, "1.9+rocm7.1");
    let late = "Requires-Python: >=4.0\n";
    Wheel::of("demo", "3.0", late).write(&first);
    publish(&mut repo(&[&first], &out));
    let server = Server::of(&out);
    let environments =
        CLIENTS.map(|client| (client, Environment::new(&room.path().join(client), &server.url)));
    for (client, environment) in &environments {
        let words = said(&mut environment.installs(client, &["demo[device-gfx1100]"]));
        // pip says what it downloads.
        let has = |what: &str| *client != "pip" || words.contains(what);
        assert!(has("demo-1.9%2Brocm7.1-py3-none-any.whl.metadata ("), "{words}");
        let expected = ["demo-1.9+rocm7.1", "demo_device_gfx1100-1.9+rocm7.1"];
        assert_eq!(environment.installed(), expected, "{client}");
    }
    family(&second, "1.10+rocm7.1");
    publish(&mut repo_at(&[&second], &out, 1));
    for (client, environment) in &environments {
        // Without its extra, the host alone is upgraded: the pin of the device wheel is broken.
        said(&mut environment.installs(client, &["-U", "demo[device-gfx1100,device-gfx942]"]));
        let expected = ["demo-1.10+rocm7.1", "demo_device_gfx1100-1.10+rocm7.1"];
        let expected: Vec<&str> =
            expected.into_iter().chain(["demo_device_gfx942-1.10+rocm7.1"]).collect();
        assert_eq!(environment.installed(), expected, "{client}");
        let other = environment.installs(client, &["absent"]).output().unwrap();
        assert!(!other.status.success(), "{client}");
    }
}

/// An extra also brings the device wheel of another wheel that its own requires, and so does a device wheel.
#[test]
fn extras_bring_device_wheels_of_required_wheels() {
    need(&["python3", "pip", "uv"]);
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let [input, wheels, out] = ["in", "wheels", "repo"].map(|name| room.path().join(name));
    for (name, lines) in [("a-plugin", "Requires-Dist: z-pjrt == 1.0\n"), ("z-pjrt", "")] {
        let library_path = format!("{}/_C.so", name.replace('-', "_"));
        let wheel = WheelSpec::new(name, "1.0").file(&library_path, &library());
        wheel.info("METADATA", &metadata(name, "1.0", lines)).write(&input);
    }
    run(&mut wheel_command(&[&input], &wheels));
    publish(repo(&[&wheels], &out).arg("--strict"));
    let server = Server::of(&out);
    let expected =
        ["a_plugin-1.0", "a_plugin_device_gfx906-1.0", "z_pjrt-1.0", "z_pjrt_device_gfx906-1.0"];
    for client in CLIENTS {
        for asked in ["a-plugin[device-gfx906]", "a-plugin-device-gfx906"] {
            let folder = room.path().join(format!("{client} {}", asked.len()));
            let environment = Environment::new(&folder, &server.url);
            assert_eq!(install(&environment, client, asked).0, expected, "{client} {asked}");
        }
    }
}

#[test]
fn yanked_wheels_are_left_out_unless_they_are_required() {
    need(&["python3", "pip", "uv"]);
    let room = tempfile::tempdir().unwrap();
    let [first, second, out] = ["first", "second", "repo"].map(|name| room.path().join(name));
    family(&first, "1.0");
    family(&second, "1.1");
    publish(&mut repo(&[&first, &second], &out));
    let server = Server::of(&out);
    let yank = ["--yank", "Demo=1.1=bad \"math\" <here>"];
    let told = publish(repo_at(&[], &out, 1).args(yank));
    assert!(told.contains("yanked: 1 wheel"), "{told}");
    for client in CLIENTS {
        let environment = Environment::new(&room.path().join(format!("{client}1")), &server.url);
        let (installed, _) = install(&environment, client, "demo[device-gfx942]");
        assert_eq!(installed, ["demo-1.0", "demo_device_gfx942-1.0"], "{client}");
        let environment = Environment::new(&room.path().join(format!("{client}2")), &server.url);
        let (installed, words) = install(&environment, client, "demo[device-gfx942]==1.1");
        assert_eq!(installed, ["demo-1.1", "demo_device_gfx942-1.1"], "{client}");
        assert!(words.contains("bad \"math\" <here>"), "{words}");
    }
    // The same wheels are given again: the mark stays.
    publish(&mut repo_at(&[&second], &out, 2));
    let page = fs::read_to_string(out.join("simple/demo/index.html")).unwrap();
    assert!(page.contains("data-yanked="), "{page}");
    publish(repo_at(&[], &out, 3).args(["--unyank", "demo-1.1-py3-none-any.whl"]));
    for client in CLIENTS {
        let environment = Environment::new(&room.path().join(format!("{client}3")), &server.url);
        assert_eq!(install(&environment, client, "demo").0, ["demo-1.1"], "{client}");
    }
}

/// Installs a requirement; returns what is installed then, and what the client said.
fn install(environment: &Environment, client: &str, requirement: &str) -> (Vec<String>, String) {
    let words = said(&mut environment.installs(client, &[requirement]));
    (environment.installed(), words)
}

/// A web server of a script, which gets a folder and a port.
pub struct Scripted {
    _child: Process,
    pub url: String,
}

impl Scripted {
    pub fn serve(script: &str, folder: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut python = Command::new(PYTHON);
        python.args(["-c", script]).arg(folder).arg(port.to_string());
        let child = Process::start(python.stdout(Stdio::null()).stderr(Stdio::null()));
        until("the web server answers", || TcpStream::connect(("127.0.0.1", port)).ok());
        Self { _child: child, url: format!("http://127.0.0.1:{port}") }
    }
}

/// Serves the pages for programs under the addresses of those for people, as a server does that looks at
/// what clients accept.
pub const NEGOTIATING: &str = r#"
import http.server, os, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    index_pages = ("index.json",)
    extensions_map = {".json": "application/vnd.pypi.simple.v1+json", "": "application/octet-stream"}
    def send_head(self):
        if self.path.endswith("/"):
            self.path += "index.json"
        return super().send_head()
    def log_message(self, *arguments):
        pass
os.chdir(sys.argv[1])
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
"#;

#[test]
fn pages_for_programs_say_the_same() {
    need(&["python3", "pip", "uv"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    for version in ["1.0+rocm7.1", "1.1+rocm7.1"] {
        family(&wheels, version);
    }
    let mut command = repo(&[&wheels], &out);
    publish(command.args(["--yank", "demo=1.1+rocm7.1"]));
    let server = Scripted::serve(NEGOTIATING, &out);
    for client in CLIENTS {
        let environment = Environment::new(&room.path().join(client), &server.url);
        said(&mut environment.installs(client, &["demo[device-gfx942]"]));
        let expected = ["demo-1.0+rocm7.1", "demo_device_gfx942-1.0+rocm7.1"];
        assert_eq!(environment.installed(), expected, "{client}");
    }
}

/// `--uploaded-prior-to` of pip and `--exclude-newer` of uv take what was first published before. pip reads times on
/// the pages for programs alone.
#[test]
fn clients_of_an_earlier_day_get_the_wheels_of_that_day() {
    const DAY: i64 = 86_400;
    need(&["python3", "pip", "uv"]);
    let room = tempfile::tempdir().unwrap();
    let [first, second, out] = ["first", "second", "repo"].map(|name| room.path().join(name));
    family(&first, "1.0");
    family(&second, "1.1");
    publish(&mut repo(&[&first], &out));
    publish(&mut repo_at(&[&second], &out, DAY));
    // What comes back had its time before.
    let words = ["--remove", "demo=1.0", "--allow=unmet"];
    publish(repo_at(&[], &out, 2 * DAY).args(words));
    publish(&mut repo_at(&[&first], &out, 3 * DAY));
    let (programs, people) = (Scripted::serve(NEGOTIATING, &out), Server::of(&out));
    for (client, option, url) in [
        ("pip", "--uploaded-prior-to", &programs.url),
        ("uv", "--exclude-newer", &programs.url),
        ("uv", "--exclude-newer", &people.url),
    ] {
        let folder = room.path().join(format!("{client}{}", url.rsplit(':').next().unwrap()));
        let environment = Environment::new(&folder, url);
        let before = "2023-11-14T22:13:20Z";
        let refused = environment.installs(client, &["demo", option, before]).output().unwrap();
        assert!(!refused.status.success(), "{client}: nothing was there");
        for (date, expected) in
            [("2023-11-15T22:13:20Z", "demo-1.0"), ("2023-11-15T22:13:21Z", "demo-1.1")]
        {
            said(&mut environment.installs(client, &["-U", "demo", option, date]));
            assert_eq!(environment.installed(), [expected], "{client} {url} {date}");
        }
    }
}

/// Serves a folder, and says 403 of what is not there, as buckets do whose files nobody may list.
const CLOSED: &str = r#"
import http.server, os, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    def send_error(self, code, *rest, **more):
        super().send_error(403 if code == 404 else code, *rest, **more)
    def log_message(self, *arguments):
        pass
os.chdir(sys.argv[1])
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
"#;

/// The guide says so of a second index.
#[test]
fn another_index_may_bring_another_build() {
    need(&["python3", "pip", "uv"]);
    let room = tempfile::tempdir().unwrap();
    let [own_wheels, own_index, other_wheels, other_index] =
        ["own", "own-index", "other", "other-index"].map(|name| room.path().join(name));
    family(&own_wheels, "2.0+rocm7.1");
    Wheel::of("needs", "1.0", "Requires-Dist: far\n").write(&own_wheels);
    publish(&mut repo(&[&own_wheels], &own_index));
    for (name, version) in [("far", "1.0"), ("demo", "2.0"), ("demo", "2.0.1")] {
        Wheel::of(name, version, "").write(&other_wheels);
    }
    publish(&mut repo(&[&other_wheels], &other_index));
    let (other, own) = (Server::of(&other_index), Server::of(&own_index));
    let closed = Scripted::serve(CLOSED, &own_index);
    let own_build = "demo-2.0+rocm7.1 demo_device_gfx942-2.0+rocm7.1";
    let both = "far-1.0 needs-1.0";
    let cases = [
        ("pip", &own.url, "demo[device-gfx942]", Some("demo-2.0.1")),
        ("uv", &own.url, "demo[device-gfx942]", Some(own_build)),
        ("pip", &own.url, "demo[device-gfx942]==2.0+rocm7.1", Some(own_build)),
        ("pip", &own.url, "needs", Some(both)),
        ("uv", &own.url, "needs", Some(both)),
        ("pip", &closed.url, "needs", Some(both)),
        ("uv", &closed.url, "needs", None),
    ];
    for (number, (client, url, requirement, expected)) in cases.into_iter().enumerate() {
        let environment = Environment::new(&room.path().join(number.to_string()), &other.url);
        let mut command = environment.installs(client, &[requirement]);
        command.args(["--extra-index-url", &format!("{url}/simple/")]);
        let done = command.output().unwrap().status.success();
        let installed = done.then(|| environment.installed().join(" "));
        assert_eq!(installed.as_deref(), expected, "{client} {url} {requirement}");
    }
}

/// The guide says so of explicit indexes.
#[test]
fn explicit_indexes_of_uv_have_to_be_named_for_device_wheels() {
    need(&["python3", "uv"]);
    let room = tempfile::tempdir().unwrap();
    let [own_wheels, own_index, other_wheels, other_index] =
        ["own", "own-index", "other", "other-index"].map(|name| room.path().join(name));
    family(&own_wheels, "2.0+rocm7.1");
    publish(&mut repo(&[&own_wheels], &own_index));
    Wheel::of("far", "1.0", "").write(&other_wheels);
    publish(&mut repo(&[&other_wheels], &other_index));
    let (other, own) = (Server::of(&other_index), Server::of(&own_index));
    let project = room.path().join("project");
    let urls = [own.url.as_str(), other.url.as_str()];
    let source = "demo = { index = \"rocm\" }\n";
    assert!(!locks(&project, urls, "\"demo[device-gfx942]\"", source));
    let more = "demo-device-gfx942 = { index = \"rocm\" }\n";
    let sources = format!("{source}{more}");
    let dependencies = "\"demo[device-gfx942]\", \"demo-device-gfx942\"";
    assert!(locks(&project, urls, dependencies, &sources));
}

/// Tells whether uv locks a project with two indexes, an explicit one of ROCm and the default.
fn locks(project: &Path, [rocm, pypi]: [&str; 2], dependencies: &str, sources: &str) -> bool {
    let text = format!(
        "[project]\nname = \"p\"\nversion = \"0\"\nrequires-python = \">=3.8\"\n\
         dependencies = [{dependencies}]\n{}{}[tool.uv.sources]\n{sources}",
        index_table("rocm", rocm, "explicit"),
        index_table("pypi", pypi, "default"),
    );
    fs::create_dir_all(project).unwrap();
    fs::write(project.join("pyproject.toml"), text).unwrap();
    let mut uv = Command::new("uv");
    uv.args(["lock", "--no-cache", "--python", PYTHON, "--directory"]).arg(project);
    uv.output().unwrap().status.success()
}

fn index_table(name: &str, url: &str, role: &str) -> String {
    format!("[[tool.uv.index]]\nname = \"{name}\"\nurl = \"{url}/simple/\"\n{role} = true\n")
}

/// The guide says so of yanked device wheels.
#[test]
fn uv_takes_no_yanked_device_wheel_for_its_host() {
    need(&["python3", "pip", "uv"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    family(&wheels, "1.0");
    let mut command = repo(&[&wheels], &out);
    publish(command.args(["--yank", "demo-device-gfx942=1.0"]));
    let server = Server::of(&out);
    let takes = CLIENTS.map(|client| {
        let environment = Environment::new(&room.path().join(client), &server.url);
        environment.installs(client, &["demo[device-gfx942]"]).output().unwrap().status.success()
    });
    assert_eq!(takes, [true, false]);
}
