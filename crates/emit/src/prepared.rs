//! Converts a planned package into specifications for the writers of the formats: the fields of a `.deb` and their
//! order, the dependencies and scriptlets of an `.rpm`, descriptions, and the file name.

use rockpack_archive::deb::{
    Control, ControlField, DebSpecification, INSTALLED_UNIT, installed_kib,
};
use rockpack_archive::package_file::PackageSpecification;
use rockpack_archive::payload::{PayloadEntry, PayloadEntryKind};
use rockpack_archive::rpm::{RpmSpecification, Scriptlet, ScriptletPhase, installed_size};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::Node;

use super::EmitOptions;
use super::schedule::compressor_workers;
use rockpack_package::{
    DEB_FIELDS, DebControl, Format, Package, PackageEntry, Relation, RpmControl,
};
use rockpack_signing::header_signer;

/// The specification of a package file, without the content of its files.
pub(super) struct Prepared {
    pub format: Format,
    pub file_name: String,
    pub installed_size: u64,
    pub specification: PackageSpecification,
}

/// The entries of the package that are in `format`, in the terms of the payload writers.
fn payload_entries(package: &Package<Content>, format: Format) -> Vec<PayloadEntry> {
    let inside = package.entries.iter().filter(|entry| entry.formats.has(format));
    let size = |entry: &PackageEntry<Content>| entry.node.data().map_or(0, Content::len);
    let mut entries = Vec::with_capacity(package.entries.len());
    entries.extend(inside.map(|entry| payload_entry(entry, size(entry), format)));
    entries
}

/// An entry in the terms of the payload writers; `size` is that of its content.
pub(super) fn payload_entry<F>(entry: &PackageEntry<F>, size: u64, format: Format) -> PayloadEntry {
    let (kind, mode) = match &entry.node {
        Node::Directory { mode } => (PayloadEntryKind::Directory, *mode),
        Node::File { mode, .. } => (PayloadEntryKind::File, entry.treatment.mode(*mode, format)),
        // Linux has no other permission bits of a symbolic link.
        Node::Link { target } => (PayloadEntryKind::Link { target: target.clone() }, 0o777),
    };
    let (path, treatment) = (entry.path.clone().into(), entry.treatment);
    PayloadEntry { path, kind, mode, size, treatment }
}

fn check_file_name(name: String) -> Result<String> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "+-._~^".contains(c));
    if name.starts_with('.') || !is_plain || name.len() > 255 {
        let message = format!("`{}` is not a valid package file name", name.escape_debug());
        return Err(Error::new(Kind::Config, message)
            .hint("names and versions consist of letters, digits and + - . ~ ^"));
    }
    Ok(name)
}

/// Specifies a `.deb`, except what depends on the content of files.
pub(super) fn prepare_deb(
    package: &Package<Content>,
    control: &DebControl,
    options: &EmitOptions<'_>,
) -> Result<Prepared> {
    let entries = payload_entries(package, Format::Deb);
    let kib = installed_kib(&entries);
    let specification = DebSpecification {
        control: Control {
            fields: fields(package, control, kib)?,
            triggers: control.triggers.clone(),
            scripts: control.scripts.clone(),
        },
        entries,
        mtime: options.content_date.into(),
        stamp: options.source_date_epoch.into(),
        compression: options.compression.of(Format::Deb),
        workers: compressor_workers(package.formats().count(), options),
    };
    Ok(Prepared {
        format: Format::Deb,
        file_name: check_file_name(control.file_name())?,
        installed_size: kib * INSTALLED_UNIT,
        specification: PackageSpecification::Deb(Box::new(specification)),
    })
}

fn fields(package: &Package<Content>, control: &DebControl, kib: u64) -> Result<Vec<ControlField>> {
    let mut fields = vec![
        ControlField::new("Package", &control.name),
        ControlField::new("Version", &control.version),
        ControlField::new("Architecture", &control.architecture),
        ControlField::new("Maintainer", &control.maintainer),
        ControlField::new("Installed-Size", kib.to_string()),
    ];
    for (kind, name) in DEB_FIELDS {
        let all = control.relations.iter();
        let same = all.filter(|relation| relation.kind == kind).map(|relation| {
            let Relation { name, version, .. } = relation;
            match version {
                Some((sign, version)) => format!("{name} ({} {version})", sign.sign(Format::Deb)),
                None => name.clone(),
            }
        });
        let same: Vec<String> = same.collect();
        if !same.is_empty() {
            fields.push(ControlField::new(name, same.join(", ")));
        }
    }
    let all = control.relations.iter();
    let foreign = all.filter(|it| !DEB_FIELDS.iter().any(|(kind, _)| *kind == it.kind));
    let faults = foreign.map(|relation| {
        let message = format!("{:?} {} has no field in a .deb", relation.kind, relation.name);
        Error::new(Kind::Bug, message)
    });
    Error::gather(faults.collect()).map_or(Ok(()), Err)?;
    fields.push(ControlField::new("Section", &control.section));
    fields.push(ControlField::new("Priority", &control.priority));
    fields.extend(package.homepage.as_ref().map(|url| ControlField::new("Homepage", url)));
    fields.extend(control.fields.iter().map(|(name, value)| ControlField::new(name, value)));
    let mut lines = vec![package.summary.clone()];
    lines.extend(wrapped(&package.description));
    fields.push(ControlField { name: "Description".to_owned(), lines });
    Ok(fields)
}

/// Specifies an `.rpm`, except what depends on the content of files.
pub(super) fn prepare_rpm(
    package: &Package<Content>,
    control: &RpmControl,
    options: &EmitOptions<'_>,
) -> Result<Prepared> {
    let entries = payload_entries(package, Format::Rpm);
    let installed_size = installed_size(&entries);
    let mut stated = control.clone();
    for change in &mut stated.changes {
        // As in a spec file, the version follows the author.
        change.author = format!("{} - {}-{}", change.author, control.version, control.release);
    }
    let signer = options.signer.map(|s| header_signer(s, options.source_date_epoch.into()));
    let specification = RpmSpecification {
        control: stated,
        summary: package.summary.clone(),
        description: wrapped(&package.description).join("\n"),
        url: package.homepage.clone(),
        scriptlets: scriptlets(control)?,
        entries,
        mtime: options.content_date,
        build_time: options.source_date_epoch,
        signer: signer.transpose()?,
        compression: options.compression.of(Format::Rpm),
        workers: compressor_workers(package.formats().count(), options),
    };
    Ok(Prepared {
        format: Format::Rpm,
        file_name: check_file_name(control.file_name())?,
        installed_size,
        specification: PackageSpecification::Rpm(Box::new(specification)),
    })
}

fn scriptlets(control: &RpmControl) -> Result<Vec<Scriptlet>> {
    let scriptlets = control.scripts.iter().map(|(name, (interpreter, text))| {
        // As in a spec file, the folder follows the name of a file trigger.
        let (name, folder) = match name.split_once(" -- ") {
            Some((name, folder)) => (name, Some(folder.to_owned())),
            None => (name.as_str(), None),
        };
        let phase = ScriptletPhase::of_name(name)
            .ok_or_else(|| Error::bug(format!("rpm knows no scriptlet {name}")))?;
        let (interpreter, text) = (interpreter.clone(), text.clone());
        Ok(Scriptlet { phase, interpreter, text, folder })
    });
    scriptlets.collect()
}

/// Columns that package managers show without breaking a line; lintian and rpmlint warn beyond.
const WIDTH: usize = 79;

/// Wraps the texts at [`WIDTH`] columns, with an empty line between paragraphs. A longer word gets its own line. Lines
/// do not break at a no-break space, which becomes a plain space: searches match only within a line.
fn wrapped(paragraphs: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in paragraphs {
        let mut words = paragraph.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let mut line = first.to_owned();
        for word in words {
            if line.chars().count() + 1 + word.chars().count() > WIDTH {
                lines.push(std::mem::take(&mut line));
            } else {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_wrapped_and_kept_apart() {
        let long = ["word"; 40].join(" ");
        let lines = wrapped(&[long, "  ".to_owned(), "second\nline ".to_owned(), "x".repeat(100)]);
        assert_eq!(lines[0], ["word"; 16].join(" "));
        assert!(lines[0].len() == 79 && lines[2].len() < 79);
        assert_eq!(&lines[3..6], ["", "second line", ""]);
        assert_eq!(lines[6].len(), 100);
        let unbroken = format!("{} RX\u{a0}7900\u{a0}XTX", "x".repeat(70));
        assert_eq!(wrapped(&[unbroken])[1], "RX 7900 XTX");
    }
}
