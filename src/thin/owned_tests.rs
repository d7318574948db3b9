use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A root with empty files, which the paths of a test have to be in.
struct Root {
    /// Removes the folder.
    _folder: TempDir,
    path: PathBuf,
}

impl Root {
    fn with(files: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Self { path: folder.path().canonicalize().unwrap(), _folder: folder };
        files.iter().for_each(|file| root.write(file, ""));
        root
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        symlink(target, self.path.join(path)).unwrap();
    }

    fn list(&self, package: &str, lines: &[&str]) {
        self.write(&format!("{DPKG}/{package}.list"), &(lines.join("\n") + "\n"));
    }

    fn paths(&self, paths: &[&str]) -> BTreeSet<PathBuf> {
        paths.iter().map(|path| self.path.join(path)).collect()
    }

    fn below(&self, path: &Path) -> String {
        path.strip_prefix(&self.path).unwrap().to_str().unwrap().to_owned()
    }

    /// `<package> <path>` of those of `paths` that dpkg lists.
    fn listed(&self, paths: &[&str]) -> BTreeSet<String> {
        let paths = self.paths(paths);
        let listed = listed_by_dpkg(&self.path, &paths).unwrap();
        listed.iter().map(|(package, path)| format!("{package} {}", self.below(path))).collect()
    }

    /// Those of `paths` that rpm may have installed.
    fn system(&self, paths: &[&str]) -> Vec<String> {
        let paths = self.paths(paths);
        let system = system_paths(&self.path, &paths).unwrap();
        system.into_iter().map(|path| self.below(path)).collect()
    }
}

fn set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn dpkg_has_the_paths_of_its_lists_alone() {
    let root = Root::with(&["opt/k/a.so", "opt/k/b.so", "opt/other/a.so", "a.so"]);
    root.list("k:amd64", &["/.", "/opt", "/opt/k", "/opt/k/a.so"]);
    root.list("top", &["/.", "/a.so", "/opt/gone/b.so", "no path"]);
    root.write(&format!("{DPKG}/k:amd64.md5sums"), "/opt/k/b.so\n");
    let all = ["opt/k/a.so", "opt/k/b.so", "opt/other/a.so", "a.so"];
    assert_eq!(root.listed(&all), set(&["k:amd64 opt/k/a.so", "top a.so"]));
}

/// dpkg lists a link by the path of the link, wherever it leads.
#[test]
fn dpkg_has_links_by_their_own_path() {
    let root = Root::with(&["opt/k/a.so.1"]);
    root.link("opt/k/a.so", "a.so.1");
    root.list("k-dev", &["/opt/k/a.so"]);
    assert_eq!(root.listed(&["opt/k/a.so", "opt/k/a.so.1"]), set(&["k-dev opt/k/a.so"]));
}

#[test]
fn dpkg_has_files_by_a_name_with_links_in_it() {
    let root = Root::with(&["usr/lib/gnu/a.so", "disk/k/b.so"]);
    root.link("lib", "usr/lib");
    root.link("opt", "disk");
    root.list("k", &["/lib/gnu/a.so", "/opt/k/b.so"]);
    let all = ["usr/lib/gnu/a.so", "disk/k/b.so"];
    assert_eq!(root.listed(&all), set(&["k usr/lib/gnu/a.so", "k disk/k/b.so"]));
}

/// /lib and /usr/lib are two folders until /usr is merged.
#[test]
fn dpkg_has_no_file_of_another_folder() {
    let root = Root::with(&["lib/a.so", "usr/lib/a.so"]);
    root.list("k", &["/lib/a.so"]);
    assert_eq!(root.listed(&["lib/a.so", "usr/lib/a.so"]), set(&["k lib/a.so"]));
}

#[test]
fn a_list_that_cannot_be_read_is_an_error() {
    let root = Root::with(&["opt/a.so"]);
    fs::create_dir_all(root.path.join(DPKG).join("k.list")).unwrap();
    let error = owners(&root.paths(&["opt/a.so"])).unwrap_err();
    assert!(error.to_string().contains("k.list"), "{error}");
}

#[test]
fn system_folders_count_where_rpm_has_a_database() {
    let own = ["home/a.so", "root/a.so", "srv/a.so", "usr/local/lib/a.so", "optional/a.so"];
    let system = ["lib64/a.so", "opt/k/a.so", "usr/lib/a.so"];
    let all = [own.as_slice(), system.as_slice()].concat();
    for database in RPM {
        let root = Root::with(&all);
        assert!(root.system(&all).is_empty());
        root.write(database, "");
        assert_eq!(root.system(&all), system, "{database}");
    }
    // Debian's rpm comes with an empty folder.
    let root = Root::with(&all);
    fs::create_dir_all(root.path.join("var/lib/rpm")).unwrap();
    assert!(root.system(&all).is_empty());
}

#[test]
fn system_folders_may_be_elsewhere() {
    let all = ["disk/a.so", "var/home/a.so", "var/usrlocal/a.so", "var/x/a.so"];
    let root = Root::with(&all);
    root.write("usr/share/rpm/rpmdb.sqlite", "");
    fs::create_dir_all(root.path.join("usr/lib/sysimage")).unwrap();
    root.link("usr/lib/sysimage/rpm", "../../share/rpm");
    root.link("usr/local", "../var/usrlocal");
    root.link("home", "var/home");
    root.link("opt", "disk");
    assert_eq!(root.system(&all), ["disk/a.so", "var/x/a.so"]);
}

#[test]
fn texts_name_files_and_packages_once() {
    let root = Root::with(&["opt/k/1.so", "opt/k/2.so", "opt/k/3.so", "opt/k/4.so"]);
    let paths = root.paths(&["opt/k/1.so", "opt/k/2.so", "opt/k/3.so", "opt/k/4.so"]);
    let lines = ["/opt/k/1.so", "/opt/k/2.so", "/opt/k/3.so", "/opt/k/4.so"];
    root.list("k:amd64", &lines);
    root.list("k:i386", &lines);
    let folder = root.path.join("opt/k");
    let folder = folder.display();
    let text = &owners(&paths).unwrap()[0];
    let expected = format!(
        "{folder}/1.so, {folder}/2.so, {folder}/3.so and 1 more of the dpkg packages k:amd64, k:i386: "
    );
    assert!(text.starts_with(&expected), "{text}");
    assert!(text.contains("by `dpkg -V` as `??5??????` if changed"), "{text}");
}

#[test]
fn nothing_is_owned_if_nothing_changes() {
    assert!(owners(&BTreeSet::new()).unwrap().is_empty());
}
