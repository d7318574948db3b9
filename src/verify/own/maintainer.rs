//! Scripts that a package has run where it is installed and removed.

use ::rpm::{IndexData, PackageMetadata};
use rockpack_base::formats::deb;
use rockpack_base::formats::package_file::PackageReader;

/// A script of a package, or another control file that has something done.
#[derive(Debug)]
pub(in crate::verify) struct InstalledScript {
    /// When it runs: `postinst`, `%post`. For other control files their name.
    pub(in crate::verify) phase: String,
    /// The program that runs it, with its arguments; empty for a `.deb`, whose scripts say it in their
    /// first line.
    pub(in crate::verify) interpreter: String,
    pub(in crate::verify) text: String,
}

/// Control files of a `.deb` that have nothing done.
const PLAIN: [&str; 3] = ["control", "md5sums", "conffiles"];

/// Scriptlets of an `.rpm`: their phases, and the tags of text and interpreter.
const SCRIPTLETS: [(&str, u32, u32); 9] = [
    ("%pretrans", 1151, 1153),
    ("%pre", 1023, 1085),
    ("%post", 1024, 1086),
    ("%preun", 1025, 1087),
    ("%postun", 1026, 1088),
    ("%posttrans", 1152, 1154),
    ("%verify", 1079, 1091),
    ("%preuntrans", 5104, 5106),
    ("%postuntrans", 5105, 5107),
];

/// The scripts of a package.
pub(in crate::verify) fn scripts(reader: &PackageReader) -> Vec<InstalledScript> {
    match reader {
        PackageReader::Deb(deb) => of_deb(deb),
        PackageReader::Rpm(rpm) => of_rpm(rpm.metadata()),
    }
}

/// Longest `copyright` that is read, in bytes.
const COPYRIGHT_MAX: u64 = 16 << 20;

/// Whether Debian has the licence of a package in the file at `path`.
pub(in crate::verify) fn is_copyright(path: &str, package: &str, size: u64) -> bool {
    path.strip_prefix("/usr/share/doc/").and_then(|path| path.strip_suffix("/copyright"))
        == Some(package)
        && size <= COPYRIGHT_MAX
}

/// The licence of all files by a `copyright` in the machine-readable form.
pub(in crate::verify) fn license(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let mut lines = text.lines().skip_while(|line| *line != "Files: *");
    let found = lines.find_map(|line| line.strip_prefix("License: "));
    found.map(|license| license.trim().to_owned())
}

fn of_deb(deb: &deb::DebReader) -> Vec<InstalledScript> {
    let files = deb.control_files().iter().filter(|(name, _)| !PLAIN.contains(&name.as_str()));
    let scripts = files.map(|(phase, text)| InstalledScript {
        phase: phase.clone(),
        interpreter: String::new(),
        text: text.to_string(),
    });
    scripts.collect()
}

fn of_rpm(metadata: &PackageMetadata) -> Vec<InstalledScript> {
    SCRIPTLETS.iter().filter_map(|tags| scriptlet(tags, metadata)).collect()
}

fn scriptlet(
    (phase, body, program): &(&str, u32, u32),
    metadata: &PackageMetadata,
) -> Option<InstalledScript> {
    let (body, program) = (header_text(metadata, *body), header_text(metadata, *program));
    (body.is_some() || program.is_some()).then(|| InstalledScript {
        phase: (*phase).to_owned(),
        interpreter: program.unwrap_or_else(|| "/bin/sh".to_owned()),
        text: body.unwrap_or_default(),
    })
}

fn header_text(metadata: &PackageMetadata, tag: u32) -> Option<String> {
    match metadata.header.entry(tag) {
        Ok(IndexData::StringTag(text)) => Some(text.clone()),
        Ok(IndexData::StringArray(words) | IndexData::I18NString(words)) => Some(words.join(" ")),
        _ => None,
    }
}
