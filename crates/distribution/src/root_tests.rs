use std::fs;
use std::os::unix::fs::symlink;

use rockpack_core::error::Kind;

use super::*;
use crate::table::{Distribution, Table};

/// The folder of libraries.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// The root of a system with dpkg and `LIBRARIES` in the linker path.
struct TestRoot {
    folder: tempfile::TempDir,
    status: String,
}

impl TestRoot {
    fn new() -> Self {
        let mut root = Self { folder: tempfile::tempdir().unwrap(), status: String::new() };
        root.write("etc/ld.so.conf", &format!("/{LIBRARIES}/\n"));
        root.package("dpkg", "", &["usr/bin/dpkg"]);
        root
    }

    fn path(&self, path: &str) -> PathBuf {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        symlink(target, self.path(path)).unwrap();
    }

    /// A library of this class and machine: the start of its header.
    fn elf(&self, path: &str, class: u8, machine: u8) {
        let mut header = [0; 64];
        header[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
        header[18] = machine;
        fs::write(self.path(path), header).unwrap();
    }

    fn library(&self, path: &str) {
        self.elf(path, 2, 62);
    }

    /// An installed package with these files; `fields` may have those that decide the name of its list.
    fn package(&mut self, name: &str, fields: &str, files: &[&str]) {
        self.status.push_str(&format!(
            "Package: {name}\nStatus: install ok installed\nVersion: 1.22.0\nArchitecture: amd64\n{fields}\n"
        ));
        let id = if fields.contains("Multi-Arch: same") { ":amd64" } else { "" };
        let lines: String = files.iter().map(|path| format!("/{path}\n")).collect();
        self.write(&format!("{INFO}/{name}{id}.list"), &format!("/.\n{lines}"));
    }

    /// A package with one library in `LIBRARIES`, and a shlibs file that names the package.
    fn library_failure(&mut self, name: &str, library: &str, line: &str) {
        let path = format!("{LIBRARIES}/{library}");
        self.package(name, "", &[&path]);
        self.library(&path);
        self.write(&format!("{INFO}/{name}.shlibs"), &format!("{line} {name}\n"));
    }

    fn text(&self) -> Result<String> {
        self.write(STATUS, &self.status);
        table(self.folder.path())
    }

    fn read(&self) -> Box<Distribution> {
        match Table::read(self.text().unwrap(), self.folder.path()).unwrap() {
            Table::Deb(distribution) => distribution,
            Table::Rpm(_) => panic!("is for rpm"),
        }
    }

    /// The dependency of a library without its version, if the table has it.
    fn template(&self, soname: &str) -> Option<String> {
        let distribution = self.read();
        let library = distribution.library(soname).unwrap();
        library.map(|library| library.minimum_need().template.to_owned())
    }

    #[track_caller]
    fn answers(&self, expected: &[(&str, Option<&str>)]) {
        for (soname, template) in expected {
            assert_eq!(self.template(soname).as_deref(), *template, "{soname}");
        }
    }

    /// The error of a root that is refused, with its file and its hint.
    fn refusal(&self) -> String {
        let error = self.text().unwrap_err();
        format!("{} {}", error.full_text(), error.hint_text().unwrap_or_default())
    }
}

/// Links lead to files in the root, not to those of this system, and never out of it.
#[test]
fn links_are_followed_inside_of_the_root() {
    let mut root = TestRoot::new();
    root.link("lib", "usr/lib");
    root.library_failure("liba1", "real/liba.so.1.2", "liba 1");
    root.link(&format!("{LIBRARIES}/liba.so.1"), &format!("/{LIBRARIES}/real/liba.so.1.2"));
    root.library_failure("libb1", "libb.so.1.2", "libb 1");
    root.link(&format!("{LIBRARIES}/libb.so.1"), "./libb.so.1.2");
    root.package("libc1", "", &["srv/libc.so.1"]);
    root.library("srv/libc.so.1");
    root.write(&format!("{INFO}/libc1.shlibs"), "libc 1 libc1\n");
    root.link(&format!("{LIBRARIES}/libc.so.1"), "../../../../../../../srv/libc.so.1");
    root.link(&format!("{LIBRARIES}/libloop.so.1"), "libloop.so.1");
    root.link(&format!("{LIBRARIES}/libdangling.so.1"), "/bin/sh");
    root.write("etc/dpkg/shlibs.default", "libloop 1 loop\nlibdangling 1 dangling\n");
    root.answers(&[
        ("liba.so.1", Some("liba1")),
        ("libb.so.1", Some("libb1")),
        ("libc.so.1", Some("libc1")),
        ("libloop.so.1", None),
        ("libdangling.so.1", None),
    ]);
}

#[test]
fn the_file_that_alternatives_lead_to_has_the_owner() {
    let mut root = TestRoot::new();
    root.library_failure("libopenblas", "openblas/libblas.so.3", "libblas 3");
    root.link(&format!("{LIBRARIES}/libblas.so.3"), "/etc/alternatives/blas");
    root.link("etc/alternatives/blas", &format!("/{LIBRARIES}/openblas/libblas.so.3"));
    root.package("mawk", "", &["usr/bin/mawk"]);
    root.write("usr/bin/mawk", "");
    root.link("usr/bin/awk", "/etc/alternatives/awk");
    root.link("etc/alternatives/awk", "/usr/bin/mawk");
    root.write("usr/bin/local", "");
    root.answers(&[("libblas.so.3", Some("libopenblas"))]);
    let distribution = root.read();
    let names = &distribution.names;
    assert_eq!(names.in_search_path("awk"), Some(Some("mawk")));
    assert_eq!(names.in_search_path("local"), None);
}

/// The database lists paths as packages have them, with `/usr` or without.
#[test]
fn paths_with_and_without_usr_are_the_same() {
    let mut root = TestRoot::new();
    root.link("lib", "usr/lib");
    root.library("usr/lib/libold.so.1");
    root.package("libold1", "", &["lib/libold.so.1"]);
    root.write(&format!("{INFO}/libold1.shlibs"), "libold 1 libold1\n");
    root.package("shell", "", &["bin/shell"]);
    root.answers(&[("libold.so.1", Some("libold1"))]);
    assert_eq!(root.read().names.program("/usr/bin/shell"), Some(Some("shell")));
}

#[test]
fn files_of_an_administrator_go_first() {
    let mut root = TestRoot::new();
    root.package("libz1", "Multi-Arch: same\n", &[&format!("{LIBRARIES}/libz.so.1")]);
    root.library(&format!("{LIBRARIES}/libz.so.1"));
    // Each file goes before those that were there.
    for (place, text) in [
        ("var/lib/dpkg/info/libz1:amd64.shlibs", "libz 1 shlibs\n"),
        ("var/lib/dpkg/info/libz1:amd64.symbols", "libz.so.1 info\n"),
        ("etc/dpkg/symbols/libz1:amd64.symbols", "libz.so.1 any\n"),
        ("etc/dpkg/symbols/libz1:amd64.symbols.amd64", "libz.so.1 amd64\n"),
    ] {
        root.write(place, text);
        let expected = text.trim().rsplit(' ').next();
        root.answers(&[("libz.so.1", expected)]);
    }
    // Names without the architecture are those of other packages.
    root.write("etc/dpkg/symbols/libz1.symbols", "libz.so.1 wrong\n");
    root.answers(&[("libz.so.1", Some("amd64"))]);
}

#[test]
fn an_override_goes_before_shlibs_and_a_default_after_them() {
    let mut root = TestRoot::new();
    root.library_failure("libx1", "libx.so.1", "deb: libx 1");
    root.library_failure("liby1", "liby.so.1", "liby 1");
    root.library_failure("other", "libd.so.1", "libother 1");
    // Without a line break at its end.
    root.write("etc/dpkg/shlibs.override", "udeb: liby 1 udeb\nlibx 1 override");
    root.write("etc/dpkg/shlibs.default", "liby 1 default-y\nlibd 1 default-d\n");
    root.answers(&[
        ("libx.so.1", Some("override")),
        ("liby.so.1", Some("liby1")),
        ("libd.so.1", Some("default-d")),
    ]);
}

#[test]
fn the_linker_path_is_that_of_its_configuration() {
    let mut root = TestRoot::new();
    root.write("etc/ld.so.conf", "# comment\ninclude /etc/ld.so.conf.d/*.conf\n  /opt/direct\n");
    root.write("etc/ld.so.conf.d/b.conf", "include /etc/more/*\ninclude /etc/missing/*.conf\n");
    // These include each other.
    root.write("etc/ld.so.conf.d/a.conf", "/opt/a\ninclude /etc/ld.so.conf.d/*.conf\n");
    root.write("etc/ld.so.conf.d/c.conf", "include /etc/ld.so.conf.d/*.conf\n");
    root.write("etc/ld.so.conf.d/d.conf", "include /etc/ld.so.conf.d/*.conf\n/opt/d/\n");
    root.write("etc/ld.so.conf.d/e.off", "/opt/off\n");
    root.write("etc/more/nested", "/opt/nested\n");
    for name in ["a", "nested", "d", "direct", "off"] {
        root.library(&format!("opt/{name}/lib{name}.so.1"));
        root.package(name, "", &[&format!("opt/{name}/lib{name}.so.1")]);
        root.write(&format!("{INFO}/{name}.shlibs"), &format!("lib{name} 1 {name}\n"));
    }
    let folders = Root { path: root.folder.path() }.linker_path().unwrap();
    let expected =
        ["lib", "usr/lib", "opt/a", "opt/nested", "opt/d", "opt/direct", "lib64", "usr/lib64"];
    assert_eq!(folders, expected);
    root.answers(&[
        ("liba.so.1", Some("a")),
        ("libnested.so.1", Some("nested")),
        ("libd.so.1", Some("d")),
        ("libdirect.so.1", Some("direct")),
        ("liboff.so.1", None),
    ]);
}

/// dpkg-shlibdeps fails for such a library, and does not go on to the file of the package.
#[test]
fn a_library_of_no_package_hides_that_of_a_package() {
    let mut root = TestRoot::new();
    root.write("etc/ld.so.conf", &format!("/usr/local/lib\n/{LIBRARIES}\n"));
    root.library_failure("libz1", "libz.so.1", "libz 1");
    root.answers(&[("libz.so.1", Some("libz1"))]);
    root.library("usr/local/lib/libz.so.1");
    root.answers(&[("libz.so.1", None)]);
    root.write("etc/dpkg/shlibs.default", "libz 1 own\n");
    root.answers(&[("libz.so.1", Some("own"))]);
}

/// A file of another architecture, or one that is no library, hides nothing.
#[test]
fn only_libraries_for_this_architecture_count() {
    let mut root = TestRoot::new();
    root.library_failure("libz1", "libz.so.1", "libz 1");
    root.elf("usr/lib/libz.so.1", 1, 3);
    root.answers(&[("libz.so.1", Some("libz1"))]);
    root.elf("usr/lib/libz.so.1", 2, 183);
    root.answers(&[("libz.so.1", Some("libz1"))]);
    root.write("usr/lib/libz.so.1", "short");
    root.answers(&[("libz.so.1", Some("libz1"))]);
    root.elf(&format!("{LIBRARIES}/libz.so.1"), 2, 183);
    root.answers(&[("libz.so.1", None)]);
}

#[test]
fn a_diverted_path_is_of_the_package_that_lists_it() {
    let mut root = TestRoot::new();
    root.library_failure("libreadline8", "libreadline.so.8", "libreadline 8");
    root.library(&format!("{LIBRARIES}/libreadline.so.8.usr-is-merged"));
    root.write(
        "var/lib/dpkg/diversions",
        &format!(
            "/{LIBRARIES}/libreadline.so.8\n/{LIBRARIES}/libreadline.so.8.usr-is-merged\nlibreadline8\n"
        ),
    );
    root.answers(&[("libreadline.so.8", Some("libreadline8"))]);
}

#[test]
fn packages_of_other_architectures_and_removed_ones_do_not_count() {
    let mut root = TestRoot::new();
    root.library_failure("libz1", "libz.so.1", "libz 1");
    root.status.push_str(
        "Package: libz1\nStatus: install ok installed\nVersion: 9\nArchitecture: i386\nMulti-Arch: same\n\n\
         Package: gone\nStatus: deinstall ok config-files\nVersion: 9\nArchitecture: amd64\n\n\
         Package: never\nStatus: unknown ok not-installed\nVersion: 9\nArchitecture: amd64\n\n",
    );
    let lists = "var/lib/apt/lists/deb.example.org_dists_x_main_binary";
    let rocm = |name: &str, arch: &str| {
        format!(
            "Package: {name}\nVersion: 5.0-1\nArchitecture: {arch}\nHomepage: https://github.com/ROCm/x\n\n"
        )
    };
    root.write(&format!("{lists}-i386_Packages"), &rocm("foreign", "i386"));
    let zlib = "Package: zlib1g\nVersion: 5.0-1\nArchitecture: amd64\n";
    root.write(&format!("{lists}-amd64_Packages"), &(rocm("rocm-own", "amd64") + zlib));
    root.write("var/lib/apt/lists/deb.example.org_dists_x_InRelease", "no list");
    root.write("var/lib/apt/lists/partial/x_Packages", "no list");
    root.answers(&[("libz.so.1", Some("libz1"))]);
    let distribution = root.read();
    let names = &distribution.names;
    assert_eq!(names.package("rocm-own"), Some("5.0-1"));
    assert_eq!([names.package("foreign"), names.package("zlib1g")], [None, None]);
    assert!(root.text().unwrap().contains("\n\"libz1\" = \"1.22.0\"\n"));
}

#[test]
fn a_damaged_database_is_refused() {
    let mut root = TestRoot::new();
    root.status.push_str(
        "Package: lost\nStatus: install ok installed\nVersion: 1\nArchitecture: amd64\n\n",
    );
    let told = root.refusal();
    let status = root.folder.path().join(STATUS);
    let expected = [
        status.to_str().unwrap(),
        "lost is installed",
        "info/lost.list is missing",
        "complete system",
    ];
    assert!(expected.iter().all(|part| told.contains(part)), "{told}");
    for paragraph in ["Package: x\nno field\n", "Package: x\nStatus: install ok installed\n"] {
        let mut root = TestRoot::new();
        root.status.push_str(paragraph);
        let told = root.refusal();
        let path = root.folder.path().join(STATUS);
        assert!(told.contains("reading paragraph 2 of dpkg's status"), "{told}");
        assert!(told.contains(path.to_str().unwrap()), "{told}");
    }
    let mut root = TestRoot::new();
    root.status.clear();
    assert!(root.refusal().contains("does not have the package dpkg"));
}

#[test]
fn roots_with_rpm_mean_a_profile() {
    for (os_release, expected) in [
        ("ID=\"rhel\"\nVERSION_ID=\"8.10\"\nID_LIKE=\"fedora\"\n", "el8"),
        ("ID=\"centos\"\nVERSION_ID=\"9\"\n", "el9"),
        ("ID=\"rocky\"\nVERSION_ID=\"10.1\"\n", "el10"),
        ("ID=\"almalinux\"\nVERSION_ID=\"9.4\"\n", "el9"),
        ("ID=\"ol\"\nVERSION_ID=\"8.6\"\n", "el8"),
        ("ID=fedora\nVERSION_ID=42\nVERSION_CODENAME=\"\"\n", "fedora"),
        ("ID=\"sles\"\nVERSION_ID=\"15.6\"\n", "sles15"),
        ("ID=\"opensuse-leap\"\nVERSION_ID=\"16.0\"\n", "sles16"),
        ("ID=\"opensuse-tumbleweed\"\n# VERSION=\"1\"\nVERSION_ID=\"20250527\"\n", "sles16"),
        ("ID=azurelinux\nVERSION_ID=\"3.0\"\n", "azurelinux3"),
    ] {
        for database in RPM {
            let folder = tempfile::tempdir().unwrap();
            let path = |path: &str| folder.path().join(path);
            fs::create_dir_all(path(database)).unwrap();
            fs::create_dir_all(path("etc")).unwrap();
            fs::write(path("etc/real"), os_release).unwrap();
            symlink("/etc/real", path("etc/os-release")).unwrap();
            assert_eq!(rpm_profile(folder.path()).unwrap().as_deref(), Some(expected));
            let root = format!("{}/", folder.path().display());
            let Table::Rpm(profile) = Table::open(&root).unwrap() else { panic!("{os_release}") };
            assert_eq!(profile.name, expected);
        }
    }
    // dpkg has a database, so rpm is a tool there.
    let root = TestRoot::new();
    root.text().unwrap();
    fs::create_dir_all(root.path("var/lib/rpm")).unwrap();
    assert_eq!(rpm_profile(root.folder.path()).unwrap(), None);
}

#[test]
fn a_root_without_a_table_is_refused_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let value = format!("{}/", folder.path().display());
    let refusal = || {
        let error = Table::open(&value).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        error.to_string()
    };
    assert!(refusal().contains("has neither a database of dpkg"), "{}", refusal());
    fs::create_dir_all(folder.path().join("var/lib/rpm")).unwrap();
    fs::create_dir_all(folder.path().join("etc")).unwrap();
    fs::write(folder.path().join("etc/os-release"), "ID=\"amzn\"\nVERSION_ID=\"2023\"\n").unwrap();
    let told = refusal();
    assert!(told.contains(&*value) && told.contains("`amzn2023` by its os-release"), "{told}");
    let error = Table::make(folder.path()).unwrap_err().to_string();
    assert!(error.contains("is a system with rpm: an .rpm requires"), "{error}");
}
