//! Dependencies of debs compared with dpkg-shlibdeps: by the tables, if this system is a Debian release that has
//! one, and by the package database of this system. `.ci/shlibdeps` makes a system of each release with a table, and
//! `.ci/any-distribution` roots of Debian 12, 13 and sid.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::program::{rockpack, rockpack_path};
use support::sweep::or_all;
use support::tools;

/// What `.ci/shlibdeps` needs.
const TOOLS: [&str; 6] = ["dpkg-shlibdeps", "dpkg-deb", "objdump", "readelf", "python3", "perl"];

/// A program that needs nothing of its libraries.
const EMPTY: &str = "int main(void) { return 0; }";

/// Programs that link to libraries in the ways in which dpkg-shlibdeps looks dependencies up: name, source, options.
const PROGRAMS: [(&str, &str, &str); 5] = [
    ("minimum", EMPTY, "-l:libz.so.1 -l:liblzma.so.5"),
    (
        "newest",
        "int deflateGetDictionary(void); int main(void) { return deflateGetDictionary(); }",
        "-l:libz.so.1",
    ),
    (
        "weak",
        "__attribute__((weak)) int arc4random(void); int main(void) { return arc4random != 0; }",
        "",
    ),
    ("without-symbols-file", EMPTY, "-l:libbz2.so.1.0 -l:libdb-5.3.so"),
    (
        "second-template",
        "int __libc_alloca_cutoff(long); int main(void) { return __libc_alloca_cutoff(1); }",
        "",
    ),
];

/// Files of an administrator in `/etc/dpkg`, which go before those of packages.
const OVERRIDES: [(&str, &str); 5] = [
    (
        "symbols/zlib1g:amd64.symbols",
        "libz.so.1 plain-zlib #MINVER#\n| other-zlib #MINVER#, third | fourth\n\
         * Build-Depends-Package: zlib1g-dev\n adler32@Base 1:5\n crc32@Base 2:7 1\n\
         #MISSING: 9# gone@Base 1:4\n",
    ),
    (
        "symbols/liblzma5:amd64.symbols.amd64",
        "liblzma.so.5 arch-lzma #MINVER#\n lzma_code@XZ_5.0 3\n",
    ),
    ("symbols/liblzma5:amd64.symbols", "liblzma.so.5 any-lzma\n"),
    (
        "shlibs.override",
        "# first\nlibbz2 1.0 untyped-bz2 (>= 4)\nudeb: libbz2 1.0 bz2-udeb\n\
         deb: libbz2 1.0 typed-bz2, second-bz2 (>= 2)\n",
    ),
    ("shlibs.default", "libway 1 way1 (>= 3)\nlibbz2 1.0 late-bz2\n"),
];

/// The number of files to compare; the script takes those with the most different libraries.
fn files() -> &'static str {
    or_all("6", "12")
}

/// The distribution's name, such as `debian-12`.
fn this_distribution() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    Some(format!("{}-{}", value(&text, "ID=")?, value(&text, "VERSION_ID=")?))
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.map(|value| value.trim_matches('"'))
}

#[test]
fn debs_need_what_dpkg_shlibdeps_finds() {
    tools::need(&TOOLS);
    let distribution = this_distribution().unwrap_or_default();
    if !["debian-12", "debian-13"].contains(&distribution.as_str()) {
        tools::skip("needs Debian 12 or 13");
    }
    let files = files();
    let told = tools::succeed(shlibdeps().args(["--limit", files, &distribution]));
    assert!(told.contains(&format!("{files} of {files} files equal")), "{told}");
}

#[test]
fn a_root_gives_what_its_dpkg_shlibdeps_finds() {
    tools::need(&TOOLS);
    let files = files();
    let told = tools::succeed(shlibdeps().args(["--distro", "/", "--limit", files]));
    assert!(told.contains(&format!("{files} of {files} files equal")), "{told}");
}

#[test]
fn a_root_is_searched_as_by_dpkg_shlibdeps() {
    need_libraries();
    let folder = tempfile::tempdir().unwrap();
    let programs =
        PROGRAMS.map(|(name, source, options)| compile(folder.path(), name, source, options));
    let told = tools::succeed(shlibdeps().args(["--distro", "/", "--files"]).args(&programs));
    assert!(told.contains("5 of 5 files equal"), "{told}");
}

/// In a mount namespace, `/etc/dpkg` has overrides, and the linker's configuration a folder with a link to a library.
/// The link belongs to no package, so its target answers, by the name of the link.
#[test]
fn files_of_the_administrator_go_before_those_of_packages() {
    need_libraries();
    tools::need(&["unshare", "mount"]);
    tools::need_root();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    tools::run(
        Command::new("cp").args(["-a", "/etc/dpkg", "/etc/ld.so.conf.d"]).arg(folder.path()),
    );
    fs::create_dir_all(path("dpkg/symbols")).unwrap();
    for (name, text) in OVERRIDES {
        fs::write(path("dpkg").join(name), text).unwrap();
    }
    fs::create_dir(path("linked")).unwrap();
    fs::create_dir(path("stub")).unwrap();
    let library = fs::canonicalize("/usr/lib/x86_64-linux-gnu/libz.so.1").unwrap();
    symlink(library, path("linked/libway.so.1")).unwrap();
    fs::write(path("ld.so.conf.d/0.conf"), path("linked").to_str().unwrap()).unwrap();

    let way = "int way(void) { return 1; }";
    compile(&path("stub"), "libway.so.1", way, "-shared -fPIC -Wl,-soname,libway.so.1");
    let user = "int crc32(void), lzma_code(void); int main(void) { return crc32() + lzma_code(); }";
    let stub = format!("-L{} -l:libway.so.1", path("stub").display());
    let programs = [
        compile(folder.path(), "overridden", user, "-l:libz.so.1 -l:liblzma.so.5 -l:libbz2.so.1.0"),
        compile(folder.path(), "linking", "int way(void); int main(void) { return way(); }", &stub),
        compile(folder.path(), "minimum", EMPTY, "-l:libz.so.1"),
    ];
    let script = "mount --bind \"$0/dpkg\" /etc/dpkg
                  mount --bind \"$0/ld.so.conf.d\" /etc/ld.so.conf.d
                  exec \"$@\"";
    let judge = shlibdeps();
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-ec", script])
        .arg(folder.path())
        .env("ROCKPACK", rockpack_path());
    command.arg(judge.get_program()).args(judge.get_args());
    let told = tools::succeed(command.args(["--distro", "/", "--files"]).args(&programs));
    assert!(told.contains("3 of 3 files equal"), "{told}");
}

#[test]
fn a_table_of_a_root_gives_what_the_root_gives() {
    need_libraries();
    let folder = tempfile::tempdir().unwrap();
    let [table, again] = ["table.toml", "again.toml"].map(|name| {
        let file = folder.path().join(name);
        tools::run(rockpack().args(["distro", "/", "--out"]).arg(&file));
        file
    });
    let text = fs::read_to_string(&table).unwrap();
    assert!(text == fs::read_to_string(again).unwrap(), "two tables of one root differ");
    let base = text.lines().find(|line| line.starts_with("\"\" = ")).unwrap();
    assert!(base.contains("/usr/lib64/ld-linux-x86-64.so.2"), "{base}");
    let programs =
        PROGRAMS.map(|(name, source, options)| compile(folder.path(), name, source, options));
    let told =
        tools::succeed(shlibdeps().arg("--distro").arg(&table).arg("--files").args(&programs));
    assert!(told.contains("5 of 5 files equal"), "{told}");
}

/// A root that cannot answer is refused by its path, before anything is written.
#[test]
fn a_root_that_cannot_answer_is_refused() {
    tools::need(&["cc"]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path("tree/bin")).unwrap();
    compile(&path("tree/bin"), "user", EMPTY, "");
    let foreign =
        "Package: libc6\nStatus: install ok installed\nArchitecture: arm64\nVersion: 2.41-12\n";
    let roots = [("empty", None), ("foreign", Some(foreign)), ("damaged", Some("Package\n\0\n"))];
    for (name, status) in roots {
        let root = path(name);
        fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
        if let Some(status) = status {
            fs::write(root.join("var/lib/dpkg/status"), status).unwrap();
        }
        let output = build(folder.path(), &root);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name}: {told}");
        let flat: String = told.split_whitespace().collect();
        assert!(flat.contains(root.to_str().unwrap()), "{name}: {told}");
        assert!(!path("out").exists(), "{name}: {told}");
    }
    let output = build(folder.path(), Path::new("debian-12"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Builds a package of the program in `tree`.
fn build(folder: &Path, distro: &Path) -> Output {
    let mut command = rockpack();
    command.args(["build", "--version", "1.0", "--format", "deb", "--distro"]).arg(distro);
    command.arg("user=tree").arg("--out").arg(folder.join("out"));
    command.current_dir(folder).output().unwrap()
}

/// The judge, for files of this system.
fn shlibdeps() -> Command {
    let mut command = Command::new(tools::repository(".ci/shlibdeps"));
    command.env("ROCKPACK", rockpack_path()).args(["--root", "/"]);
    command
}

/// Skips the calling test unless there are the tools and the libraries that the programs link to.
fn need_libraries() {
    tools::need(&[&TOOLS[..], &["cc"]].concat());
    for name in ["libz.so.1", "liblzma.so.5", "libbz2.so.1.0", "libdb-5.3.so"] {
        if !Path::new("/usr/lib/x86_64-linux-gnu").join(name).exists() {
            tools::skip(&format!("needs {name} of Debian"));
        }
    }
}

/// Compiles `source` into `name` in a folder. The result needs each library in `options`, even if it uses none of its
/// symbols.
fn compile(folder: &Path, name: &str, source: &str, options: &str) -> PathBuf {
    let (file, text) = (folder.join(name), folder.join(format!("{name}.c")));
    fs::write(&text, source).unwrap();
    let mut command = Command::new("cc");
    command.args(["-w", "-Wl,--no-as-needed", "-o"]).arg(&file).arg(&text);
    tools::run(command.args(options.split_whitespace()));
    fs::remove_file(text).unwrap();
    file
}
