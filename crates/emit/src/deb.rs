//! Turns the plan's package into a `.deb`: fields, their order, and the file name.

use rockpack_archive::deb::{
    Control, ControlField, DebSpecification, INSTALLED_UNIT, installed_kib,
};
use rockpack_archive::package_file;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

use super::options::EmitOptions;
use super::prepared::{Prepared, check_file_name, payload_entries, time};
use super::{compressor, text};
use rockpack_package::{DEB_FIELDS, DebControl, Format, Package, Relation};

/// Decides everything that does not depend on the content of files.
pub(super) fn prepare(
    package: &Package<Content>,
    control: &DebControl,
    options: &EmitOptions<'_>,
) -> Result<Prepared> {
    let entries = payload_entries(package, Format::Deb)?;
    let kib = installed_kib(&entries);
    let specification = DebSpecification {
        control: Control {
            fields: fields(package, control, kib)?,
            triggers: control.triggers.clone(),
            scripts: control.scripts.clone(),
        },
        entries,
        mtime: time("content date", options.content_date)?.into(),
        stamp: time("SOURCE_DATE_EPOCH", options.source_date_epoch)?.into(),
        compression: options.compression,
        workers: compressor::workers(package.formats(), options),
    };
    Ok(Prepared {
        format: Format::Deb,
        file_name: check_file_name(control.file_name())?,
        installed_size: kib * INSTALLED_UNIT,
        specification: package_file::PackageSpecification::Deb(Box::new(specification)),
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
        let same: Vec<String> = all.filter(|r| r.kind == kind).map(relation).collect();
        if !same.is_empty() {
            fields.push(ControlField::new(name, same.join(", ")));
        }
    }
    refuse_foreign(&control.relations)?;
    fields.push(ControlField::new("Section", &control.section));
    fields.push(ControlField::new("Priority", &control.priority));
    fields.extend(package.homepage.as_ref().map(|url| ControlField::new("Homepage", url)));
    fields.extend(control.fields.iter().map(|(name, value)| ControlField::new(name, value)));
    let mut lines = vec![package.summary.clone()];
    lines.extend(text::wrapped(&package.description));
    fields.push(ControlField { name: "Description".to_owned(), lines });
    Ok(fields)
}

fn refuse_foreign(relations: &[Relation]) -> Result<()> {
    let foreign = relations
        .iter()
        .filter(|relation| !DEB_FIELDS.iter().any(|(kind, _)| *kind == relation.kind));
    let faults = foreign.map(|relation| {
        let message = format!("{:?} {} has no field in a .deb", relation.kind, relation.name);
        Error::new(Kind::Bug, message)
    });
    Error::gather(faults.collect()).map_or(Ok(()), Err)
}

fn relation(relation: &Relation) -> String {
    let Some((comparison, version)) = &relation.version else {
        return relation.name.clone();
    };
    let sign = comparison.sign(Format::Deb);
    format!("{} ({sign} {version})", relation.name)
}
