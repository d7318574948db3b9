//! Wheels whose archives hide something, or that installers refuse.

use std::process::Command;

use support::example::rockpack;
use support::python::PYTHON;
use support::repo_fixture::{refused, repo};
use support::tools::{need, told};

/// Of more than eighty forms of an archive, rockpack refuses those that hide bytes or lie, and those that an
/// installer refuses. It reads all others.
#[test]
fn archives_that_hide_something_or_that_installers_refuse_are_refused() {
    need(&["python3", "uv"]);
    let room = tempfile::tempdir().unwrap();
    let mut python = Command::new(PYTHON);
    let output = python.args(["-c", include_str!("forms.py")]).arg(room.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let forms = String::from_utf8(output.stdout).unwrap();
    let mut wrong = Vec::new();
    for form in forms.lines() {
        let &[hides, refusing, path] = form.split('\t').collect::<Vec<_>>().as_slice() else {
            panic!("{form}");
        };
        let said = told(rockpack().arg("inspect").arg(path));
        let is_bad = hides != "-" || refusing != "-";
        let code = if is_bad { 2 } else { 0 };
        if !said.ends_with(&format!("exit status: {code}\n")) || said.contains("a bug in rockpack")
        {
            wrong.push(format!("{form}: {said}"));
        }
        if path.contains("/hidden") || path.contains("/unseen-202e") {
            let out = room.path().join("repo");
            let (said, code) = refused(&mut repo(&[path.as_ref()], &out));
            assert!(code == 2 && !out.join("simple").exists(), "{code}: {said}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(forms.lines().count() > 80, "{forms}");
}
