//! The indexes of an apt repository.
//!
//! ```text
//! dists/<suite>/InRelease         Release, clear-signed: the one file that makes all others valid
//! dists/<suite>/Release           one paragraph of fields, then the digests of every index
//! dists/<suite>/<component>/binary-<architecture>/Packages
//!                                 one paragraph per package: its control file, Filename, Size and
//!                                 digests; paragraphs are separated by an empty line
//! dists/<suite>/<component>/dep11/Components-<architecture>.yml
//!                                 the packages for hardware (`dep11`)
//! …/by-hash/SHA256/<digest>       the same indexes under names that never change their content
//! ```
//!
//! Source: Debian's description of the repository format, apt-secure(8), sources.list(5), and the output of
//! apt-ftparchive. rockpack writes SHA-256 and SHA-512; apt trusts neither MD5 nor SHA-1.
//!
//! In `Packages`, a paragraph is the control file of the package, in its order, followed by the fields that only an
//! index has. Fields without a value are left out, as by dpkg-scanpackages. Refused: control files that state a field
//! of the index, and names, versions and architectures that Debian's policy does not allow or that are too long,
//! because paths are made of them.

pub mod dep11;
mod release;

use serde::{Deserialize, Serialize};

pub use release::{IndexFile, KEYRING_KEYS, Release, format_date, parse_date};

use crate::deb::{ControlFields, FIELDS_MAX, fault, parse_control, parse_stanza};
use crate::package_file::Format;
use crate::path_digests::PathDigests;
use crate::spelling;
use rockpack_core::content::NAME_MAX;
use rockpack_core::error::{Error, Kind, Result};

/// Fields that the index adds; a package that states one would contradict it.
const INDEX_FIELDS: [&str; 7] =
    ["Filename", "MSDOS-Filename", "Size", "MD5sum", "SHA1", "SHA256", "SHA512"];

/// A package in an index, without its path, size and digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DebPackage {
    pub name: String,
    /// Field `Version`, e.g. `1:7.1.0-1`.
    pub version: String,
    /// Field `Architecture`, e.g. `amd64` or `all`.
    pub architecture: String,
    /// Name of the source package: field `Source` without version, or the package's name.
    pub source: String,
    /// The control file, every line with a line feed.
    pub control: String,
    /// The reason if the data archive cannot be unpacked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Digests of the paths of files and links. If the data archive cannot be unpacked, those of the files in
    /// the lists of the control archive.
    pub paths: PathDigests,
}

impl DebPackage {
    pub fn of_control(text: &str) -> Result<Self> {
        let fields = parse_control(text)?;
        let name = required_field(&fields, "Package")?;
        let source = match fields.get("Source") {
            Some(source) => source.split([' ', '(']).next().unwrap_or_default().to_owned(),
            None => name.clone(),
        };
        let package = Self {
            version: required_field(&fields, "Version")?,
            architecture: required_field(&fields, "Architecture")?,
            source,
            name,
            control: paragraph(text.trim_matches('\n'), &fields),
            unread: None,
            paths: PathDigests::default(),
        };
        package.check(&fields)?;
        Ok(package)
    }

    fn check(&self, fields: &ControlFields) -> Result<()> {
        let mut faults = Vec::new();
        for (what, name) in [("package", &self.name), ("source", &self.source)] {
            if !spelling::is_name(Format::Deb, name) {
                faults.push(fault(format!("`{}` is not a valid {what} name", name.escape_debug())));
            }
        }
        let architecture = &self.architecture;
        if !spelling::is_architecture(Format::Deb, architecture)
            || architecture.contains(|c: char| c.is_ascii_uppercase())
        {
            let message = format!("`{}` is not a valid architecture", architecture.escape_debug());
            faults.push(fault(message));
        }
        if self.source.len().max(self.file_name().len()) > NAME_MAX {
            faults.push(fault(format!("makes a file name of more than {NAME_MAX} bytes")));
        }
        let stated = INDEX_FIELDS.iter().filter(|name| fields.get(name).is_some());
        faults.extend(stated.map(|name| fault(format!("has {name}, a field of indexes only"))));
        Error::gather(faults).map_or(Ok(()), Err)
    }

    /// The file name, `<name>_<version>_<architecture>.deb`, without the epoch.
    pub fn file_name(&self) -> String {
        let version = self.version.split_once(':').map_or(&*self.version, |(_, rest)| rest);
        format!("{}_{version}_{}.deb", self.name, self.architecture)
    }
}

fn required_field(fields: &ControlFields, name: &str) -> Result<String> {
    let value = fields.get(name).filter(|value| !value.is_empty());
    value.cloned().ok_or_else(|| fault(format!("has no field {name}")))
}

/// The control file `text` without the fields that an index leaves out.
fn paragraph(text: &str, fields: &ControlFields) -> String {
    let mut paragraph = String::new();
    let mut is_kept = true;
    for line in text.split('\n') {
        if !line.starts_with([' ', '\t']) {
            let name = line.split(':').next().unwrap_or_default();
            is_kept = fields.get(name).is_none_or(|value| !value.is_empty());
        }
        if is_kept {
            paragraph.push_str(line);
            paragraph.push('\n');
        }
    }
    paragraph
}

/// A paragraph of `Packages`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stanza<'a> {
    pub package: &'a DebPackage,
    /// Path of the package, relative to the root of the repository.
    pub path: &'a str,
    /// Bytes of the file.
    pub size: u64,
    /// SHA-256 in hex.
    pub sha256: &'a str,
    /// SHA-512 in hex, if it is known; apt does not need it next to SHA-256.
    pub sha512: Option<&'a str>,
}

impl Stanza<'_> {
    /// Appends the paragraph and an empty line.
    pub fn render(&self, text: &mut String) {
        let Self { package, path, size, sha256, sha512 } = self;
        text.push_str(&package.control);
        text.push_str(&format!("Filename: {path}\nSize: {size}\nSHA256: {sha256}\n"));
        if let Some(sha512) = sha512 {
            text.push_str(&format!("SHA512: {sha512}\n"));
        }
        text.push('\n');
    }
}

/// Parses the paragraphs of one or several indexes. None is longer than a control file may be.
pub fn paragraphs(text: &str) -> impl Iterator<Item = Result<ControlFields>> {
    let paragraphs = text.split("\n\n").map(|text| text.trim_matches('\n'));
    paragraphs.filter(|text| !text.is_empty()).map(|text| {
        if text.len() as u64 > FIELDS_MAX {
            let message =
                format!("has a paragraph of {} bytes, more than {FIELDS_MAX}", text.len());
            let hint = "no package is as large: remove it from the repository and publish again";
            return Err(Error::new(Kind::Limit, message).hint(hint));
        }
        parse_stanza(text)
    })
}

/// The host in a URL as apt reads it: without user, port and the brackets of an IPv6 address. Empty in URLs
/// of the own machine, such as `file:/srv/rocm`.
pub fn url_host(url: &str) -> &str {
    let rest = url.split_once(':').and_then(|(_, rest)| rest.strip_prefix("//"));
    let authority = rest.unwrap_or_default().split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let end: &[char] = if host.starts_with('[') { &[']'] } else { &[':'] };
    host.trim_start_matches('[').split(end).next().unwrap_or_default()
}

/// The value of `Pin` in apt_preferences(5) for the suite of this origin, label and codename at this URL. Absent
/// fields are empty. A suite without origin and label may be called like a distribution's, so its pin is for the host.
///
/// `Pin: release o=…,l=…,n=…` compares fields of `Release` with patterns of fnmatch(3), or with a regular
/// expression between slashes. Commas separate the fields; nothing escapes them, but `?` matches one.
/// `Pin: origin "…"` compares the host of the URL. Source: apt_preferences(5), and apt's `versionmatch.cc`.
pub fn pin(url: &str, [origin, label, codename]: [&str; 3]) -> String {
    if origin.is_empty() && label.is_empty() {
        return format!("origin \"{}\"", url_host(url));
    }
    let fields = [("o", origin), ("l", label), ("n", codename)];
    let present = fields.iter().filter(|(_, value)| !value.is_empty());
    let exact = |value: &str| value.replace([',', '*', '[', ']', '\\', '/'], "?");
    let patterns = present.map(|&(key, value)| format!("{key}={}", exact(value)));
    format!("release {}", patterns.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: &str = "Package: x\nVersion: 1:2.0-1\nArchitecture: amd64\nSource: y (3)\n\
        Description: short\n long\n .\n more\n";

    #[test]
    fn a_paragraph_is_the_control_file_and_its_place() {
        let package = DebPackage::of_control(CONTROL).unwrap();
        assert_eq!(package.file_name(), "x_2.0-1_amd64.deb");
        assert_eq!(package.source, "y");
        let stanza =
            Stanza { package: &package, path: "pool/x", size: 7, sha256: "aa", sha512: Some("bb") };
        let mut text = String::new();
        stanza.render(&mut text);
        stanza.render(&mut text);
        let read: Vec<_> = paragraphs(&text).collect::<Result<_>>().unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[1].get("Description").unwrap(), "short\nlong\n\nmore");
        assert_eq!(read[1].get("Filename").unwrap(), "pool/x");
    }

    #[test]
    fn what_says_nothing_is_left_out() {
        let empty = "Depends:\nRecommends: \t\r\nstatus-x: y\n";
        let long = "Conffiles:\n /etc/x 00\n";
        let text = format!("\n\n{empty}{CONTROL}{long}Tag:\n\n");
        let package = DebPackage::of_control(&text).unwrap();
        assert_eq!(package.control, format!("status-x: y\n{CONTROL}{long}"));
        let whole = DebPackage::of_control(CONTROL).unwrap();
        assert_eq!(whole.control, CONTROL);
        for text in
            [format!(" \n{CONTROL}"), format!("\r\n{CONTROL}"), format!("Depends:\n \n{CONTROL}")]
        {
            assert!(DebPackage::of_control(&text).is_err(), "{text:?}");
        }
    }

    /// This fault was found by fuzzing.
    #[test]
    fn a_blank_line_would_end_the_paragraph_and_is_refused() {
        for blank in [" ", "\t", " \u{c}", " \r"] {
            for text in [format!("{CONTROL}{blank}"), format!("{CONTROL}{blank}\nSection: x\n")] {
                assert!(DebPackage::of_control(&text).is_err(), "{text:?}");
            }
        }
    }

    #[test]
    fn what_would_lead_out_of_the_pool_is_refused() {
        let [long_source, long_package] =
            ["Source", "Package"].map(|field| format!("{field}: {}", "y".repeat(NAME_MAX + 1)));
        for (from, to) in [
            ("Package: x", "Package: ../x"),
            ("Package: x", "Package: .x"),
            ("Version: 1:2.0-1", "Version: 1:../../x"),
            ("Version: 1:2.0-1", "Version: 1:"),
            ("Architecture: amd64", "Architecture: a/b"),
            ("Source: y (3)", "Source: /etc"),
            ("Source: y (3)", &*long_source),
            ("Package: x", &*long_package),
            ("Source: y (3)", "filename: pool/other"),
            ("Version: 1:2.0-1\n", ""),
        ] {
            let text = CONTROL.replace(from, to);
            assert!(DebPackage::of_control(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn hosts_are_without_user_and_port() {
        for (url, host) in [
            ("https://packages.example.org/rocm", "packages.example.org"),
            ("http://user:word@example.org:8080?x", "example.org"),
            ("https://[2001:db8::1]:443/rocm", "2001:db8::1"),
            ("https://example.org", "example.org"),
            ("file:/srv/rocm", ""),
            ("file:///srv/rocm", ""),
        ] {
            assert_eq!(url_host(url), host, "{url}");
        }
    }

    #[test]
    fn pins_name_a_suite_or_a_host() {
        let url = "https://example.org/rocm";
        assert_eq!(pin(url, ["", "", "stable"]), "origin \"example.org\"");
        assert_eq!(pin(url, ["A, [B]", "", "stable"]), "release o=A? ?B?,n=stable");
        assert_eq!(pin(url, ["", "/l/", "stable"]), "release l=?l?,n=stable");
    }
}
