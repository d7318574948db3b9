//! Dependencies of packages outside of the set: private libraries, missing libraries, the distribution, and
//! library search paths.

mod edited;
mod folders;
mod interpreters;
mod long_search_paths;
mod misplaced;
mod outside;
mod reached;
mod replaced;
mod roots;
mod search_paths;
mod verified;
mod versions;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::program::rockpack;
use support::queries::{deb_field, rpm_list};
use support::tools;

/// The artifacts, configuration and output of a build.
struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("x.c"), "").unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The stage prefix of the artifact `name`, made along with its manifest.
    fn stage(&self, name: &str) -> PathBuf {
        self.stage_of(&format!("{name}_lib"))
    }

    /// The stage prefix of a component such as `name_test`, made along with its manifest.
    fn stage_of(&self, component: &str) -> PathBuf {
        let artifact = self.path(&format!("shard/{component}_generic"));
        let stage = artifact.join("math/part/stage");
        fs::create_dir_all(&stage).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), "math/part/stage\n").unwrap();
        stage
    }

    /// The exit code and problems of `verify`.
    fn verified(&self) -> (Option<i32>, Vec<String>) {
        let mut verify = rockpack();
        let output = verify.arg("verify").arg("--json").arg(self.path("out")).output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let problems = json["problems"].as_array().unwrap().iter().map(|problem| {
            let [code, subject, message] =
                ["code", "subject", "message"].map(|key| problem[key].as_str().unwrap());
            format!("{code} {subject}: {message}")
        });
        (output.status.code(), problems.collect())
    }

    /// Compiles `source` into `file` with the words of `options`.
    fn compile(&self, file: &Path, source: &str, options: &str) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let text = self.path("x.c");
        fs::write(&text, source).unwrap();
        let mut command = Command::new("cc");
        command.arg("-w").arg("-o").arg(file).arg(text).args(options.split_whitespace());
        tools::run(&mut command);
    }

    fn library(&self, file: &Path, options: &str) {
        let name = file.file_name().unwrap().to_str().unwrap();
        let options = format!("-shared -fPIC -Wl,-soname,{name} {options}");
        self.compile(file, "int answer(void) { return 42; }", &options);
    }

    /// Compiles a program that needs `library`, and returns 42 with it.
    fn program(&self, file: &Path, library: &Path, options: &str) {
        let options = format!("{} {options}", library.display());
        let source = "int answer(void); int main(void) { return answer() != 42; }";
        self.compile(file, source, &options);
    }

    fn build(&self, config: &str, options: &[&str]) -> Output {
        fs::write(self.path("config.toml"), config).unwrap();
        let mut command = rockpack();
        command.args(["build", "-v", "--version", "7.1.0", "--artifacts"]).arg(self.path("shard"));
        command.arg("--config").arg(self.path("config.toml")).arg("--out").arg(self.path("out"));
        command.args(options).output().unwrap()
    }

    /// Builds, and returns the findings.
    fn built(&self, config: &str, options: &[&str]) -> String {
        let output = self.build(config, options);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        String::from_utf8_lossy(&output.stdout).into_owned() + &told
    }

    fn refused(&self, config: &str, options: &[&str], parts: &[&str]) {
        let output = self.build(config, options);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{told}");
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        parts.iter().for_each(|part| assert!(told.contains(part), "{part} is not in {told}"));
        assert!(!self.path("out").exists());
    }

    fn depends(&self, package: &str) -> String {
        deb_field(&self.path(&format!("out/{package}_7.1.0-1_amd64.deb")), "Depends")
    }

    fn rpm(&self, package: &str, what: &str) -> String {
        rpm_list(&self.path(&format!("out/{package}-7.1.0-1.x86_64.rpm")), what)
    }

    /// Unpacks a `.deb`, and returns the folder.
    fn unpacked(&self, package: &str) -> PathBuf {
        let (file, folder) =
            (self.path(&format!("out/{package}_7.1.0-1_amd64.deb")), self.path("unpacked"));
        tools::run(Command::new("dpkg-deb").arg("-x").arg(file).arg(&folder));
        folder.join("opt/rocm-7.1")
    }
}
