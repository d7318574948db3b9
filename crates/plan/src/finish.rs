//! Turns drafts into packages in the terms of the formats.

use rockpack_archive::apt_index::dep11::MODALIASES;
use rockpack_core::error::{Faults, Result};
use rockpack_core::tree::{Node, TreePath};

use crate::drafts::{Draft, EffectiveTexts};
use crate::extras::{is_debug_path, package_debug_path};
use crate::layout::{self, Entries, EntriesByPath, file_mode};
use crate::libraries::discovered;
use crate::outcome::{FileSource, PlannedPackage};
use crate::relations::{plain, simplified_deb};
use crate::scripts::Scripts;
use crate::settings::PlanSettings;
use crate::texts::CHANGE;
use rockpack_package::lengths::refuse_overlong;
use rockpack_package::{
    ARCH_FIELD, DebControl, Format, Formats, Identity, Package, PackageEntry, RelationKind, Role,
    RpmChange, RpmControl, Treatment,
};

const DOCUMENTS: &str = "usr/share/doc";

const LICENCES: &str = "usr/share/licenses";

pub(crate) fn finish(setting: &PlanSettings, drafts: Vec<Draft>) -> Result<Vec<PlannedPackage>> {
    let mut packages =
        drafts.into_iter().map(|draft| draft.finish(setting)).collect::<Result<Vec<_>>>()?;
    packages.sort_by(|a, b| a.id.cmp(&b.id));
    refuse_overlong(&packages)?;
    Ok(packages)
}

impl Draft {
    fn finish(self, setting: &PlanSettings) -> Result<PlannedPackage> {
        let bound_to_set = self.bound_to_set(setting);
        let changes = Vec::from_iter(self.changes(setting));
        let formats = &setting.formats;
        let (has_deb, has_rpm) = (formats.contains(&Format::Deb), formats.contains(&Format::Rpm));
        let effective = EffectiveTexts::of(&self, setting);
        let deb = has_deb.then(|| self.deb(setting, &effective)).transpose()?;
        let rpm = has_rpm.then(|| self.rpm(setting, &effective)).transpose()?;
        let mut outside = self.documents(setting, &effective)?;
        let homepage = effective.homepage.map(str::to_owned);
        let rights = effective.rights;
        outside.extend(by_format(&self.names.deb, formats, self.extras.outside)?);
        let treatments = &self.extras.treatments;
        let mut entries = layout::entries(&setting.prefix, self.files, treatments, outside)?;
        entries.extend(self.extras.gpu_scripts);
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let mut package = Package {
            id: self.names.deb,
            role: self.role,
            summary: self.description.summary,
            description: self.description.paragraphs,
            homepage,
            rights,
            deb,
            rpm,
            identity: Identity::default(),
            entries,
        };
        self.discovered.add_to(&mut package);
        discovered::add_build_ids(&mut package);
        let mut faults = Faults::default();
        changes.iter().for_each(|it| it.apply(&setting.config, &mut package, &mut faults));
        faults.finish()?;
        if let Some(deb) = &mut package.deb {
            deb.relations = simplified_deb(std::mem::take(&mut deb.relations));
        }
        package.identity = package.identity(bound_to_set);
        Ok(package)
    }

    fn deb(&self, setting: &PlanSettings, effective: &EffectiveTexts<'_>) -> Result<DebControl> {
        let scripts = Scripts::new(setting, self);
        Ok(DebControl {
            name: self.names.deb.clone(),
            version: setting.version.full(Format::Deb),
            architecture: if self.native { "amd64" } else { "all" }.to_owned(),
            section: self.section.clone(),
            priority: self.text_overrides.priority.clone().unwrap_or_else(|| "optional".to_owned()),
            maintainer: effective.maintainer.to_owned(),
            relations: self.relations_in(Format::Deb, setting).into_iter().collect(),
            fields: self.fields(setting),
            triggers: scripts.triggers(),
            scripts: scripts.deb()?,
        })
    }

    fn fields(&self, setting: &PlanSettings) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        if let Role::Kernels { archs, .. } | Role::KernelsCommon { archs, .. } = &self.role {
            fields.push((ARCH_FIELD.to_owned(), archs.join(" ")));
        }
        if let Some((_, patterns)) = self.hardware_hints(Format::Deb, setting) {
            let hints = format!("{}({})", self.names.deb, patterns.join(", "));
            fields.push((MODALIASES.to_owned(), hints));
        }
        if !self.extras.build_ids.is_empty() {
            let ids: Vec<&str> = self.extras.build_ids.iter().map(String::as_str).collect();
            fields.push(("Build-Ids".to_owned(), ids.join(" ")));
            fields.push(("Auto-Built-Package".to_owned(), "debug-symbols".to_owned()));
        }
        fields
    }

    fn rpm(&self, setting: &PlanSettings, effective: &EffectiveTexts<'_>) -> Result<RpmControl> {
        let scripts = Scripts::new(setting, self);
        let mut relations = self.relations_in(Format::Rpm, setting);
        relations.extend(scripts.rpm_needs());
        if let Some((host, patterns)) = self.hardware_hints(Format::Rpm, setting) {
            let hints = patterns.iter().map(|it| format!("modalias({}:{it})", host.rpm));
            relations.extend(hints.map(|name| plain(RelationKind::Supplements, name)));
        }
        // One command moves a whole set, so packages without files must be relocatable too.
        let movable = setting.prefix.is_add_on();
        Ok(RpmControl {
            name: self.names.rpm.clone(),
            epoch: setting.version.epoch(),
            version: setting.version.upstream(Format::Rpm).to_owned(),
            release: setting.version.tagged_release(Format::Rpm),
            arch: if self.native { "x86_64" } else { "noarch" }.to_owned(),
            group: self.rpm_group.clone(),
            license: effective.rights.license.clone(),
            vendor: effective.rights.vendor.clone(),
            packager: Some(effective.maintainer.to_owned()),
            relations: relations.into_iter().collect(),
            discovered: Vec::new(),
            prefixes: movable.then(|| setting.prefix.absolute()).into_iter().collect(),
            scripts: scripts.rpm()?,
            changes: vec![RpmChange {
                time: setting.time,
                author: effective.maintainer.to_owned(),
                text: format!("- {CHANGE}"),
            }],
        })
    }

    /// The documents of a package: Debian's in `/usr/share/doc`, the licence in rpm's folder. Packages that
    /// depend on their host share its documents.
    fn documents(&self, setting: &PlanSettings, effective: &EffectiveTexts<'_>) -> Result<Entries> {
        let folder = TreePath::new(format!("{DOCUMENTS}/{}", self.names.deb))?;
        if let Some(host) = &self.documents_of {
            let link = document(folder, Node::Link { target: host.deb.clone() });
            let wanted = setting.formats.contains(&Format::Deb);
            return Ok(wanted.then_some(link).into_iter().collect());
        }
        let texts = &setting.texts;
        let copyright = texts.copyright(&self.family, effective, &self.extras.licences)?;
        let version = setting.version.full(Format::Deb);
        let changelog =
            texts.changelog(&self.names.deb, &version, effective.maintainer, &setting.date)?;
        let text = Node::File { data: FileSource::Text(copyright), mode: file_mode(0) };
        let changelog = Node::File { data: FileSource::Changelog(changelog), mode: file_mode(0) };
        let mut documents = vec![
            document(folder.join("copyright")?, text.clone()),
            document(folder.join("changelog.Debian.gz")?, changelog),
        ];
        if self.role != Role::Meta {
            documents.push(PackageEntry {
                path: TreePath::new(format!("{LICENCES}/{}/copyright", self.names.rpm))?,
                node: text,
                treatment: Treatment::License,
                formats: Formats::Only(Format::Rpm),
            });
        }
        documents.retain(|entry| setting.formats.iter().any(|f| entry.formats.has(*f)));
        Ok(documents)
    }
}

/// Places the files outside of the prefix by format: the debug files of a `.deb` go into its own folder.
fn by_format(package: &str, formats: &[Format], outside: EntriesByPath) -> Result<Entries> {
    let mut found = Vec::new();
    for entry in outside.into_values() {
        if !is_debug_path(&entry.path) {
            found.push(entry);
            continue;
        }
        for format in formats {
            let path = match format {
                Format::Deb => package_debug_path(package, &entry.path)?,
                Format::Rpm => entry.path.clone(),
            };
            let formats = Formats::Only(*format);
            found.push(PackageEntry { path, formats, ..entry.clone() });
        }
    }
    Ok(found)
}

fn document(path: TreePath, node: Node<FileSource>) -> PackageEntry<FileSource> {
    let formats = Formats::Only(Format::Deb);
    PackageEntry { path, node, treatment: Treatment::Doc, formats }
}
