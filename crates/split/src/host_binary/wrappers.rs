//! Wrappers, and the places that they point to after loading.

use std::ops::Range;

use object::elf;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_elf::hip_wrapper::{self, Magic, Wrapper};
use rockpack_elf::{Dynamic, ElfFile, Relocation, SectionHeader, Symbol, for_each_relocation};

/// A wrapper, its place and its target.
#[derive(Debug, Clone)]
pub struct BoundWrapper {
    pub wrapper: Wrapper,
    pub address: u64,
    pub offset: u64,
    /// The address that its pointer has at run time, relative to the load address.
    pub target: u64,
    /// The way in which the pointer gets its value.
    pub binding: Binding,
}

/// The way in which a pointer gets its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// A relocation at this offset in the file; the value in place does not count.
    Rela {
        entry: u64,
        /// The dynamic symbol that it names; zero for none.
        symbol: u32,
    },
    /// A value in place, to which the loader adds the load address or nothing.
    InPlace,
}

/// Binds the wrappers of `section`, which has this index; `symbols` are the dynamic ones. Every
/// target lies in `targets`, and no other relocation leads there.
pub fn bind(
    file: &ElfFile,
    dynamic: &Dynamic,
    symbols: Vec<Symbol>,
    index: usize,
    section: &SectionHeader,
    targets: &Range<u64>,
) -> Result<Vec<BoundWrapper>> {
    let range = file.file_range(index, section)?;
    let wrappers = hip_wrapper::parse(&file.content().slice(range)?)?;
    if wrappers.is_empty() {
        let message = "has no wrappers";
        return Err(file.refuse_section(Kind::Malformed, index, message));
    }
    let bindings = vec![None; wrappers.len()];
    let mut binder = Binder { file, section, targets, symbols, bindings, wrappers: &wrappers };
    for_each_relocation(file, dynamic, &mut |relocation| binder.visit(&relocation))?;
    let all = wrappers.iter().zip(std::mem::take(&mut binder.bindings));
    all.map(|(wrapper, binding)| binder.finish(wrapper, binding)).collect()
}

/// Fails unless all wrappers point to device code.
pub fn refuse_foreign_wrappers(bound: &[BoundWrapper], file: &ElfFile) -> Result<()> {
    let Some(other) = bound.iter().find(|bound| bound.wrapper.magic != Magic::Fat) else {
        return Ok(());
    };
    let message = format!(
        "wrapper at {:#x} has magic {:#010x}, others {:#010x}",
        other.address,
        other.wrapper.magic as u32,
        Magic::Fat as u32
    );
    Err(file.refuse(Kind::Malformed, ".hipFatBinSegment", other.offset, message))
}

struct Binder<'a> {
    file: &'a ElfFile,
    section: &'a SectionHeader,
    targets: &'a Range<u64>,
    symbols: Vec<Symbol>,
    wrappers: &'a [Wrapper],
    bindings: Vec<Option<(u64, Binding)>>,
}

impl Binder<'_> {
    fn visit(&mut self, relocation: &Relocation) -> Result<()> {
        let target = self.resolve(relocation)?;
        let section = self.section.sh_addr..self.section.memory_end();
        let word_end = relocation.address.saturating_add(8);
        if word_end > section.start && relocation.address < section.end {
            return self.bind(relocation, target);
        }
        match target.or(self.referenced_code(relocation)?) {
            Some(target) if self.targets.contains(&target) => {
                let message = format!(
                    "at {:#x} refers to {target:#x} inside the device code, but belongs to no wrapper",
                    relocation.address
                );
                Err(self.refuse(relocation, Kind::Unsupported, message))
            }
            _ => Ok(()),
        }
    }

    /// The value of the relocated word at run time, relative to the load address; `None` if it is not an address, or
    /// one in another file.
    fn resolve(&self, relocation: &Relocation) -> Result<Option<u64>> {
        match relocation.kind {
            elf::R_X86_64_RELATIVE => Ok(Some(relocation.addend.cast_unsigned())),
            elf::R_X86_64_64 => {
                let value = self.symbol_value(relocation)?;
                Ok(value.map(|value| value.wrapping_add_signed(relocation.addend)))
            }
            elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => self.symbol_value(relocation),
            _ => Ok(None),
        }
    }

    /// The address within the device code that a relocation of another type uses, if any. It is not a wrapper's
    /// pointer, so it cannot be updated. Values of thread-local symbols are not addresses.
    fn referenced_code(&self, relocation: &Relocation) -> Result<Option<u64>> {
        if relocation.is_thread_local() {
            return Ok(None);
        }
        let (symbol, sum) = match relocation.address_without_symbol() {
            Some(address) => (None, Some(address)),
            None => {
                let value = self.symbol_value(relocation)?;
                (value, value.map(|value| value.wrapping_add_signed(relocation.addend)))
            }
        };
        let mut addresses = symbol.into_iter().chain(sum);
        Ok(addresses.find(|address| self.targets.contains(address)))
    }

    fn symbol_value(&self, relocation: &Relocation) -> Result<Option<u64>> {
        let index = usize::try_from(relocation.symbol).unwrap_or(usize::MAX);
        self.symbols.get(index).map(Symbol::address).ok_or_else(|| {
            let message = format!("names symbol {index}, which does not exist");
            self.refuse(relocation, Kind::Malformed, message)
        })
    }

    fn bind(&mut self, relocation: &Relocation, target: Option<u64>) -> Result<()> {
        let field = relocation.address.checked_sub(self.section.sh_addr);
        let wrapper =
            field.and_then(|field| field.checked_sub(hip_wrapper::POINTER)).and_then(|offset| {
                self.wrappers.binary_search_by_key(&offset, |wrapper| wrapper.offset).ok()
            });
        // If edited, it would become a RELATIVE entry among those of functions, which loaders with lazy
        // binding reject.
        let target = target.filter(|_| relocation.kind != elf::R_X86_64_JUMP_SLOT);
        let (Some(wrapper), Some(target)) = (wrapper, target) else {
            let message = format!(
                "has type {} at {:#x}, which a wrapper's pointer cannot have",
                relocation.kind.0, relocation.address
            );
            return Err(self.refuse(relocation, Kind::Unsupported, message));
        };
        let binding = if relocation.is_relr {
            Binding::InPlace
        } else {
            Binding::Rela { entry: relocation.offset, symbol: relocation.symbol }
        };
        if self.bindings[wrapper].replace((target, binding)).is_some() {
            let message = "is the second relocation of a wrapper's pointer";
            return Err(self.refuse(relocation, Kind::Malformed, message));
        }
        Ok(())
    }

    fn finish(&self, wrapper: &Wrapper, binding: Option<(u64, Binding)>) -> Result<BoundWrapper> {
        let address = self.section.sh_addr.saturating_add(wrapper.offset);
        let offset = self.section.sh_offset.saturating_add(wrapper.offset);
        let (target, binding) = match binding {
            Some(found) => found,
            None if self.file.header.e_type == elf::ET_EXEC => (wrapper.pointer, Binding::InPlace),
            None => {
                let message =
                    format!("no relocation sets the pointer of the wrapper at {address:#x}");
                return Err(self.refuse_wrapper(offset, message));
            }
        };
        if !self.targets.contains(&target) {
            let Range { start, end } = self.targets;
            let message = format!(
                "the wrapper at {address:#x} points to {target:#x}, outside of {start:#x}..{end:#x}"
            );
            return Err(self.refuse_wrapper(offset, message));
        }
        Ok(BoundWrapper { wrapper: *wrapper, address, offset, target, binding })
    }

    fn refuse_wrapper(&self, offset: u64, message: String) -> Error {
        self.file.refuse(Kind::Malformed, ".hipFatBinSegment", offset, message)
    }

    fn refuse(&self, relocation: &Relocation, kind: Kind, message: impl Into<String>) -> Error {
        self.file.refuse(kind, "relocation", relocation.offset, message)
    }
}
