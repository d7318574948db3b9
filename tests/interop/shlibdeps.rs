//! Dependencies of debs compared with dpkg-shlibdeps, for programs and libraries of this system, if it is a
//! Debian release with a table. `.ci/shlibdeps` makes a system of each such release, and compares all of it.

use std::process::Command;

use support::program::rockpack_path;
use support::sweep::or_all;
use support::tools;

/// The number of files to compare; the script takes those with the most different libraries.
fn files() -> &'static str {
    or_all("6", "12")
}

/// The distribution's name, such as `debian-12`.
fn this_distribution() -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    Some(format!("{}-{}", value(&text, "ID=")?, value(&text, "VERSION_ID=")?))
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.map(|value| value.trim_matches('"'))
}

#[test]
fn debs_need_what_dpkg_shlibdeps_finds() {
    let needed = ["dpkg-shlibdeps", "dpkg-deb", "objdump", "readelf", "python3", "perl"];
    tools::need(&needed);
    let distribution = this_distribution().unwrap_or_default();
    if !["debian-12", "debian-13"].contains(&distribution.as_str()) {
        tools::skip("needs Debian 12 or 13");
    }
    let files = files();
    let script = tools::repository(".ci/shlibdeps");
    let mut command = Command::new(script);
    command.env("ROCKPACK", rockpack_path());
    let told = tools::succeed(command.args(["--root", "/", "--limit", files, &distribution]));
    assert!(told.contains(&format!("{files} of {files} files equal")), "{told}");
}
