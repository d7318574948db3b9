//! Drafts in the words of the formats.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;
use super::drafts::Draft;
use super::layout::{Files, file_mode};
use super::package::{DebControl, Format, Package, Relation, Role, RpmControl};
use super::setting::Setting;
use crate::error::Result;
use crate::tree::{Node, TreePath};

/// The field of kernel packages that names their archs.
const ARCH_FIELD: &str = "X-ROCm-GPU-Architecture";

/// Where Debian's documents of a package go.
const DOCUMENTS: &str = "usr/share/doc";

impl Draft {
    /// The group whose device code it holds.
    pub fn group_name(&self) -> Option<&str> {
        match &self.role {
            Role::Kernels { group, .. } => Some(group),
            _ => None,
        }
    }

    /// The package in the words of the wanted formats.
    pub fn finish(self, setting: &Setting<'_>) -> Result<Package<Source>> {
        let has = |format| setting.formats.contains(&format);
        let deb = has(Format::Deb).then(|| self.deb(setting)).transpose()?;
        let rpm = has(Format::Rpm).then(|| self.rpm(setting)).transpose()?;
        let documents = if deb.is_some() { self.documents(setting)? } else { BTreeMap::new() };
        let files = Files { installed: self.files, documents };
        Ok(Package {
            id: self.names.deb,
            role: self.role,
            summary: self.description.summary,
            description: self.description.paragraphs,
            homepage: setting.config.homepage.clone(),
            deb,
            rpm,
            entries: files.entries(&setting.prefix)?,
        })
    }

    fn relations_in(&self, format: Format, setting: &Setting<'_>) -> Vec<Relation> {
        let own = self.links.iter().map(|link| link.relation(format, &setting.version));
        let added = self.relations.iter().filter(|(known, _)| *known == format);
        let all: BTreeSet<Relation> = own.chain(added.map(|(_, r)| r.clone())).collect();
        all.into_iter().collect()
    }

    fn deb(&self, setting: &Setting<'_>) -> Result<DebControl> {
        let guard = setting.texts.guard(&self.names.deb, &setting.prefix, Format::Deb)?;
        let fields = match &self.role {
            Role::Kernels { archs, .. } | Role::KernelsCommon { archs, .. } => {
                vec![(ARCH_FIELD.to_owned(), archs.join(" "))]
            }
            _ => Vec::new(),
        };
        Ok(DebControl {
            name: self.names.deb.clone(),
            version: setting.version.full(Format::Deb),
            architecture: if self.native { "amd64" } else { "all" }.to_owned(),
            section: self.section.clone(),
            priority: "optional".to_owned(),
            maintainer: setting.config.maintainer.clone(),
            relations: self.relations_in(Format::Deb, setting),
            fields,
            triggers: Vec::new(),
            scripts: self.guarded(("preinst".to_owned(), guard)),
        })
    }

    fn rpm(&self, setting: &Setting<'_>) -> Result<RpmControl> {
        let guard = setting.texts.guard(&self.names.rpm, &setting.prefix, Format::Rpm)?;
        let movable = setting.prefix.is_add_on() && !self.files.is_empty();
        Ok(RpmControl {
            name: self.names.rpm.clone(),
            epoch: setting.version.epoch(),
            version: setting.version.upstream().to_owned(),
            release: setting.version.release().to_owned(),
            arch: if self.native { "x86_64" } else { "noarch" }.to_owned(),
            group: self.rpm_group.clone(),
            license: setting.config.license.clone(),
            vendor: setting.config.vendor.clone(),
            packager: Some(setting.config.maintainer.clone()),
            relations: self.relations_in(Format::Rpm, setting),
            prefixes: movable.then(|| setting.prefix.absolute()).into_iter().collect(),
            // In %pre and not in %pretrans: that one has to be Lua where no shell is installed
            // yet, and the dependency on `<lua>` that it brings is one that nothing satisfies.
            scripts: self.guarded(("%pre".to_owned(), ("/bin/sh".to_owned(), guard))),
        })
    }

    /// Only packages with files can write through a link.
    fn guarded<T>(&self, script: T) -> Vec<T> {
        match self.files.is_empty() {
            true => Vec::new(),
            false => vec![script],
        }
    }

    fn documents(&self, setting: &Setting<'_>) -> Result<BTreeMap<TreePath, Node<Source>>> {
        let folder = TreePath::new(format!("{DOCUMENTS}/{}", self.names.deb))?;
        if let Some(host) = &self.documents_of {
            let target = host.deb.clone();
            return Ok(BTreeMap::from([(folder, Node::Link { target })]));
        }
        let (config, mode) = (setting.config, file_mode(0));
        let homepage = config.homepage.as_deref();
        let copyright = setting.texts.copyright(&self.family, &config.license, homepage)?;
        let version = setting.version.full(Format::Deb);
        let package = (self.names.deb.as_str(), version.as_str());
        let changelog = setting.texts.changelog(package, &config.maintainer, &setting.date)?;
        let file = |data| Node::File { data, mode };
        Ok(BTreeMap::from([
            (folder.join("copyright")?, file(Source::Text(copyright))),
            (folder.join("changelog.Debian.gz")?, file(Source::Bytes(changelog))),
        ]))
    }
}
