use super::*;

/// The start of a table of a distribution with dpkg.
const HEAD: &str = "schema = 1\nformat = \"deb\"\nname = \"x\"\ncompression = \"xz\"\nversion_references = false\n";

/// The start of a table of a family of distributions with rpm.
const RPM_HEAD: &str = "schema = 1\nformat = \"rpm\"\nname = \"x9\"\ncompression = \"zstd\"\n";

fn read(text: &str) -> Result<Table> {
    Table::read(text.to_owned(), Path::new("FILE"))
}

fn distribution(table: Table) -> Box<Distribution> {
    let Table::Deb(distribution) = table else { panic!("is for rpm") };
    distribution
}

fn names(name: &str) -> KnownNames {
    match Table::shipped(name).unwrap() {
        Table::Deb(distribution) => distribution.names,
        Table::Rpm(profile) => profile.names().unwrap(),
    }
}

#[test]
fn all_shipped_tables_are_whole() {
    let mut formats = [0, 0];
    for name in Table::names() {
        let distribution = match Table::shipped(name).unwrap() {
            Table::Deb(distribution) => distribution,
            Table::Rpm(profile) => {
                assert_eq!(profile.name, name);
                formats[1] += 1;
                continue;
            }
        };
        formats[0] += 1;
        assert_eq!(distribution.name, name);
        let packages: Vec<_> = distribution.packages().collect::<Result<_>>().unwrap();
        assert!(packages.len() > 500, "{name}");
        for (soname, packages) in packages {
            let library = distribution.library(soname).unwrap().unwrap();
            let templates = library.templates.iter().map(String::as_str);
            assert_eq!(packages_of(templates), packages, "{name}: {soname}");
        }
        assert_eq!(distribution.compression, PayloadCompression::Zstd);
        let libc = distribution.library("libc.so.6").unwrap().unwrap();
        let template = "libc6 #MINVER#";
        assert_eq!(libc.minimum_need(), Need { template, version: Some("2.2.5") });
        let newer = Some(Need { template, version: Some("2.34") });
        assert_eq!(libc.symbol("pthread_create", Some("GLIBC_2.34")), newer);
        let private = libc.symbol("_dl_argv", Some("GLIBC_PRIVATE")).unwrap();
        assert_ne!(private.template, template);
        assert!(libc.lacks("GLIBC_9.9") && !libc.lacks("GLIBC_2.34"));
        assert!(libc.symbol("nothing", None).is_none());
    }
    assert!(formats[0] >= 2 && formats[1] >= 7, "{formats:?}");
}

#[test]
fn the_tables_know_the_programs_that_scripts_are_written_for() {
    for name in Table::names() {
        let names = names(name);
        for path in ["/bin/sh", "/usr/bin/sh", "//bin/../bin/bash", "/lib64/ld-linux-x86-64.so.2"] {
            assert_eq!(names.program(path), Some(None), "{name}: {path}");
        }
        assert!(names.program("/usr/bin/python3").is_some(), "{name}");
        assert!(names.in_search_path("perl").is_some(), "{name}");
        for path in ["/opt/bin/sh", "/usr/local/bin/python3", "sh", "/usr/bin/python2.7"] {
            assert_eq!(names.program(path), None, "{name}: {path}");
        }
    }
}

#[test]
fn packages_are_those_of_the_distribution() {
    let [bookworm, trixie, rpm] = ["debian-12", "debian-13", RPM].map(names);
    assert_eq!(bookworm.program("/usr/bin/python3.11"), Some(Some("python3.11")));
    assert_eq!(trixie.program("/usr/bin/python3.11"), None);
    assert_eq!(trixie.in_search_path("tclsh"), Some(Some("tcl")));
    assert!(bookworm.package("rocm-smi").is_some_and(|version| version.starts_with("5.2.3-")));
    assert!(trixie.package("rocminfo").is_some() && trixie.package("rocm-blas").is_none());
    assert_eq!(rpm.package("rocm-smi"), None);
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    for name in ["debian-1", "", "libraries"] {
        let error = Table::open(name).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.message().contains(&format!("`{name}`")), "{error}");
        let hint = error.hint_text().unwrap_or_default();
        assert!(hint.contains("debian-12, debian-13") && hint.contains(&format!("`./{name}`")));
    }
}

#[test]
fn a_table_is_a_name_or_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.toml");
    std::fs::write(&file, RPM_HEAD).unwrap();
    for (value, expected) in [("el9", "el9"), (file.to_str().unwrap(), "x9")] {
        let Table::Rpm(profile) = Table::open(value).unwrap() else { panic!("{value}") };
        assert_eq!(profile.name, expected);
    }
    std::fs::write(&file, b"schema = 1\nname = \"\xff\"\n").unwrap();
    let missing = folder.path().join("missing.toml");
    for (path, expected) in [(&file, "is not UTF-8"), (&missing, "cannot open")] {
        let error = Table::open(path.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()) && error.contains(expected), "{error}");
    }
}

#[test]
fn damaged_tables_are_refused() {
    let library = "[libraries.\"a.so\"]\n";
    let deb = |rest: &str| format!("{HEAD}{library}{rest}");
    for (text, expected) in [
        (String::new(), "missing field `schema`"),
        ("schema = 1\nformat = ".to_owned(), "TOML parse error"),
        (HEAD.replace("schema = 1", "schema = 2"), "has schema 2; this rockpack reads 1"),
        (HEAD.replace("schema = 1\n", ""), "missing field `schema`"),
        (HEAD.replace("\"deb\"", "\"apk\""), "unknown variant `apk`"),
        (HEAD.replace("\"xz\"", "\"gzip\""), "unknown variant `gzip`"),
        (HEAD.replace("name = \"x\"\n", ""), "missing field `name`"),
        (format!("{HEAD}kernel = 1\n"), "unknown field `kernel`"),
        (format!("{RPM_HEAD}version_references = true\n"), "unknown field `version_references`"),
        (deb("depends = [\n"), "a.so: unclosed array"),
        (deb("minimum = \"1\"\n"), "missing field `depends`"),
        (deb("depends = [\"a\"]\nversion = \"1\"\n"), "unknown field `version`"),
        (deb("depends = []\n"), "a.so has no dependency"),
        (deb("depends = [\"a\"]\n[libraries.\"a.so\".nodes]\nX = \"1 1\"\n"), "that it lacks"),
        (
            deb("depends = [\"a\"]\n[libraries.\"a.so\".symbols]\n\"1 x\" = \"f@X\"\n"),
            "that it lacks",
        ),
        (deb("depends = [\"a\"]\n[libraries.b]\ndepends = [\"b\"]\n"), "something else follows it"),
        (deb("depends = [\"a\"]\n[programs]\npython3 = \"/usr/bin/x\"\n"), "invalid type: string"),
    ] {
        let error = read(&text).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains("FILE: is not a table of a distribution"), "{text}\n{shown}");
        assert!(shown.contains(expected), "{text}\n{shown}");
        assert!(error.hint_text().is_some_and(|hint| hint.contains("rockpack distro")));
    }
    read(HEAD).unwrap();
    read(RPM_HEAD).unwrap();
    read(&deb("depends = [\"a\"]\n")).unwrap();
}

#[test]
fn symbols_need_their_own_version_or_that_of_their_node() {
    let text = format!(
        "{HEAD}[libraries.\"a.so\"]\ndepends = [\"a #MINVER#\", \"b\"]\nminimum = \"1\"\n\
         [libraries.\"a.so\".nodes]\nA_2 = \"2\"\n[libraries.\"a.so\".symbols]\n\
         \"3 1\" = \"own@A_2 f@A_9\"\n\"4\" = \"plain@Base\"\n"
    );
    let distribution = distribution(read(&text).unwrap());
    let library = distribution.library("a.so").unwrap().unwrap();
    let need = |template, version| Need { template, version: Some(version) };
    assert_eq!(library.minimum_need(), need("a #MINVER#", "1"));
    for (name, version, expected) in [
        ("other", Some("A_2"), Some(need("a #MINVER#", "2"))),
        ("own", Some("A_2"), Some(need("b", "3"))),
        ("f", Some("A_9"), Some(need("b", "3"))),
        ("plain", None, Some(need("a #MINVER#", "4"))),
        ("other", None, None),
        ("other", Some("A_9"), None),
    ] {
        assert_eq!(library.symbol(name, version), expected, "{name}");
    }
    assert!(library.lacks("A_9") && !library.lacks("A_2"));
    assert!(distribution.has("a.so") && !distribution.has("b.so"));
    assert!(distribution.library("b.so").unwrap().is_none());
}

#[test]
fn a_distribution_is_for_its_format() {
    let deb = || read(&HEAD.replace("\"x\"", "\"own\"")).unwrap();
    let rpm = || read(RPM_HEAD).unwrap();
    let mut distributions = Distributions::defaults().unwrap();
    assert_eq!([&distributions.deb.name, &distributions.rpm.name], ["debian-12", "rpm"]);
    for (table, format) in [(deb(), Format::Rpm), (rpm(), Format::Deb)] {
        let error = distributions.set(table, Some(format)).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.message().contains("has the other package format"), "{error}");
    }
    assert_eq!([&distributions.deb.name, &distributions.rpm.name], ["debian-12", "rpm"]);
    distributions.set(deb(), None).unwrap();
    distributions.set(rpm(), Some(Format::Rpm)).unwrap();
    assert_eq!([&distributions.deb.name, &distributions.rpm.name], ["own", "x9"]);
}
