//! Finds the code objects of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use object::elf;
use rockpack_archive::package_file::PackageReader;
use rockpack_archive::payload::PayloadEntryKind;
use rockpack_archive::{ar, rpm, zip};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_core::gfx::Target;
use rockpack_core::hold::hold;
use rockpack_core::run::threads;
use rockpack_core::tree::TreePath;
use rockpack_elf::fatbin::{self, Bundles, FatbinBundle};
use rockpack_elf::marker::{self, AnyMarker};
use rockpack_elf::offload_bundle::BundleEntryKind;
use rockpack_elf::{FileHeader, code_object, kpack};
use rockpack_report::Silent;
use rockpack_split::host_binary::{self, Analysis, Examined, Transformed};
use rockpack_split::input::artifact::ScanOptions;
use rockpack_split::input::wheel;

use super::{BinaryPart, SelectedCode, Selection};

/// Calls `found` with each selected code object of a file; an error if there is none.
pub(super) fn open(
    path: &Path,
    content: &Content,
    selection: &Selection,
    found: &mut dyn FnMut(&SelectedCode),
) -> Result<()> {
    let _open = content.pin()?;
    let mut collector =
        CodeCollector { selection, member: None, found, any: false, seen: BTreeSet::new() };
    collector.file(content, path)?;
    let is_everything = selection.targets.is_empty() && selection.kernels.is_empty();
    match (collector.any, is_everything) {
        (true, _) => Ok(()),
        (false, true) => Err(Error::new(Kind::Usage, "holds no code objects").file(path)),
        (false, false) => Err(nothing_selected(&collector.seen).file(path)),
    }
}

fn nothing_selected(seen: &BTreeSet<String>) -> Error {
    let seen: Vec<&str> = seen.iter().map(String::as_str).collect();
    Error::new(Kind::Usage, "holds none of the selected code objects")
        .hint(format!("it has code for {}; `rockpack inspect` shows its kernels", seen.join(", ")))
}

/// Limit on code objects that are extracted again for further wrappers of their bundle. With `-fgpu-rdc`, all wrappers
/// share one.
const REPEATED_LIMIT: usize = 1 << 20;

struct CodeCollector<'a> {
    selection: &'a Selection,
    /// The member of a package or wheel that is being read.
    member: Option<String>,
    found: &'a mut dyn FnMut(&SelectedCode),
    any: bool,
    /// The targets of all code objects, selected or not.
    seen: BTreeSet<String>,
}

impl CodeCollector<'_> {
    fn file(&mut self, content: &Content, path: &Path) -> Result<()> {
        let name = &path.file_name().unwrap_or_default().to_string_lossy();
        if content.starts_with(&kpack::MAGIC)? {
            return self.archive(content);
        }
        if content.starts_with(&zip::MAGIC)? {
            return self.wheel(content, path);
        }
        if content.starts_with(ar::MAGIC)? || content.starts_with(&rpm::LEAD_MAGIC)? {
            return self.package(content);
        }
        if let Some(header) = FileHeader::read(content)? {
            return self.elf_file(content, &header, name);
        }
        if fatbin::starts_bundle(content)? {
            return self.bundles(content, name);
        }
        Err(Error::unsupported("is not a file that code objects can be extracted from")
            .wrong_file_kind()
            .at(&content.place(0))
            .hint("give .kpack archives, fat binaries, bundles, wheels, or packages with archives"))
    }

    /// Adds a code object if it is wanted. `label` is its name in messages: the target ID, or more if that is
    /// ambiguous.
    fn add_code(
        &mut self,
        binary: &str,
        part: BinaryPart,
        label: String,
        target: Option<&Target>,
        content: Content,
    ) -> Result<()> {
        self.seen.insert(label.clone());
        if self.selection.has_target(target) && self.selection.has_kernel(&content)? {
            let (member, binary) = (self.member.clone(), binary.to_owned());
            (self.found)(&SelectedCode { member, binary, part, target: label, content });
            self.any = true;
        }
        Ok(())
    }

    /// Adds every row of an archive, also rows that share a code object.
    fn archive(&mut self, content: &Content) -> Result<()> {
        let reader = kpack::KpackReader::open(content.clone())?;
        for (key, targets) in &reader.toc().rows {
            let (binary, part) = match kpack::split_key(key) {
                Some((binary, index)) => (binary, BinaryPart::Index(index)),
                None => (key.as_str(), BinaryPart::Whole),
            };
            for (label, row) in targets {
                let target: Option<Target> = label.parse().ok();
                let content = reader.code_object(row.ordinal)?;
                self.add_code(binary, part, label.clone(), target.as_ref(), content)?;
            }
        }
        Ok(())
    }

    /// Adds the archives in a package.
    fn package(&mut self, content: &Content) -> Result<()> {
        let (mut archives, mut others) = (0_u32, false);
        PackageReader::open(content.clone())?.visit(&mut |entry, bytes| {
            let entry = &entry.entry;
            if entry.is_file() && entry.path.ends_with(".kpack") {
                let path = format!("/{}", entry.path);
                let archive = hold(bytes, entry.size, content.budget())?;
                archives += 1;
                self.member = Some(path.clone());
                self.archive(&archive).context(|| format!("reading {path}"))?;
            } else {
                others |=
                    entry.kind != PayloadEntryKind::Directory && !entry.path.starts_with(DOCUMENTS);
            }
            Ok(())
        })?;
        let (message, hint) = match (archives, others) {
            (0, true) => (
                "the package holds no kernel archives",
                "kernel packages do: their names end in the name of an arch group",
            ),
            (0, false) => (
                "is a metapackage, which installs nothing itself",
                "extract from the kernel packages that it depends on (`rockpack inspect` lists them)",
            ),
            _ => return Ok(()),
        };
        Err(Error::new(Kind::Usage, message).hint(hint))
    }

    /// Adds the code of every member of a wheel.
    fn wheel(&mut self, content: &Content, path: &Path) -> Result<()> {
        let options = ScanOptions::within(content.budget());
        let wheel = threads::in_current_pool(|| wheel::read(path, &options, &Silent))?;
        let mut faults = Faults::default();
        for (name, member) in &wheel.members {
            self.member = Some(name.clone());
            let binary = member.installed.as_ref().map_or(name.as_str(), TreePath::as_str);
            let taken = self.wheel_member(&member.content, binary);
            faults.keep(taken.context(|| format!("reading {name}")));
        }
        faults.finish()
    }

    fn wheel_member(&mut self, content: &Content, binary: &str) -> Result<()> {
        let _open = content.pin()?;
        if content.starts_with(&kpack::MAGIC)? {
            return self.archive(content);
        }
        if fatbin::starts_bundle(content)? {
            return self.bundles(content, binary);
        }
        if let Examined::Fat(analysis) = host_binary::examine(content)? {
            return self.fat_binary(&analysis, binary);
        }
        if code_object::is_code_object(content)? {
            let target = code_object::read_header(content)?.target;
            let label = target.as_ref().map_or_else(|| "unknown".to_owned(), Target::to_string);
            self.add_code(binary, BinaryPart::Index(0), label, target.as_ref(), content.clone())?;
        }
        Ok(())
    }

    fn elf_file(&mut self, content: &Content, header: &FileHeader, name: &str) -> Result<()> {
        let refused = |message: &str| Error::new(Kind::Usage, message).at(&content.place(0));
        if header.e_machine == elf::EM_AMDGPU {
            let error = refused("is itself a code object");
            return Err(error.hint("`rockpack inspect` shows what is in it"));
        }
        match host_binary::examine(content)? {
            Examined::Fat(analysis) => self.fat_binary(&analysis, name),
            Examined::Transformed(transformed) => Err(in_archives(&transformed)?),
            Examined::SeparateDebug => {
                Err(refused("is a separate debug file, which has no device code"))
            }
            Examined::NoDeviceCode => Err(refused("is an ELF file without device code")),
        }
    }

    /// Adds the bundle of every wrapper, and bundles that no wrapper points to.
    fn fat_binary(&mut self, analysis: &Analysis, name: &str) -> Result<()> {
        let section = analysis.fatbin();
        let mut by_bundle: BTreeMap<u64, Vec<BinaryPart>> = BTreeMap::new();
        for wrapper in analysis.wrappers() {
            let parts = by_bundle.entry(wrapper.bundle_offset).or_default();
            parts.push(BinaryPart::Index(wrapper.index));
        }
        let mut repeated = 0;
        for next in Bundles::new(&section) {
            let bundle = next?;
            let parts = by_bundle
                .remove(&bundle.offset)
                .unwrap_or_else(|| vec![BinaryPart::Unreferenced(bundle.offset)]);
            repeated += (parts.len() - 1) * bundle.bundle.entries.len();
            if repeated > REPEATED_LIMIT {
                let message = "too many wrappers share their bundles";
                let place = section.place(bundle.offset);
                let error = Error::new(Kind::Limit, message).structure(".hip_fatbin").at(&place);
                return Err(
                    error.hint("link fewer wrappers with one bundle, or the file is damaged")
                );
            }
            for part in parts {
                self.bundle(&bundle, name, part)?;
            }
        }
        Ok(())
    }

    /// Adds every bundle of a file of bundles, by index.
    fn bundles(&mut self, content: &Content, name: &str) -> Result<()> {
        for (index, next) in (0..).zip(Bundles::new(content)) {
            self.bundle(&next?, name, BinaryPart::Index(index))?;
        }
        Ok(())
    }

    fn bundle(&mut self, bundle: &FatbinBundle, binary: &str, part: BinaryPart) -> Result<()> {
        let entries = &bundle.bundle.entries;
        let mut named: BTreeMap<&Target, usize> = BTreeMap::new();
        for target in entries.iter().filter_map(|entry| entry.id.target.as_ref()) {
            *named.entry(target).or_default() += 1;
        }
        let device =
            entries.iter().filter(|e| e.id.kind != BundleEntryKind::Host && !e.content.is_empty());
        for entry in device {
            // Several entries of one target, of different kinds, are distinguished by their ids.
            let label = match &entry.id.target {
                Some(target) if named.get(target) == Some(&1) => target.to_string(),
                _ => entry.id.to_string(),
            };
            // Images of one offload binary may have one id.
            let repeated = entries.iter().filter(|other| other.id.text == label).count() > 1;
            let at = BinaryPart::Unreferenced(bundle.offset + entry.offset);
            let part = if repeated { at } else { part };
            self.add_code(binary, part, label, entry.id.target.as_ref(), entry.content.clone())?;
        }
        Ok(())
    }
}

/// The folder with the documents that every `.deb` has.
const DOCUMENTS: &str = "usr/share/doc/";

/// Says where the device code of a transformed binary is.
fn in_archives(transformed: &Transformed) -> Result<Error> {
    let paths = match marker::parse(transformed.marker())? {
        AnyMarker::Map(map) => map.kpack_search_paths,
        AnyMarker::PathList(paths) => paths,
    };
    let message = format!("has no device code: it is in archives ({})", paths.join(", "));
    Ok(Error::new(Kind::Usage, message)
        .at(&transformed.content().place(0))
        .hint("extract from these archives; the paths are relative to the folder of the binary"))
}
