//! A root for rpm, in which dnf or zypper installs packages from a repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use support::bases::{self, RPM_TOOLS, build_rpm};
use support::tools;
use tempfile::TempDir;

use crate::install::foreign::Foreign;
use crate::install::system::{System, gather};

/// The repository's path inside the root.
const REPOSITORY: &str = "srv/repository";

/// The path of dnf's configuration.
const DNF: &str = "etc/dnf/dnf.conf";

pub struct Rpm {
    root: PathBuf,
    by_zypper: bool,
    /// The root of Debian sid around this one, whose programs are run in place of this machine's.
    sid: Option<PathBuf>,
    _folder: TempDir,
}

/// Runs a scenario in a fresh root with dnf.
pub fn with_root(scenario: fn(&dyn System)) {
    with(false, scenario);
}

/// Runs a scenario in a fresh root with zypper.
pub fn with_zypper(scenario: fn(&dyn System)) {
    tools::need(&["zypper"]);
    with(true, scenario);
}

fn with(by_zypper: bool, scenario: fn(&dyn System)) {
    tools::need(&[&["dnf", "createrepo_c"], &RPM_TOOLS[..]].concat());
    tools::need_root();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    bases::copy(base(), &root);
    scenario(&Rpm { root, by_zypper, sid: None, _folder: folder });
}

/// Runs a scenario in a root with nothing in it.
pub fn with_empty(by_zypper: bool, scenario: fn(&dyn System)) {
    tools::need(&[&["dnf", "createrepo_c"], &RPM_TOOLS[..]].concat());
    if by_zypper {
        tools::need(&["zypper"]);
    }
    tools::need_root();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    scenario(&Rpm { root, by_zypper, sid: None, _folder: folder });
}

/// Runs a scenario in a fresh root inside of Debian sid, with rpm 6 and dnf5 or zypper.
pub fn with_sid(by_zypper: bool, scenario: fn(&dyn System)) {
    let system = in_sid(by_zypper);
    system.offer(&[bases::rpm()]);
    tools::run(&mut system.install(&["base-system"]));
    scenario(&system);
}

/// Runs a scenario in a root with nothing in it, inside of Debian sid.
pub fn with_empty_in_sid(by_zypper: bool, scenario: fn(&dyn System)) {
    scenario(&in_sid(by_zypper));
}

fn in_sid(by_zypper: bool) -> Rpm {
    tools::need(&[&["mmdebstrap", "chroot", "createrepo_c"], &RPM_TOOLS[..]].concat());
    tools::need_root();
    let folder = tempfile::tempdir().unwrap();
    let sid = folder.path().join("sid");
    bases::copy(&bases::sid(), &sid);
    let root = sid.join("srv/root");
    fs::create_dir(&root).unwrap();
    Rpm { root, by_zypper, sid: Some(sid), _folder: folder }
}

/// The root with a base system, made once in a run.
fn base() -> &'static Path {
    static MADE: OnceLock<Rpm> = OnceLock::new();
    let make = || {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        let system = Rpm { root, by_zypper: false, sid: None, _folder: folder };
        fs::create_dir_all(&system.root).unwrap();
        system.offer(&[bases::rpm()]);
        tools::run(&mut system.install(&["base-system"]));
        system
    };
    MADE.get_or_init(make).root()
}

impl Rpm {
    fn program(&self, name: &str) -> Command {
        let Some(sid) = &self.sid else { return Command::new(name) };
        let mut command = Command::new("chroot");
        command.arg(sid).arg(name).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }

    /// The root as these programs see it.
    fn seen(&self) -> String {
        let inside = self.sid.as_ref().and_then(|sid| self.root.strip_prefix(sid).ok());
        inside.map_or(self.root.display().to_string(), |root| format!("/{}", root.display()))
    }

    fn dnf(&self, arguments: &[&str]) -> Command {
        let [program, unchecked] = match self.sid {
            None => ["dnf", "--nogpgcheck"],
            Some(_) => ["dnf5", "--no-gpgchecks"],
        };
        let mut command = self.program(program);
        command.arg(format!("--installroot={}", self.seen()));
        command.arg(format!("--repofrompath=set,file://{}/{REPOSITORY}", self.seen()));
        command.args(["--releasever=1", "--repo=set", unchecked]);
        command.args(["--setopt=metadata_expire=0", "--refresh", "-y"]).args(arguments);
        command.env("LC_ALL", "C");
        command
    }

    fn zypper(&self, arguments: &[&str]) -> Command {
        let mut command = self.program("zypper");
        command.arg("--root").arg(self.seen()).args(["--non-interactive", "--no-gpg-checks"]);
        command.args(arguments).env("LC_ALL", "C");
        command
    }

    /// A command of the system's package manager, with the arguments for either.
    fn manager(&self, dnf: &[&str], zypper: &[&str], packages: &[&str]) -> Command {
        if self.by_zypper {
            self.zypper(&[zypper, packages].concat())
        } else {
            self.dnf(&[dnf, packages].concat())
        }
    }

    fn lock(&self, how: &str, packages: &[&str], version: &str) {
        for name in packages {
            tools::run(&mut self.zypper(&[how, &format!("{name} = {version}")]));
        }
    }

    fn rpm(&self) -> Command {
        let mut command = self.program("rpm");
        command.arg(format!("--root={}", self.seen()));
        command
    }
}

impl System for Rpm {
    fn format(&self) -> &'static str {
        "rpm"
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn offer(&self, folders: &[&Path]) {
        let place = self.root.join(REPOSITORY);
        gather(folders, "rpm", &place);
        tools::run(Command::new("createrepo_c").args(["--quiet", "--no-database"]).arg(&place));
        if self.by_zypper {
            let text = format!(
                "[set]\nbaseurl=file://{}/{REPOSITORY}\nenabled=1\nautorefresh=1\ngpgcheck=0\n",
                self.seen()
            );
            let folder = self.root.join("etc/zypp/repos.d");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("set.repo"), text).unwrap();
            tools::run(&mut self.zypper(&["refresh", "--force"]));
        }
    }

    fn install(&self, packages: &[&str]) -> Command {
        self.manager(&["install"], &["install", "--no-recommends"], packages)
    }

    fn unpack(&self, _: &str) -> Option<Command> {
        None
    }

    fn repair(&self) -> Command {
        self.dnf(&["check"])
    }

    fn update(&self) -> Command {
        self.manager(&["upgrade"], &["dist-upgrade", "--no-recommends"], &[])
    }

    fn upgrade(&self) -> Command {
        self.manager(&["upgrade"], &["update", "--no-recommends"], &[])
    }

    fn signs_of_trouble(&self) -> &'static [&'static str] {
        &[
            "Problem",
            "Skipping packages",
            "Removing",
            "Installing dependencies",
            "REMOVED",
            "NOT be",
            "NEW package",
        ]
    }

    fn install_versions(&self, packages: &[(&str, &str)]) -> Command {
        let sign = if self.by_zypper { '=' } else { '-' };
        let named: Vec<String> =
            packages.iter().map(|(name, version)| format!("{name}{sign}{version}")).collect();
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        let is_older = packages.iter().any(|(name, _)| self.names().contains(*name));
        let dnf = if is_older { "downgrade" } else { "install" };
        self.manager(&[dnf], &["install", "--oldpackage", "--no-recommends"], &named)
    }

    fn pin(&self, packages: &[&str], _: &str, other: &str) {
        if self.by_zypper {
            return self.lock("addlock", packages, other);
        }
        let excluded =
            packages.iter().map(|name| format!("{name}-{other}")).collect::<Vec<_>>().join(",");
        let file = self.root.join(DNF);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("[main]\nexcludepkgs={excluded}\n")).unwrap();
    }

    fn unpin(&self, packages: &[&str], other: &str) {
        if self.by_zypper {
            return self.lock("removelock", packages, other);
        }
        fs::remove_file(self.root.join(DNF)).unwrap();
    }

    fn autoremove(&self) -> Command {
        // zypper does that during a removal, on request.
        self.manager(&["autoremove"], &["packages", "--unneeded"], &[])
    }

    fn remove(&self, packages: &[&str]) -> Command {
        self.manager(&["remove"], &["remove", "--clean-deps"], packages)
    }

    /// rpm only keeps a removed package's configuration under another name.
    fn purge(&self, packages: &[&str]) -> Command {
        self.remove(packages)
    }

    fn installed(&self) -> BTreeMap<String, String> {
        let mut query = self.rpm();
        let text = tools::succeed(query.args(["-qa", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n"]));
        let all = text.lines().filter_map(|line| line.split_once(' '));
        let added = all.filter(|(name, _)| *name != "base-system");
        added.map(|(name, version)| (name.to_owned(), version.to_owned())).collect()
    }

    fn altered(&self, packages: &[&str]) -> Command {
        let mut command = self.rpm();
        command.arg("-V").args(packages);
        command
    }

    fn make(&self, package: &Foreign, folder: &Path) {
        let tree = tempfile::tempdir().unwrap();
        package.plant(tree.path());
        let Foreign { name, version, needs, .. } = package;
        let needs = needs.map(|(name, least)| format!("Requires: {name} >= {least}\n"));
        let spec = format!(
            "Name: {name}\nVersion: {version}\nRelease: 1\nSummary: Of another vendor\n\
             License: MIT\nBuildArch: noarch\n{}%description\nOf another vendor.\n%install\n\
             cp -a {}/. %{{buildroot}}\n%files\n{}",
            needs.unwrap_or_default(),
            tree.path().display(),
            package.folders.iter().map(|path| format!("/{path}\n")).collect::<String>()
        );
        build_rpm(&spec, folder);
    }

    fn own_paths(&self) -> &'static [&'static str] {
        &["root", "var", "srv", "etc/ld.so.cache", "etc/dnf", "etc/yum.repos.d", "etc/zypp", "run"]
    }
}
