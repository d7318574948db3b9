//! The texts of packages, from the configuration and from the artifacts' licence texts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{GROUPS, copy_shards, rockpack};
use support::queries::{deb_field, rpm_list, rpm_tags};
use support::tools;
use tempfile::TempDir;

const LICENCE: &str = "The MIT License (MIT)\n\nCopyright (c) 2018-2025 Example Makers, Inc.\r\n\n\
                       Permission is hereby granted\n";

const CONFIG: &str = r#"
primary_shard = "gfx110X-build"
homepage = "https://example.org/"
license = "Apache-2.0"

[architecture_groups.gfx110X]
architectures = ["gfx1100", "gfx1101", "gfx1102"]

[packages.rocm-blas]
summary = "Basic linear algebra for GPUs of the example"
description = "The first paragraph,\nwrapped.\n\nThe second."
section = "science"
license = "MIT"
homepage = "https://example.org/blas"

[packages.rocm-blas-gfx110x]
summary = "Kernels of the example"
"#;

/// A set of artifacts with a licence text, built by `config`.
struct Built(TempDir);

impl Built {
    fn with(config: &str) -> Self {
        let built = Self(tempfile::tempdir().unwrap());
        let artifacts = built.path("shards");
        copy_shards(&artifacts);
        for group in &GROUPS {
            let folder = group.stage(&artifacts, "lib").join("share/doc/rocblas");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("LICENSE.md"), LICENCE).unwrap();
        }
        fs::write(built.path("config.toml"), config).unwrap();
        built
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self) -> Command {
        let mut build = rockpack();
        build.arg("build").arg("--artifacts").arg(self.path("shards"));
        build.arg("--config").arg(self.path("config.toml"));
        build.args(["--version", "7.1.0"]).arg("--out").arg(self.path("out"));
        build
    }

    fn deb(&self, package: &str) -> PathBuf {
        self.path(&format!("out/{package}_7.1.0-1_amd64.deb"))
    }

    fn rpm(&self, package: &str) -> PathBuf {
        self.path(&format!("out/{package}-7.1.0-1.x86_64.rpm"))
    }
}

fn tag(rpm: &Path, name: &str) -> String {
    rpm_tags(rpm, &format!("%{{{name}}}"))
}

#[test]
fn the_configuration_has_the_last_word_about_a_package() {
    tools::need(&["dpkg-deb", "rpm"]);
    let built = Built::with(CONFIG);
    tools::run(&mut built.command());
    let (deb, rpm) = (built.deb("rocm-blas"), built.rpm("rocm-blas"));
    let description = "Basic linear algebra for GPUs of the example\n The first paragraph, wrapped.\
                       \n .\n The second.";
    assert_eq!(deb_field(&deb, "Description"), description);
    assert_eq!(deb_field(&deb, "Section"), "science");
    assert_eq!(deb_field(&deb, "Homepage"), "https://example.org/blas");
    assert_eq!(tag(&rpm, "SUMMARY"), "Basic linear algebra for GPUs of the example");
    assert_eq!(tag(&rpm, "DESCRIPTION"), "The first paragraph, wrapped.\n\nThe second.");
    assert_eq!(
        (tag(&rpm, "LICENSE"), tag(&rpm, "URL")),
        ("MIT".into(), "https://example.org/blas".into())
    );
    // Licence and home page apply to the family, summary and section to the package alone.
    let (deb, rpm) = (built.deb("rocm-blas-gfx110x"), built.rpm("rocm-blas-gfx110x"));
    assert_eq!(tag(&rpm, "SUMMARY"), "Kernels of the example");
    assert_eq!((deb_field(&deb, "Section"), tag(&rpm, "LICENSE")), ("libs".into(), "MIT".into()));
    assert_eq!(deb_field(&deb, "Homepage"), "https://example.org/blas");
    let (deb, rpm) = (built.deb("rocm-host-suite-sparse"), built.rpm("rocm-host-suite-sparse"));
    assert_eq!(tag(&rpm, "LICENSE"), "Apache-2.0");
    assert_eq!(deb_field(&deb, "Homepage"), "https://example.org/");
    let changelog = rpm_list(&rpm, "--changelog");
    assert!(changelog.starts_with("* Wed Jan 01 2025 Unnamed packager"), "{changelog}");
}

#[test]
fn licence_texts_are_quoted_and_marked() {
    tools::need(&["dpkg-deb", "rpm"]);
    let built = Built::with(CONFIG);
    tools::run(&mut built.command());
    let root = built.path("root");
    tools::run(Command::new("dpkg-deb").arg("-x").arg(built.deb("rocm-blas")).arg(&root));
    let copyright = fs::read_to_string(root.join("usr/share/doc/rocm-blas/copyright")).unwrap();
    let expected = "Files: *\nCopyright: 2018-2025 Example Makers, Inc.\nLicense: MIT\n \
                    share/doc/rocblas/LICENSE.md:\n .\n The MIT License (MIT)\n .\n Copyright (c) \
                    2018-2025 Example Makers, Inc.\n .\n Permission is hereby granted\n";
    assert!(copyright.ends_with(expected), "{copyright}");
    let licences = rpm_list(&built.rpm("rocm-blas"), "--licensefiles");
    let expected = "/opt/rocm-7.1/share/doc/rocblas/LICENSE.md\n\
                    /usr/share/licenses/rocm-blas/copyright\n";
    assert_eq!(licences, expected);
}

#[test]
fn a_licence_that_cannot_be_quoted_is_named() {
    let built = Built::with(CONFIG);
    for group in &GROUPS {
        let folder = group.stage(&built.path("shards"), "lib").join("share/doc/rocblas");
        fs::write(folder.join("NOTICE"), b"\xff\xfe").unwrap();
    }
    let told = tools::told(built.command().arg("-v"));
    let finding = "R081 licence-not-quoted: blas_lib/share/doc/rocblas/NOTICE: is not quoted in \
                   the copyright file of its packages: it is not UTF-8";
    assert!(told.contains(finding) && told.ends_with("exit status: 0\n"), "{told}");
}

#[test]
fn words_that_no_field_can_hold_are_refused_with_their_place() {
    for (words, told) in [
        ("summary = \"two\\nlines\"", "line 2, column 11"),
        ("summary = \" \"", "one line of text"),
        ("description = \"\"", "line 2, column 15"),
        ("section = \"Not One\"", "is not a valid section"),
        ("license = \"MIT\\nDepends: x\"", "one line of text"),
        ("licence = \"MIT\"", "license"),
    ] {
        let built = Built::with(&format!("[packages.rocm-blas]\n{words}\n"));
        let told_us = tools::told(&mut built.command());
        assert!(told_us.contains(told), "{words}: {told_us}");
        assert!(!built.path("out").exists(), "{words}");
    }
    let long = format!("[packages.rocm-blas]\nsummary = \"{}\"\n", "x".repeat(81));
    assert!(tools::told(&mut Built::with(&long).command()).contains("more than 80 characters"));
    let typo = CONFIG.replace("[packages.rocm-blas]", "[packages.rocm-blass]");
    let built = Built::with(&typo);
    let told = tools::told(&mut built.command());
    assert!(told.contains("line 9") && told.contains("no such package"), "{told}");
    let built = Built::with("alternatives = \"all\"\n");
    assert!(tools::told(&mut built.command()).contains("line 1, column 16"));
}
