//! Emitted packages judged by dpkg, rpm, and our own readers.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use rockpack_archive::package_file::PackageReader;
use rockpack_archive::payload::Digest;
use rockpack_core::content::Content;
use rockpack_package::{Package, RelationKind, Treatment};
use sha2::Digest as _;
use support::packages::{self, Tree, emit_one, package, relation};
use support::queries::{deb_field, rpm_list, rpm_tags};
use support::roots::dpkg_database;
use support::tools::{need, need_root, succeed};

/// A host package with everything that a package can have.
fn host() -> Package<Content> {
    let long_directory = format!("opt/rocm-7.1/lib/{}", "d".repeat(120));
    let long = format!("{long_directory}/{}", "f".repeat(200));
    let license = Content::of_bytes(*b"Permission is granted\n");
    let tree = Tree::default()
        .deb_directory("etc")
        .file("etc/rocm.conf", Content::of_bytes(*b"/opt\n"), 0o644, Treatment::Config)
        .deb_directory("opt")
        .directory("opt/rocm-7.1")
        .directory("opt/rocm-7.1/bin")
        .file(
            "opt/rocm-7.1/bin/true",
            support::fixtures::content("/bin/true"),
            0o755,
            Treatment::Plain,
        )
        .directory("opt/rocm-7.1/lib")
        .text("opt/rocm-7.1/lib/empty", "")
        .text("opt/rocm-7.1/lib/naïve file – ü", "unicode\n")
        .link("opt/rocm-7.1/lib/libx.so", "libx.so.5")
        .link("opt/rocm-7.1/lib/long-link", &"t".repeat(150))
        .file("opt/rocm-7.1/lib/libx.so.5", Content::zeros(3 << 20), 0o755, Treatment::Plain)
        .directory(&long_directory)
        .text(&long, "deep\n")
        .text(&long[..long_directory.len() + 1 + 60], "deep\n")
        .file("opt/rocm-7.1/lib/LICENSE", license.clone(), 0o644, Treatment::License)
        .file("opt/rocm-7.1/lib/README", license, 0o644, Treatment::Doc);
    let mut host = package("rocm-blas", tree.entries());
    let deb = host.deb.as_mut().unwrap();
    deb.relations = vec![
        relation(RelationKind::Depends, "libc6", None),
        relation(RelationKind::Depends, "rocm-common", Some("7.1.0-1")),
        relation(RelationKind::Suggests, "rocm-blas-gfx110x", None),
    ];
    deb.triggers = vec!["activate-noawait ldconfig".to_owned()];
    deb.scripts = vec![("postinst".to_owned(), "#!/bin/sh\nset -e\nexit 0\n".to_owned())];
    let rpm = host.rpm.as_mut().unwrap();
    rpm.epoch = Some(1);
    rpm.relations = vec![
        relation(RelationKind::Depends, "rocm-common", Some("7.1.0-1")),
        relation(RelationKind::Depends, "libc.so.6(GLIBC_2.34)(64bit)", None),
        relation(RelationKind::Suggests, "rocm-blas-gfx110x", None),
        relation(RelationKind::Provides, "librocblas.so.5()(64bit)", None),
    ];
    let script = |text: &str| ("/bin/sh".to_owned(), text.to_owned());
    rpm.scripts = vec![
        ("%post".to_owned(), script("echo installed > /dev/null\n")),
        ("%pretrans".to_owned(), ("<lua>".to_owned(), "-- nothing\n".to_owned())),
    ];
    host
}

fn meta() -> Package<Content> {
    let mut meta = package("rocm-gfx110x", Vec::new());
    meta.deb.as_mut().unwrap().architecture = "all".to_owned();
    meta.rpm.as_mut().unwrap().arch = "noarch".to_owned();
    meta
}

/// Mode, and content or link text, of all entries below `root`, by path.
fn tree_below(root: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = BTreeMap::new();
    let mut queue = vec![root.to_path_buf()];
    while let Some(directory) = queue.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_dir() {
                queue.push(path.clone());
                Vec::new()
            } else if metadata.is_symlink() {
                std::fs::read_link(&path).unwrap().to_str().unwrap().as_bytes().to_vec()
            } else {
                std::fs::read(&path).unwrap()
            };
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            found.insert(name, (metadata.permissions().mode() & 0o7777, content));
        }
    }
    found
}

/// Mode, and content or link text, of a package's entries, by path.
fn tree_of(package: &Package<Content>, deb: bool) -> BTreeMap<String, (u32, Vec<u8>)> {
    use rockpack_core::tree::Node;
    use rockpack_package::Format;
    let format = if deb { Format::Deb } else { Format::Rpm };
    let inside = package.entries.iter().filter(|entry| entry.formats.has(format));
    let node = |node: &Node<Content>| match node {
        Node::Directory { mode } => (*mode, Vec::new()),
        Node::Link { target } => (0o777, target.clone().into_bytes()),
        Node::File { data, mode } => {
            let mut content = Vec::new();
            data.reader().read_to_end(&mut content).unwrap();
            (*mode, content)
        }
    };
    inside.map(|entry| (entry.path.to_string(), node(&entry.node))).collect()
}

fn names(tree: &BTreeMap<String, (u32, Vec<u8>)>) -> Vec<&String> {
    tree.keys().collect()
}

fn assert_same(
    found: &BTreeMap<String, (u32, Vec<u8>)>,
    wanted: &BTreeMap<String, (u32, Vec<u8>)>,
) {
    assert_eq!(names(found), names(wanted));
    for (path, (mode, content)) in wanted {
        assert_eq!(found[path].0, *mode, "mode of {path}");
        assert!(found[path].1 == *content, "content of {path}");
    }
}

#[test]
fn dpkg_deb_reads_control_and_files() {
    need(&["dpkg-deb"]);
    let out = tempfile::tempdir().unwrap();
    let (deb, _) = emit_one(out.path(), &host());
    assert_eq!(deb_field(&deb, "Package"), "rocm-blas");
    assert_eq!(deb_field(&deb, "Depends"), "libc6, rocm-common (= 7.1.0-1)");
    assert_eq!(deb_field(&deb, "X-ROCm-GPU-Architecture"), "gfx1100");
    assert_eq!(
        deb_field(&deb, "Description"),
        "Basic linear algebra for GPUs\n First paragraph.\n .\n Second paragraph."
    );
    let info = succeed(Command::new("dpkg-deb").arg("-I").arg(&deb));
    for name in ["conffiles", "control", "md5sums", "postinst", "triggers"] {
        assert!(info.contains(name), "{info}");
    }
    let root = out.path().join("root");
    succeed(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&root));
    assert_same(&tree_below(&root), &tree_of(&host(), true));
    let list = succeed(Command::new("dpkg-deb").arg("-c").arg(&deb));
    assert!(list.lines().all(|line| line.contains(" root/root ")), "{list}");
    assert!(list.lines().all(|line| line.contains(" 2024-01-01 ")), "{list}");
    let control = out.path().join("control");
    succeed(Command::new("dpkg-deb").arg("-e").arg(&deb).arg(&control));
    succeed(Command::new("md5sum").current_dir(&root).arg("-c").arg(control.join("md5sums")));
    assert_eq!(std::fs::read_to_string(control.join("conffiles")).unwrap(), "/etc/rocm.conf\n");
}

#[test]
fn dpkg_deb_reads_xz_and_empty_packages() {
    need(&["dpkg-deb"]);
    let out = tempfile::tempdir().unwrap();
    let options = packages::options(1, rockpack_emit::Compression::Xz { preset: 1 });
    let emitted = packages::emit_set(out.path(), &[host(), meta()], &options);
    let names: Vec<&str> = emitted.iter().map(|emitted| emitted.file_name.as_str()).collect();
    assert_eq!(
        names,
        [
            "rocm-blas_7.1.0-1_amd64.deb",
            "rocm-blas-7.1.0-1.x86_64.rpm",
            "rocm-gfx110x_7.1.0-1_all.deb",
            "rocm-gfx110x-7.1.0-1.noarch.rpm"
        ]
    );
    let root = out.path().join("root");
    succeed(Command::new("dpkg-deb").arg("-x").arg(out.path().join(names[0])).arg(&root));
    assert_same(&tree_below(&root), &tree_of(&host(), true));
    let list = succeed(Command::new("dpkg-deb").arg("-c").arg(out.path().join(names[2])));
    assert_eq!(list.lines().count(), 1, "{list}");
    need(&["rpm"]);
    for name in [names[1], names[3]] {
        succeed(Command::new("rpm").args(["-K", "--nosignature"]).arg(out.path().join(name)));
    }
}

#[test]
fn rpm_reads_tags_and_verifies_digests() {
    need(&["rpm"]);
    let out = tempfile::tempdir().unwrap();
    let (_, rpm) = emit_one(out.path(), &host());
    let check = succeed(Command::new("rpm").args(["-Kv", "--nosignature"]).arg(&rpm));
    for line in ["Header SHA256 digest: OK", "Header SHA1 digest: OK", "Payload SHA256 digest: OK"]
    {
        assert!(check.contains(line), "{check}");
    }
    let tags = "%{NEVRA}|%{LICENSE}|%{URL}|%{BUILDTIME}|%{BUILDHOST}|%{PREFIXES}|%{SOURCERPM}";
    assert_eq!(
        rpm_tags(&rpm, tags),
        "rocm-blas-1:7.1.0-1.x86_64|MIT|https://example.org/|1700000000|rockpack|/opt/rocm-7.1|\
         rocm-blas-7.1.0-1.src.rpm"
    );
    let provides = rpm_list(&rpm, "--provides");
    let lines: Vec<&str> = provides.lines().collect();
    assert_eq!(
        lines,
        [
            "config(rocm-blas) = 1:7.1.0-1",
            "librocblas.so.5()(64bit)",
            "rocm-blas = 1:7.1.0-1",
            "rocm-blas(x86-64) = 1:7.1.0-1"
        ]
    );
    let requires = rpm_list(&rpm, "--requires");
    for line in [
        "rocm-common = 7.1.0-1",
        "libc.so.6(GLIBC_2.34)(64bit)",
        "/bin/sh",
        "config(rocm-blas) = 1:7.1.0-1",
        "rpmlib(PayloadIsZstd) <= 5.4.18-1",
        "rpmlib(BuiltinLuaScripts) <= 4.2.2-1",
    ] {
        assert!(requires.lines().any(|found| found.trim_end() == line), "{line}: {requires}");
    }
    assert!(!requires.contains("<lua>"), "{requires}");
    assert_eq!(rpm_list(&rpm, "--suggests").trim_end(), "rocm-blas-gfx110x");
    let scripts = rpm_list(&rpm, "--scripts");
    assert!(
        scripts.contains("postinstall scriptlet (using /bin/sh):\necho installed"),
        "{scripts}"
    );
    assert!(scripts.contains("pretrans scriptlet (using <lua>)"), "{scripts}");
    assert_eq!(rpm_list(&rpm, "--configfiles").trim_end(), "/etc/rocm.conf");
    assert_eq!(rpm_list(&rpm, "--docfiles").trim_end(), "/opt/rocm-7.1/lib/README");
    assert_eq!(rpm_list(&rpm, "--licensefiles").trim_end(), "/opt/rocm-7.1/lib/LICENSE");
    let host = host();
    let wanted: Vec<String> = tree_of(&host, false).keys().map(|path| format!("/{path}")).collect();
    let found: Vec<String> = rpm_list(&rpm, "-l").lines().map(str::to_owned).collect();
    assert_eq!(found, wanted);
}

#[test]
fn rpm_installs_verifies_and_removes() {
    need(&["rpm"]);
    need_root();
    let out = tempfile::tempdir().unwrap();
    let (_, rpm) = emit_one(out.path(), &host());
    let root = out.path().join("root");
    std::fs::create_dir(&root).unwrap();
    succeed(rpm_at(&root, &["-i", "--nodeps", "--noscripts"]).arg(&rpm));
    let mut found = tree_below(&root);
    found.retain(|path, _| !path.starts_with("var") && path != "etc" && path != "opt");
    assert_same(&found, &tree_of(&host(), false));
    succeed(&mut rpm_at(&root, &["-V", "--nodeps", "rocm-blas"]));
    succeed(&mut rpm_at(&root, &["-e", "--nodeps", "--noscripts", "rocm-blas"]));
    assert!(!root.join("opt/rocm-7.1").exists());
}

fn rpm_at(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("rpm");
    command.arg("--root").arg(root).args(["--dbpath", "/var/lib/rpm"]).args(args);
    command
}

#[test]
fn dpkg_installs_verifies_and_purges() {
    need(&["dpkg"]);
    need_root();
    let out = tempfile::tempdir().unwrap();
    let mut host = host();
    // The root directory is empty, so no shell could run scripts.
    host.deb.as_mut().unwrap().scripts.clear();
    let (deb, _) = emit_one(out.path(), &host);
    let root = out.path().join("root");
    dpkg_database(&root, "");
    let log = out.path().join("log");
    succeed(dpkg_at(&root, &log, &["--force-depends", "-i"]).arg(&deb));
    let mut found = tree_below(&root);
    found.retain(|path, _| !path.starts_with("var"));
    assert_same(&found, &tree_of(&host, true));
    let verified = succeed(&mut dpkg_at(&root, &log, &["--verify", "rocm-blas"]));
    assert_eq!(verified, "");
    succeed(&mut dpkg_at(&root, &log, &["--purge", "rocm-blas"]));
    assert!(!root.join("opt/rocm-7.1").exists() && !root.join("etc/rocm.conf").exists());
}

fn dpkg_at(root: &Path, log: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("dpkg");
    command.arg(format!("--root={}", root.display()));
    command.arg(format!("--log={}", log.display()));
    command.args(args);
    command
}

#[test]
fn our_readers_see_what_was_written() {
    let out = tempfile::tempdir().unwrap();
    let host = host();
    let (deb, rpm) = emit_one(out.path(), &host);
    for (path, is_deb) in [(deb, true), (rpm, false)] {
        let reader = PackageReader::open(support::fixtures::content(path)).unwrap();
        let mut found = BTreeMap::new();
        reader
            .visit(&mut |read, content| {
                let mut bytes = Vec::new();
                content.read_to_end(&mut bytes).unwrap();
                assert_eq!((read.user.as_str(), read.group.as_str()), ("root", "root"));
                assert_eq!(read.mtime, 1_704_067_200);
                match read.declared {
                    Some(Digest::Md5(sum)) => assert_eq!(md5::Md5::digest(&bytes)[..], sum),
                    Some(Digest::Sha256(sum)) => assert_eq!(sha2::Sha256::digest(&bytes)[..], sum),
                    None => assert!(!read.entry.is_file() || *read.entry.path == *"etc/rocm.conf"),
                }
                if let Some(target) = read.entry.target() {
                    bytes = target.as_bytes().to_vec();
                }
                found.insert(read.entry.path.to_string(), (read.entry.mode, bytes));
                Ok(())
            })
            .unwrap();
        assert_same(&found, &tree_of(&host, is_deb));
    }
}

/// Our reader must also read packages from other writers than ours.
#[test]
fn our_reader_reads_what_dpkg_deb_builds() {
    need(&["dpkg-deb"]);
    let out = tempfile::tempdir().unwrap();
    let (deb, _) = emit_one(out.path(), &host());
    let tree = out.path().join("tree");
    succeed(Command::new("dpkg-deb").arg("-R").arg(&deb).arg(&tree));
    for method in ["zstd", "xz", "gzip", "none"] {
        let built = out.path().join(format!("{method}.deb"));
        let mut build = Command::new("dpkg-deb");
        build.arg(format!("-Z{method}")).args(["--root-owner-group", "-b"]);
        succeed(build.arg(&tree).arg(&built));
        let PackageReader::Deb(reader) =
            PackageReader::open(support::fixtures::content(&built)).unwrap()
        else {
            panic!("{method}: not a .deb");
        };
        assert_eq!(reader.fields.get("Depends").unwrap(), "libc6, rocm-common (= 7.1.0-1)");
        let mut found = Vec::new();
        let visited = reader.visit(&mut |read, _| {
            found.push(read.entry.path.to_string());
            Ok(())
        });
        visited.unwrap();
        found.sort();
        assert_eq!(found, tree_of(&host(), true).into_keys().collect::<Vec<_>>(), "{method}");
    }
}
