//! Classifies a file, and decides everything about a fat one before writing.

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Kind, Result, ResultExt};
use rockpack_elf::hip_wrapper::{self, Magic};
use rockpack_elf::{
    Dyn, Dynamic, DynamicSymbols, ElfFile, FILE_HEADER_SIZE, Record, SectionHeader,
};

use super::headers::{self, Tail};
use super::layout::{Layout, Replacement};
use super::references::LoaderTables;
use super::registration::Registration;
use super::search::refuse_bundles;
use super::wrappers::{self, BoundWrapper};
use super::{
    Analysis, Examined, FATBIN_SECTION, LEAST_MARKER_AREA, MARKER_SECTION, WRAPPER_SECTION,
    WrapperRef, check, is_zero, references, symbols, transformed,
};

/// The shortest marker: a MessagePack map without entries.
const EMPTY_MAP: &[u8] = &[0x80];

struct DeviceSections {
    fatbin: Option<(usize, SectionHeader)>,
    wrappers: Option<(usize, SectionHeader)>,
    marker: Option<(usize, SectionHeader)>,
}

/// Classifies `content`. All refusals that depend on the binary alone happen here.
pub fn examine(content: &Content) -> Result<Examined> {
    examine_for(content, false)
}

/// Classifies `content`, as [`examine`] does. For `any_runtime`, the transform makes the binary register its
/// wrappers with [`SHIM`](super::SHIM), and refuses binaries where that is not possible.
pub fn examine_for(content: &Content, any_runtime: bool) -> Result<Examined> {
    let _open = content.pin()?;
    let file = ElfFile::read(content, elf::EM_X86_64)?;
    let linked = file.filter(|file| matches!(file.header.e_type, elf::ET_DYN | elf::ET_EXEC));
    let Some(file) = linked else { return Ok(Examined::NoDeviceCode) };
    if !file.has_section_names() {
        refuse_bundles(&file, "it has no section headers to find its parts by")?;
        return Ok(Examined::NoDeviceCode);
    }
    let parts = DeviceSections {
        fatbin: single(&file, FATBIN_SECTION)?,
        wrappers: single(&file, WRAPPER_SECTION)?,
        marker: single(&file, MARKER_SECTION)?,
    };
    if parts.is_empty() {
        if parts.fatbin.is_some() || parts.wrappers.is_some() {
            refuse_bundles(&file, "the headers say that its section is empty")?;
        }
        return Ok(Examined::NoDeviceCode);
    }
    if is_separate_debug(&file, &parts)? {
        // Some tools leave device code in real debug files, which cannot be loaded without their dynamic sections.
        let dynamic = file.segment(elf::PT_DYNAMIC);
        if dynamic.and_then(|segment| file.offset_of(segment.p_vaddr, 1)).is_some() {
            refuse_bundles(&file, "the headers say that its section has no bytes")?;
        }
        return Ok(Examined::SeparateDebug);
    }
    if parts.are_transformed(&file)? {
        refuse_device_code(&file, &parts)?;
        return transformed::read(file).map(Examined::Transformed);
    }
    match (parts.fatbin, parts.wrappers) {
        (Some(fatbin), Some(wrappers)) => {
            let analysis = analyze(file, [fatbin, wrappers], any_runtime)?;
            Ok(Examined::Fat(Box::new(analysis)))
        }
        (Some((index, _)), None) => {
            let message = format!("has device code, but no section {WRAPPER_SECTION}");
            let error = file.refuse_section(Kind::Unsupported, index, message);
            Err(error
                .hint("its host code finds the device code in a way that rockpack does not know"))
        }
        (None, _) => {
            let index = parts.wrappers.map_or(0, |(index, _)| index);
            let message = format!("has wrappers, but no section {FATBIN_SECTION}");
            Err(file
                .refuse_section(Kind::Unsupported, index, message)
                .hint("another tool removed the device code: give the file as the linker wrote it"))
        }
    }
}

impl DeviceSections {
    /// Whether the file has no device code: neither sections nor anything in them.
    fn is_empty(&self) -> bool {
        !has_bytes(self.fatbin) && !has_bytes(self.wrappers) && self.marker.is_none()
    }

    fn are_transformed(&self, file: &ElfFile) -> Result<bool> {
        let emptied = self.fatbin.is_some_and(|(_, section)| section.sh_type == elf::SHT_NOBITS);
        if emptied || self.marker.is_some() {
            return Ok(true);
        }
        let Some((index, section)) = self.wrappers else {
            return Ok(false);
        };
        let range = file.file_range(index, &section)?;
        let wrappers = hip_wrapper::parse(&file.content().slice(range)?)?;
        Ok(wrappers.iter().any(|wrapper| wrapper.magic == Magic::Kpack))
    }
}

fn has_bytes(part: Option<(usize, SectionHeader)>) -> bool {
    part.is_some_and(|(_, section)| section.sh_size > 0)
}

fn single(file: &ElfFile, name: &str) -> Result<Option<(usize, SectionHeader)>> {
    match file.sections_named(name).as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        [_, (second, _), ..] => {
            let message = format!("has more than one section {name}");
            Err(file.refuse_section(Kind::Unsupported, *second, message))
        }
    }
}

/// Whether the file is separate debug information: `objcopy --only-keep-debug` keeps the section headers and
/// drops the bytes, including those of device code.
fn is_separate_debug(file: &ElfFile, parts: &DeviceSections) -> Result<bool> {
    let needed = file.sections_named(".dynamic").into_iter().chain(parts.wrappers);
    let mut dropped = needed.filter(|(_, section)| section.sh_type == elf::SHT_NOBITS);
    let Some((index, _)) = dropped.next() else {
        return Ok(false);
    };
    if parts.fatbin.is_none_or(|(_, section)| !section.is_in_file()) {
        return Ok(true);
    }
    let message = format!("has no bytes in the file, as in a debug file, but {FATBIN_SECTION} has");
    let error = file.refuse_section(Kind::Malformed, index, message);
    Err(error.hint("the file is damaged: build it or copy it again"))
}

fn refuse_device_code(file: &ElfFile, parts: &DeviceSections) -> Result<()> {
    let Some((index, section)) = parts.fatbin.filter(|(_, section)| section.is_in_file()) else {
        return Ok(());
    };
    if is_zero(file, file.file_range(index, &section)?)? {
        return Ok(());
    }
    let message = "has device code, although the binary refers to kernel archives for it";
    let error = file.refuse_section(Kind::Unsupported, index, message);
    Err(error.hint(
        "another tool left it there, as it does if that is a page or less: build the file \
         again from the fat binary",
    ))
}

fn analyze(
    file: ElfFile,
    [(fatbin_index, fatbin), (wrapper_index, wrapper_section)]: [(usize, SectionHeader); 2],
    any_runtime: bool,
) -> Result<Analysis> {
    file.validate()?;
    validate_kind(&file, fatbin_index, &fatbin)?;
    // Tools drop sections that are not loaded, so edits in them would be lost.
    refuse_unloaded(&file, wrapper_index, &wrapper_section)?;
    check::structure(&file, Kind::Unsupported)?;
    let Some(dynamic) = Dynamic::read(&file)?.filter(|dynamic| !is_static_pie(&file, dynamic))
    else {
        let message = "is a static executable with device code";
        let error = file.refuse(Kind::Unsupported, "program headers", FILE_HEADER_SIZE, message);
        return Err(error.hint("link it dynamically"));
    };
    refuse_unterminated(&file, &dynamic)?;
    refuse_unloaded_tables(&file, &dynamic)?;
    references::refuse_repeated_tags(&file, &dynamic)?;
    let symbols = DynamicSymbols::read(&file, &dynamic)?;
    let tables = LoaderTables::read(&file, &dynamic, &symbols)?;
    let registration =
        any_runtime.then(|| Registration::plan(&file, &dynamic, &symbols)).transpose()?;
    let names = registration.as_ref().map(|it| (it.strings, it.strings_size()));
    let layout = Layout::plan(&file, fatbin_index, Replacement::Marker, names)?;
    let target = fatbin.sh_addr..fatbin.memory_end();
    tables.refuse_in(&target)?;
    tables.refuse_moved(&layout)?;
    let bound = wrappers::bind(
        &file,
        &dynamic,
        symbols.to_vec(&file)?,
        wrapper_index,
        &wrapper_section,
        &target,
    )?;
    wrappers::refuse_foreign_wrappers(&bound, &file)?;
    references::refuse_relocations(&file, &dynamic, &layout)?;
    let symbol_edits = symbols::plan(&file, &layout)?;
    let wrappers = references(&file, &bound, &layout).context(|| "naming the bundles".into())?;
    let analysis = Analysis {
        program_headers: headers::segments(&file, &layout)?,
        tail: Tail::plan(&file, &layout)?,
        fatbin: file.content().slice(layout.fatbin_in_file())?,
        file,
        dynamic,
        layout,
        bound,
        symbol_edits,
        wrappers,
        registration,
    };
    // The checks of the result do not depend on the marker. A dry run now reports faults that would
    // otherwise appear only when packages are written, after hours of work.
    analysis.apply(EMPTY_MAP).context(|| "trying the transform".into())?;
    Ok(analysis)
}

/// Whether the file is a position-independent executable without interpreter. Such a file relocates itself,
/// by addresses in its code that are in no table.
fn is_static_pie(file: &ElfFile, dynamic: &Dynamic) -> bool {
    let flags = dynamic.value(elf::DT_FLAGS_1).unwrap_or_default();
    flags & elf::DF_1_PIE.0 != 0 && file.segment(elf::PT_INTERP).is_none()
}

/// Fails if the dynamic section does not end in its segment: the loader reads up to `DT_NULL`.
fn refuse_unterminated(file: &ElfFile, dynamic: &Dynamic) -> Result<()> {
    let entries = dynamic.entries.len() as u64 * Dyn::SIZE;
    let mut segments = file.program_headers.iter().enumerate();
    let endless = segments.find(|(_, it)| it.p_type == elf::PT_DYNAMIC && it.p_filesz <= entries);
    let Some((index, _)) = endless else { return Ok(()) };
    let message = "names a dynamic section without DT_NULL at its end";
    let error = file.refuse_segment(Kind::Unsupported, index, message);
    Err(error.hint("no linker writes such a file: build it again"))
}

fn validate_kind(file: &ElfFile, index: usize, fatbin: &SectionHeader) -> Result<()> {
    if file.header.e_phoff != FILE_HEADER_SIZE {
        let message = format!(
            "the program headers are at {:#x}, not directly after the ELF header",
            file.header.e_phoff
        );
        return Err(file.refuse(Kind::Unsupported, "ELF header", 0, message));
    }
    refuse_unloaded(file, index, fatbin)?;
    if fatbin.sh_size < LEAST_MARKER_AREA {
        let message = format!("{} bytes are too small for a marker", fatbin.sh_size);
        return Err(file.refuse_section(Kind::Unsupported, index, message));
    }
    if file.header.e_shnum == 0 {
        let message = "has more sections than the ELF header can count";
        return Err(file.refuse(Kind::Unsupported, "ELF header", 0, message));
    }
    if file.names.last() != Some(&0) {
        let message = "the section name table does not end with a zero";
        return Err(file.refuse_section(Kind::Malformed, file.names_index, message));
    }
    Ok(())
}

fn refuse_unloaded(file: &ElfFile, index: usize, section: &SectionHeader) -> Result<()> {
    if section.sh_type == elf::SHT_PROGBITS && section.is_allocated() && section.sh_size > 0 {
        return Ok(());
    }
    let message = format!(
        "has type {:#x}, flags {:#x} and {:#x} bytes, not loaded content",
        section.sh_type.0, section.sh_flags.0, section.sh_size
    );
    Err(file.refuse_section(Kind::Unsupported, index, message))
}

/// Fails if a section holds bytes that the dynamic linker reads and the transform edits, but is not loaded by
/// its header or has no bytes by its type: tools drop it, or keep its old bytes.
fn refuse_unloaded_tables(file: &ElfFile, dynamic: &Dynamic) -> Result<()> {
    let tags = [
        (elf::DT_RELA, elf::DT_RELASZ),
        (elf::DT_JMPREL, elf::DT_PLTRELSZ),
        (elf::DT_RELR, elf::DT_RELRSZ),
    ];
    let tables = tags.into_iter().filter_map(|(start, size)| {
        let (start, size) = (dynamic.value(start)?, dynamic.value(size)?);
        Some((start, file.offset_of(start, size)?, size))
    });
    let segment = file
        .segment(elf::PT_DYNAMIC)
        .map(|segment| (segment.p_vaddr, segment.p_offset, segment.p_filesz));
    let read: Vec<(u64, u64, u64)> = tables.chain(segment).collect();
    let unloaded = file.sections.iter().position(|section| {
        let kept_out = !section.is_allocated() && section.is_in_file();
        let empty = section.sh_type == elf::SHT_NOBITS && section.takes_addresses();
        read.iter().any(|(address, offset, size)| {
            kept_out && section_meets(section.sh_offset, section, *offset, *size)
                || empty && section_meets(section.sh_addr, section, *address, *size)
        })
    });
    let Some(index) = unloaded else { return Ok(()) };
    let message =
        "the dynamic linker reads from it, but its flags or its type say that it is not loaded";
    Err(file.refuse_section(Kind::Unsupported, index, message))
}

fn section_meets(own: u64, section: &SectionHeader, start: u64, size: u64) -> bool {
    own < start.saturating_add(size) && start < own.saturating_add(section.sh_size)
}

fn references(file: &ElfFile, bound: &[BoundWrapper], layout: &Layout) -> Result<Vec<WrapperRef>> {
    let names = symbols::bundle_names(file, layout.fatbin)?;
    let references = (0..).zip(bound).map(|(index, wrapper)| WrapperRef {
        index,
        bundle_offset: wrapper.target.saturating_sub(layout.start),
        symbol: names.of(wrapper),
    });
    Ok(references.collect())
}
