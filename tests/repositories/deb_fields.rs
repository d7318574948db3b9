//! Fields of control files in many spellings: dpkg and apt of two releases decide which of them may be published.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use serde_json::Value;
use support::bases;
use support::example::rockpack;
use support::raw_deb::{END, RawMember, deb, members};
use support::repo_fixture::{refused, repo, verify};
use support::tools::{need, need_root, succeed, told};

/// Values of a field of relations.
const RELATIONS: [&str; 75] = [
    "a",
    "a, b",
    "a,b ,c\t,\td",
    "a,\n b",
    "a\n , b",
    "a | b",
    "a|b (= 1) |c",
    "A_b",
    "a+b.c-d",
    "a:any, b:amd64",
    "a:Foo-bar",
    "a (= 1)",
    "a(= 1 )",
    "a (  =\n 1.0)",
    "a (>= 1), a (<< 2)",
    "a (< 1)",
    "a (1.0)",
    "a (=1), b",
    "a (= 1:2:3-4)",
    "a (= 1.2~rc1+b-0~1)",
    "a (=1)",
    "a(>1)",
    "a (10)",
    "a (1 )",
    "a (= 1",
    "a ()",
    "a (>=)",
    "a (>= )",
    "a (",
    "a )",
    "(a)",
    "(= 1)",
    "a (== 1)",
    "a (<> 1)",
    "a (=> 1)",
    "a (=< 1)",
    "a (>>> 1)",
    "a (!= 1)",
    "a (lt 1)",
    "a (>>=1)",
    "a = 1",
    "a>=1",
    "a (= 1 2)",
    "a (= 1,2)",
    "a (= (1))",
    "a (= 1))",
    "a (= 1) b",
    "a (= 1) (= 2)",
    "a (= x)",
    "a (= ~1)",
    "a (= 1_2)",
    "a (= 1-)",
    "a (= 1:)",
    "a (= x:1)",
    "a (= 2147483648:1)",
    "a (= ${version})",
    "a,",
    "a,\n c,",
    ",a",
    "a,,b",
    "a, ,b",
    "a||b",
    "|a",
    "a |",
    "a b",
    "a or b",
    "a [amd64]",
    "a [!amd64] (= 1)",
    "a (= 1) <!nocheck>",
    "a:",
    "a :any",
    "a:b_c",
    "-a",
    "a/b",
    "\n a",
];

/// Values of the fields of relations that have no more of their own.
const FEW: [&str; 9] =
    ["a", "a | b", "a (= 1-1)", "a [amd64]", "a,", "a b", "a (== 1)", "a (= 1", "a,\n .\n b"];

/// Values of other fields.
const VALUES: [(&str, &[&str]); 18] = [
    (
        "Version",
        &[
            "0",
            "1~",
            "1-1-1",
            "1:1",
            "00:1",
            "1:2:3",
            "1-",
            "-1",
            "1:",
            ":1",
            "a:1",
            "2147483648:1",
            "v1",
            "~1",
            "1_1",
            "1 1",
            "1::1",
            "1:2-3:4",
            "1\n 2",
            "\n 1",
            "1\u{a0}",
        ],
    ),
    ("Package", &["G+h.1", "-x", "x/y", "x:any", "x y", "x,y", "\n x", "é", "${x}"]),
    ("Source", &["x", "x (1)"]),
    ("Essential", &["yes", "NO", "true", "1", "yes no", "yes\n x", "\n yes"]),
    ("Protected", &["no", "maybe"]),
    ("Multi-Arch", &["foreign", "Allowed", "no", "same", "yes", "none", "foreign x", "f"]),
    ("Priority", &["optional", "foo", "x y", "optional x", "extra1", "OPTIONAL,"]),
    ("Description-md5", &["d41d8cd98f00b204e9800998ecf8427e", "d41d8cd98f00b204", "x", "\n ."]),
    ("Config-Version", &["1"]),
    ("Status", &["install ok installed", "\n ."]),
    ("Triggers-Pending", &["x"]),
    ("Triggers-Awaited", &["x"]),
    (
        "Conffiles",
        &["\n /x d41d8cd9 obsolete\n /y 00", "x", "\n /x", "\n x y", "\n /x obsolete", "\n ."],
    ),
    ("Recommended", &["a", "a b"]),
    ("Optional", &["a", "a [amd64]"]),
    ("Built-Using", &["a (= 1)", "a (= 1", ",,"]),
    ("Installed-Size", &["1", "x"]),
    ("Section", &["libs", "a b", ",", "\n ."]),
];

/// Whole lines before the description.
const LINES: [(&str, &str); 19] = [
    ("Depends", "Depends:\n"),
    ("Recommends", "Recommends: \t\nX-Other: .\n"),
    ("Provides", "Provides:\n"),
    ("Status", "Status:\n"),
    ("Triggers-Pending", "Triggers-Pending:\n"),
    ("", "X-Y: a\n \u{a0}\n b\n"),
    ("", "X-Y: a\n .\n b: c\n"),
    ("", "X_Y.z:a\n"),
    ("", "q: a\n"),
    ("", "-X: a\n"),
    ("", ": a\n"),
    ("", "X Y: a\n"),
    ("", "X\n"),
    ("", "# x\n"),
    ("", " \n"),
    ("", "X-Y: a\n \t\n b\n"),
    ("", "\n"),
    ("Depends", "Depends: a\ndepends: a\n"),
    ("Homepage", "Homepage: a\nHomepage: a\n"),
];

/// The last lines of a control file.
const ENDS: [(&str, &str); 6] =
    [("", ""), ("", "X-Y: a\n\n"), ("", "X-Y: a"), ("X-Y", "X-Y:\n"), ("", " y"), ("", " \n")];

/// Values that are refused although dpkg and apt read it: field, value, reason.
const STRICTER: [(&str, &str, &str); 5] = [
    ("Version", "+1:1", "dpkg reads over the sign, and apt compares it"),
    ("Depends", "a (= -0:1)", "dpkg reads over the sign, and apt compares it"),
    ("Package", "x_y", "`_` separates name and version of a file"),
    ("Source", "../x", "it becomes part of a path"),
    ("Architecture", "amd_64", "it becomes part of a path"),
];

/// A control file, and the field that makes it special.
struct Form {
    field: &'static str,
    control: String,
    is_strict: bool,
}

fn forms() -> Vec<Form> {
    let mut values = Vec::new();
    for field in ["Pre-Depends", "Depends", "Suggests", "Breaks", "Provides"] {
        values.extend(RELATIONS.map(|value| (field, value, false)));
    }
    for field in ["Recommends", "Enhances", "Conflicts", "Replaces"] {
        values.extend(FEW.map(|value| (field, value, false)));
    }
    for (field, all) in VALUES {
        values.extend(all.iter().map(|value| (field, *value, false)));
    }
    values.extend(STRICTER.map(|(field, value, _)| (field, value, true)));
    let mut forms: Vec<Form> = Vec::new();
    for (field, value, is_strict) in values {
        let control = control(forms.len(), (field, value), "", "");
        forms.push(Form { field, control, is_strict });
    }
    for (field, lines) in LINES {
        let control = control(forms.len(), ("X", ""), lines, "");
        forms.push(Form { field, control, is_strict: false });
    }
    for (field, end) in ENDS {
        let control = control(forms.len(), ("X", ""), "", end);
        forms.push(Form { field, control, is_strict: false });
    }
    forms
}

/// A control file with a field of this value, with lines before its description and at its end.
fn control(number: usize, (field, value): (&str, &str), lines: &str, end: &str) -> String {
    let name = format!("f{number}");
    let usual = [
        ("Package", &*name),
        ("Version", "1"),
        ("Architecture", "all"),
        ("Maintainer", "Packager <packager@example.org>"),
    ];
    let own = usual.iter().all(|(other, _)| *other != field) && !value.is_empty();
    let mut text = String::new();
    for (name, usual) in usual.into_iter().chain(own.then_some((field, value))) {
        text.push_str(&format!("{name}: {}\n", if name == field { value } else { usual }));
    }
    format!("{text}{lines}Description: one\n{end}")
}

fn package(control: &str) -> Vec<u8> {
    let [control, data] = [RawMember::file("./control", control), RawMember::new("./", b'5', b"")]
        .map(|member| [&members(&[member])[..], &END].concat());
    deb(&control, &data)
}

/// Prints the tool and the number of forms that it refuses; the arguments are the forms that rockpack takes.
/// apt ends with an error if it refuses one of its lists, so that it is asked once about all of these, and
/// about each of them only if that fails. What dpkg refuses needs no second judge, but apt has to refuse
/// some of it, too; it is asked about each of the others.
const JUDGE: &str = r#"
cd /table
mkdir -p /judge/lists/partial /judge/cache /judge/etc/sources.list.d /judge/info /judge/updates /judge/triggers
for file in /judge/status /judge/available /judge/etc/sources.list; do : >$file; done
takes() {
  apt-cache -o Dir::State=/judge -o Dir::Cache=/judge/cache -o Dir::State::status=/judge/status \
    -o Dir::Etc=/judge/etc $(printf '%s\n' "$@" | sed 's|.*|--with-source=/table/&/Packages|') \
    gencaches >/dev/null 2>&1
}
refused=$(dpkg --admindir=/judge --log=/dev/null --force-depends --force-conflicts --force-breaks \
  --force-architecture --abort-after=100000 --no-act --unpack */x.deb 2>&1 |
  sed -n 's|.*error processing archive \([0-9]*\)/x.deb.*|\1|p')
printf 'dpkg %s\n' $refused
takes $refused && exit 1
known=$(echo $refused)
takes "$@" && known="$known $*"
for form in *; do
  case " $known " in *" $form "*) continue ;; esac
  takes $form || echo apt $form
done
"#;

/// The forms that dpkg or apt of a release refuses.
fn refused_by_tools(base: &Path, forms: &[Form], taken: &[String]) -> BTreeSet<usize> {
    let room = tempfile::tempdir().unwrap();
    let root = room.path().join("root");
    bases::copy(base, &root);
    for (number, form) in forms.iter().enumerate() {
        let folder = root.join(format!("table/{number}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("x.deb"), package(&form.control)).unwrap();
        let paragraph = form.control.trim_matches('\n');
        let of_index = format!("Filename: x.deb\nSize: 1\nSHA256: {}\n\n", "0".repeat(64));
        fs::write(folder.join("Packages"), format!("{paragraph}\n{of_index}")).unwrap();
    }
    let mut judge = Command::new("chroot");
    judge.arg(&root).args(["sh", "-c", JUDGE, "sh"]).args(taken).env_clear().env("LC_ALL", "C");
    let said = succeed(judge.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"));
    let rows = said.lines().map(|line| line.split_once(' ').unwrap());
    rows.map(|(_, number)| number.parse().unwrap()).collect()
}

/// The forms that `repo --skip-bad` leaves out, with its reasons.
fn left_out(debs: &Path, out: &Path) -> BTreeMap<usize, String> {
    let made = repo(&[debs], out).args(["--skip-bad", "--json"]).output().unwrap();
    assert_eq!(made.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&made.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    let bad = findings.filter(|finding| finding["reason"].get("bad").is_some());
    bad.map(|finding| (number_of(&finding["file"]), finding["message"].to_string())).collect()
}

fn number_of(file: &Value) -> usize {
    let stem = Path::new(file.as_str().unwrap()).file_stem().unwrap();
    stem.to_str().unwrap().parse().unwrap()
}

fn file_of(debs: &Path, number: usize) -> PathBuf {
    debs.join(format!("{number}.deb"))
}

#[test]
fn what_dpkg_or_apt_refuses_is_not_published() {
    need(&["mmdebstrap", "chroot"]);
    need_root();
    let forms = forms();
    assert!(forms.len() >= 400, "{}", forms.len());
    let room = tempfile::tempdir().unwrap();
    let (debs, out) = (room.path().join("debs"), room.path().join("repo"));
    fs::create_dir(&debs).unwrap();
    for (number, form) in forms.iter().enumerate() {
        fs::write(file_of(&debs, number), package(&form.control)).unwrap();
    }
    let bases = [bases::debian("bookworm"), bases::sid()];
    let ours = left_out(&debs, &out);
    let taken = (0..forms.len()).filter(|number| !ours.contains_key(number));
    let (all, taken) = (&forms, &taken.map(|number| number.to_string()).collect::<Vec<_>>());
    let judged: BTreeSet<usize> = thread::scope(|scope| {
        let judges =
            bases.each_ref().map(|base| scope.spawn(move || refused_by_tools(base, all, taken)));
        judges.into_iter().flat_map(|judge| judge.join().unwrap()).collect()
    });
    for (number, form) in forms.iter().enumerate() {
        let Form { field, control, is_strict } = form;
        let (is_judged, why) = (judged.contains(&number), ours.get(&number));
        assert_eq!(is_judged || *is_strict, why.is_some(), "{control:?}: {why:?}");
        assert!(!(is_judged && *is_strict), "no longer stricter than dpkg and apt: {control:?}");
        if let Some(why) = why {
            assert!(why.to_lowercase().contains(&field.to_lowercase()), "{control:?}: {why}");
        }
    }
    println!("{} forms, {} of them refused by dpkg or apt", forms.len(), judged.len());
    // Without the option nothing is written, and the other commands refuse them as well.
    let out = room.path().join("none");
    let (said, code) = refused(&mut repo(&[&debs], &out));
    assert_eq!(code, 2, "{said}");
    assert!(!out.join("dists").exists() && !out.join("pool").exists());
    for number in judged.iter().step_by(20) {
        let file = file_of(&debs, *number);
        assert!(said.contains(file.to_str().unwrap()), "{}: {said}", file.display());
        let verified = told(rockpack().arg("verify").arg(&file));
        assert!(verified.contains("V001"), "{:?}: {verified}", forms[*number].control);
        assert!(!rockpack().arg("inspect").arg(&file).output().unwrap().status.success());
    }
}

/// An index of another tool has the paragraph of a package that apt cannot read.
#[test]
fn a_bad_paragraph_of_another_tool_fails_the_verification() {
    need(&["apt-ftparchive"]);
    for (value, is_bad) in [("a (>= 1), b | c", false), ("a (>= 1), b [amd64]", true)] {
        let room = tempfile::tempdir().unwrap();
        let suite = room.path().join("dists/stable");
        let (pool, index) = (room.path().join("pool"), suite.join("main/binary-all"));
        fs::create_dir_all(&index).unwrap();
        fs::create_dir(&pool).unwrap();
        let text = control(1, ("Depends", value), "", "");
        fs::write(pool.join("f1_1_all.deb"), package(&text)).unwrap();
        let archive = |words: &[&str]| {
            succeed(Command::new("apt-ftparchive").args(words).current_dir(room.path()))
        };
        fs::write(index.join("Packages"), archive(&["packages", "pool"])).unwrap();
        let release = archive(&["release", "dists/stable"]);
        fs::write(suite.join("Release"), release).unwrap();
        let said = verify(room.path());
        let named = "paragraph of `f1`: field Depends: relation 2, `b [amd64]`";
        assert_eq!(said.contains(named), is_bad, "{said}");
        assert_eq!(said.contains("all checks passed"), !is_bad, "{said}");
    }
}

/// Owner, group, time and mode in the header of an archive's member: apt needs numbers.
#[test]
fn headers_that_apt_cannot_read_are_refused() {
    let good = package(&control(1, ("X", ""), "", ""));
    let room = tempfile::tempdir().unwrap();
    let is_published = |(at, field): (usize, &str)| {
        let mut bytes = good.clone();
        bytes[8 + at..8 + at + field.len()].copy_from_slice(field.as_bytes());
        let file = room.path().join("f1_1_all.deb");
        fs::write(&file, bytes).unwrap();
        let out = tempfile::tempdir().unwrap();
        let made = repo(&[&file], out.path()).output().unwrap();
        let verified = told(rockpack().arg("verify").arg(&file));
        assert_eq!(made.status.success(), !verified.contains("V001"), "{verified}");
        let said = String::from_utf8(made.stderr).unwrap();
        assert_eq!(made.status.success(), !said.contains("not a number"), "{said}");
        made.status.success()
    };
    let read = [(16, "            "), (16, "+7x"), (28, " 1"), (34, "1x    "), (40, "644     ")];
    assert!(read.into_iter().all(&is_published));
    let unread =
        [(16, "x"), (16, "-1"), (28, "root  "), (34, "+     "), (40, "8"), (40, "rw-r--r-")];
    assert!(!unread.into_iter().any(&is_published));
}
