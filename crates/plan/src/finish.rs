//! Turns drafts into packages in the terms of the formats.

use std::collections::BTreeMap;

use rockpack_core::error::{Faults, Result};
use rockpack_core::tree::{Node, TreePath};

use crate::drafts::{Draft, Words};
use crate::extras::{is_debug_place, own_place};
use crate::layout::{self, Placed, file_mode};
use crate::libraries::discovered;
use crate::outcome::FileSource;
use crate::relations::simplified_deb;
use crate::scripts::Scripts;
use crate::settings::PlanSettings;
use crate::texts::CHANGE;
use rockpack_package::lengths::refuse_overlong;
use rockpack_package::{
    ARCH_FIELD, ChangelogEntry, DebControl, Format, Formats, Identity, Package, Role, RpmControl,
    Treatment,
};

/// Folder of a `.deb` package's documents.
const DOCUMENTS: &str = "usr/share/doc";

/// Folder of an `.rpm` package's licence texts.
const LICENCES: &str = "usr/share/licenses";

/// The packages in the terms of the formats, in the order of their names.
pub(crate) fn finish(
    setting: &PlanSettings,
    drafts: Vec<Draft>,
) -> Result<Vec<Package<FileSource>>> {
    let mut packages =
        drafts.into_iter().map(|draft| draft.finish(setting)).collect::<Result<Vec<_>>>()?;
    packages.sort_by(|a, b| a.id.cmp(&b.id));
    refuse_overlong(&packages)?;
    Ok(packages)
}

impl Draft {
    /// The package in the terms of the wanted formats.
    fn finish(self, setting: &PlanSettings) -> Result<Package<FileSource>> {
        let (of_set, changes) = (self.of_set(setting), Vec::from_iter(self.changes(setting)));
        let formats = &setting.formats;
        let (has_deb, has_rpm) = (formats.contains(&Format::Deb), formats.contains(&Format::Rpm));
        let words = Words::of(&self, setting);
        let scripts = Scripts::new(setting, &self);
        let deb = has_deb.then(|| self.deb(setting, &words, &scripts)).transpose()?;
        let rpm = has_rpm.then(|| self.rpm(setting, &words, &scripts)).transpose()?;
        let mut outside = self.documents(setting, &words)?;
        let homepage = words.homepage.map(str::to_owned);
        let rights = words.rights();
        outside.extend(by_format(&self.names.deb, formats, self.extras.outside)?);
        let treatments = &self.extras.treatments;
        let entries = layout::entries(&setting.prefix, self.files, treatments, outside)?;
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
        package.identity = package.identity(of_set);
        Ok(package)
    }

    fn deb(
        &self,
        setting: &PlanSettings,
        words: &Words<'_>,
        scripts: &Scripts<'_>,
    ) -> Result<DebControl> {
        Ok(DebControl {
            name: self.names.deb.clone(),
            version: setting.version.full(Format::Deb),
            architecture: if self.native { "amd64" } else { "all" }.to_owned(),
            section: self.section.clone(),
            priority: self.says.priority.clone().unwrap_or_else(|| "optional".to_owned()),
            maintainer: words.maintainer.to_owned(),
            relations: self.relations_in(Format::Deb, setting).into_iter().collect(),
            fields: self.fields(),
            triggers: scripts.triggers(),
            scripts: scripts.deb()?,
        })
    }

    /// Further fields of the control file.
    fn fields(&self) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        if let Role::Kernels { archs, .. } | Role::KernelsCommon { archs, .. } = &self.role {
            fields.push((ARCH_FIELD.to_owned(), archs.join(" ")));
        }
        if !self.extras.build_ids.is_empty() {
            let ids: Vec<&str> = self.extras.build_ids.iter().map(String::as_str).collect();
            fields.push(("Build-Ids".to_owned(), ids.join(" ")));
            fields.push(("Auto-Built-Package".to_owned(), "debug-symbols".to_owned()));
        }
        fields
    }

    fn rpm(
        &self,
        setting: &PlanSettings,
        words: &Words<'_>,
        scripts: &Scripts<'_>,
    ) -> Result<RpmControl> {
        let mut relations = self.relations_in(Format::Rpm, setting);
        relations.extend(scripts.rpm_needs());
        // One command moves a whole set, so packages without files must be relocatable too.
        let movable = setting.prefix.is_add_on();
        Ok(RpmControl {
            name: self.names.rpm.clone(),
            epoch: setting.version.epoch(),
            version: setting.version.upstream().to_owned(),
            release: setting.version.tagged_release(Format::Rpm),
            arch: if self.native { "x86_64" } else { "noarch" }.to_owned(),
            group: self.rpm_group.clone(),
            license: words.license.to_owned(),
            vendor: words.vendor.map(str::to_owned),
            packager: Some(words.maintainer.to_owned()),
            relations: relations.into_iter().collect(),
            discovered: Vec::new(),
            prefixes: movable.then(|| setting.prefix.absolute()).into_iter().collect(),
            scripts: scripts.rpm()?,
            changes: vec![ChangelogEntry {
                time: setting.time,
                author: words.maintainer.to_owned(),
                text: format!("- {CHANGE}"),
            }],
        })
    }

    /// The documents of a package: Debian's in `/usr/share/doc`, the licence in rpm's folder. Packages that
    /// depend on their host share its documents.
    fn documents(
        &self,
        setting: &PlanSettings,
        words: &Words<'_>,
    ) -> Result<BTreeMap<TreePath, Placed>> {
        let folder = TreePath::new(format!("{DOCUMENTS}/{}", self.names.deb))?;
        if let Some(host) = &self.documents_of {
            let link = document(Node::Link { target: host.deb.clone() });
            let wanted = setting.formats.contains(&Format::Deb);
            return Ok(wanted.then_some((folder, link)).into_iter().collect());
        }
        let texts = &setting.texts;
        let copyright = texts.copyright(&self.family, words, &self.extras.licences)?;
        let version = setting.version.full(Format::Deb);
        let changelog =
            texts.changelog(&self.names.deb, &version, words.maintainer, &setting.date)?;
        let changelog = document(plain_file(FileSource::Changelog(changelog)));
        let mut documents = BTreeMap::from([
            (folder.join("copyright")?, document(plain_file(FileSource::Text(copyright.clone())))),
            (folder.join("changelog.Debian.gz")?, changelog),
        ]);
        if self.role != Role::Meta {
            let place = TreePath::new(format!("{LICENCES}/{}/copyright", self.names.rpm))?;
            let licence = Placed {
                node: plain_file(FileSource::Text(copyright)),
                treatment: Treatment::License,
                formats: Formats::Only(Format::Rpm),
            };
            documents.insert(place, licence);
        }
        documents.retain(|_, placed| setting.formats.iter().any(|f| placed.formats.has(*f)));
        Ok(documents)
    }
}

/// Places the files outside of the prefix by format: the debug files of a `.deb` go into its own folder.
fn by_format(
    package: &str,
    formats: &[Format],
    outside: BTreeMap<TreePath, Placed>,
) -> Result<BTreeMap<TreePath, Placed>> {
    let mut found = BTreeMap::new();
    for (path, placed) in outside {
        if !is_debug_place(&path) {
            found.insert(path, placed);
            continue;
        }
        for format in formats {
            let place = match format {
                Format::Deb => own_place(package, &path)?,
                Format::Rpm => path.clone(),
            };
            found.insert(place, Placed { formats: Formats::Only(*format), ..placed.clone() });
        }
    }
    Ok(found)
}

fn plain_file(data: FileSource) -> Node<FileSource> {
    Node::File { data, mode: file_mode(0) }
}

/// A document of a `.deb`.
fn document(node: Node<FileSource>) -> Placed {
    let formats = Formats::Only(Format::Deb);
    Placed { node, treatment: Treatment::Doc, formats }
}
