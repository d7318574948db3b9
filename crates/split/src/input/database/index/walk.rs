//! The walk through an index.

use std::collections::BTreeSet;
use std::io;

use rockpack_core::content::Content;
use rockpack_core::gfx::{self, BaseArch};
use rockpack_core::run::Budget;
use rockpack_elf::message_pack_stream::{Token, TokenReader, fault};

use super::{DEPTH_LIMIT, IndexDescription, LocatedSolutions, Source};

/// Longest text that may be a name, in bytes. Longer ones are only searched for archs.
const NAME_LIMIT: u32 = 4096;

type Tokens = TokenReader<Source>;

pub(super) struct Walk {
    description: IndexDescription,
    budget: Budget,
    /// Bytes of all names in the description.
    names: u64,
    buffer: Vec<u8>,
    library: Library,
}

/// The keys of a library that must agree.
#[derive(Default)]
struct Library {
    version: Option<i128>,
    /// The places from `solutions_index`, or from an earlier walk.
    places: Option<LocatedSolutions>,
    has_index: bool,
    has_blob: bool,
    /// Whether the bytes of the solutions were skipped.
    skipped_solutions: bool,
}

impl Walk {
    /// A walk through `content`; `places` are those of its solutions, if they are known.
    pub(super) fn new(content: &Content, places: Option<LocatedSolutions>) -> Self {
        Self {
            description: IndexDescription::default(),
            budget: content.budget().clone(),
            names: 0,
            buffer: Vec::new(),
            library: Library { places, ..Library::default() },
        }
    }

    /// Walks the one value of `source`. Returns the places of the solutions, too, if it skipped their bytes because it
    /// did not know them yet.
    pub(super) fn whole(
        mut self,
        source: Source,
    ) -> io::Result<(IndexDescription, Option<LocatedSolutions>)> {
        let mut tokens = TokenReader::new(source);
        self.value(&mut tokens, ValuePosition { depth: 0, key: ValueKey::Other })?;
        tokens.into_source().end()?;
        let Self { description, library, .. } = self;
        library.check()?;
        Ok((description, library.places.filter(|_| library.skipped_solutions)))
    }

    fn value(&mut self, tokens: &mut Tokens, position: ValuePosition) -> io::Result<WalkedValue> {
        position.check()?;
        let token = tokens.token()?;
        if position.depth == 1 && self.library_value(tokens, position.key, token)? {
            return Ok(WalkedValue::Other);
        }
        match token {
            Token::Integer(_) | Token::Other(_) => Ok(WalkedValue::Other),
            Token::Binary(len) => tokens.skip(len.into()).map(|()| WalkedValue::Other),
            Token::Text(len) => self.text(tokens, len, |walk, text| walk.note(text, position)),
            Token::Array(len) => {
                for _ in 0..len {
                    self.value(tokens, position.inside(ValueKey::Other))?;
                }
                Ok(WalkedValue::Array(len))
            }
            Token::Map(len) => self.map(tokens, len, position),
        }
    }

    fn map(
        &mut self,
        tokens: &mut Tokens,
        len: u32,
        position: ValuePosition,
    ) -> io::Result<WalkedValue> {
        let mut placeholder = false;
        let mut value = None;
        for _ in 0..len {
            let key = self.key(tokens, position.inside(position.key))?;
            match self.value(tokens, position.inside(key))? {
                WalkedValue::Placeholder => placeholder = true,
                WalkedValue::Value(text) => value = Some(text),
                WalkedValue::Array(count) if key == ValueKey::Solutions => {
                    self.count_solutions(count.into());
                }
                WalkedValue::Array(_) | WalkedValue::Other => {}
            }
        }
        if let Some(value) = value.filter(|_| placeholder) {
            self.insert(&value, |description| &mut description.libraries)?;
        }
        Ok(WalkedValue::Other)
    }

    /// Reads a key. `position` is that of the map's values, after the key of the map itself.
    fn key(&mut self, tokens: &mut Tokens, position: ValuePosition) -> io::Result<ValueKey> {
        position.check()?;
        match tokens.token()? {
            Token::Text(len) => self.text(tokens, len, |walk, text| {
                if (position.key, position.depth) == (ValueKey::Arch, 2) {
                    walk.insert(text, |description| &mut description.operations)?;
                }
                Ok(ValueKey::of(text))
            }),
            Token::Integer(_) => Ok(ValueKey::Number),
            Token::Other(_) => Ok(ValueKey::Other),
            Token::Binary(len) => tokens.skip(len.into()).map(|()| ValueKey::Other),
            Token::Array(len) => {
                for _ in 0..len {
                    self.value(tokens, position.inside(ValueKey::Other))?;
                }
                Ok(ValueKey::Other)
            }
            Token::Map(len) => self.map(tokens, len, position).map(|_| ValueKey::Other),
        }
    }

    /// Records a text that is a value.
    fn note(&mut self, text: &str, position: ValuePosition) -> io::Result<WalkedValue> {
        if text.ends_with(".co") || text.ends_with(".hsaco") {
            self.insert(text, |description| &mut description.code_object_files)?;
        }
        match (position.key, position.depth) {
            (ValueKey::Operation, _) => {
                self.insert(text, |description| &mut description.operations)?;
            }
            (ValueKey::Number, 1) => {
                self.insert(text, |description| &mut description.libraries)?;
            }
            (ValueKey::Type, _) if text == "Placeholder" => return Ok(WalkedValue::Placeholder),
            (ValueKey::Value, _) => return Ok(WalkedValue::Value(text.to_owned())),
            _ => {}
        }
        Ok(WalkedValue::Other)
    }

    /// Reads a text of `len` bytes, notes its archs, and passes it to `take` if it may be a name: UTF-8 and
    /// not too long.
    fn text<T: Default>(
        &mut self,
        tokens: &mut Tokens,
        len: u32,
        take: impl FnOnce(&mut Self, &str) -> io::Result<T>,
    ) -> io::Result<T> {
        if len > NAME_LIMIT {
            let mut left = len as usize;
            let archs = gfx::archs_in_windows(|window| {
                let next = left.min(window.len());
                tokens.read(&mut window[..next])?;
                left -= next;
                Ok(next)
            })?;
            self.description.archs.extend(archs);
            return Ok(T::default());
        }
        // There are millions of texts, which share one buffer.
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.resize(len as usize, 0);
        tokens.read(&mut bytes)?;
        let taken = match std::str::from_utf8(&bytes) {
            Ok(text) => {
                self.description.archs.extend(gfx::archs_in(text));
                take(self, text)
            }
            Err(_) => {
                let archs = gfx::archs_in(&String::from_utf8_lossy(&bytes));
                self.description.archs.extend(archs);
                Ok(T::default())
            }
        };
        self.buffer = bytes;
        taken
    }

    /// Reads a value of the outermost map if its key describes the storage of solutions, and returns whether it
    /// did.
    fn library_value(
        &mut self,
        tokens: &mut Tokens,
        key: ValueKey,
        token: Token,
    ) -> io::Result<bool> {
        match (key, token) {
            (ValueKey::FormatVersion, Token::Integer(version)) => {
                if self.library.version.replace(version).is_some() {
                    return Err(fault("it has format_version twice"));
                }
            }
            (ValueKey::FormatVersion, _) => {
                return Err(fault("its format_version is not an integer"));
            }
            (ValueKey::SolutionsIndex, Token::Array(len)) => {
                let places = LocatedSolutions::read(tokens, len, &self.budget)?;
                if std::mem::replace(&mut self.library.has_index, true) {
                    return Err(fault("it has solutions_index twice"));
                }
                self.count_solutions(places.0.len() as u64);
                self.library.places.get_or_insert(places);
            }
            (ValueKey::SolutionsBlob, Token::Binary(len)) => {
                if std::mem::replace(&mut self.library.has_blob, true) {
                    return Err(fault("it has solutions_blob twice"));
                }
                self.solutions(tokens, len)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Walks the solutions in the next `len` bytes. Skips them if their places are not known yet.
    fn solutions(&mut self, tokens: &mut Tokens, len: u32) -> io::Result<()> {
        let start = tokens.position();
        let Some(places) = self.library.places.take() else {
            self.library.skipped_solutions = true;
            return tokens.skip(len.into());
        };
        for place in places.sorted_ranges(len)? {
            tokens.skip(place.start - (tokens.position() - start))?;
            self.value(tokens, ValuePosition { depth: 2, key: ValueKey::Other })?;
            if tokens.position() - start != place.end {
                let message =
                    format!("the solution at {} of solutions_blob has another length", place.start);
                return Err(fault(message));
            }
        }
        tokens.skip(u64::from(len) - (tokens.position() - start))
    }

    fn count_solutions(&mut self, count: u64) {
        self.description.solutions = self.description.solutions.saturating_add(count);
    }

    /// Puts `name` into a set of the description. Most names are in it already: only new ones are copied.
    fn insert(
        &mut self,
        name: &str,
        set: impl Fn(&mut IndexDescription) -> &mut BTreeSet<String>,
    ) -> io::Result<()> {
        let set = set(&mut self.description);
        if !set.contains(name) {
            // A text in a set takes some sixty bytes besides its own.
            self.names = self.names.saturating_add(name.len() as u64 + 64);
            self.budget.check_structure(self.names, "the names in a kernel index")?;
            set.insert(name.to_owned());
        }
        Ok(())
    }
}

impl Library {
    /// Refuses combinations that no library can read.
    fn check(&self) -> io::Result<()> {
        match (self.version, self.has_index, self.has_blob) {
            (None | Some(0 | 1), false, false) | (Some(2), true, true) => Ok(()),
            (None | Some(0 | 1), ..) => {
                let keys = "solutions_index or solutions_blob";
                Err(fault(format!("it has {keys}, but not format_version 2")))
            }
            (Some(2), false, _) => Err(fault("format_version 2 without an array solutions_index")),
            (Some(2), ..) => Err(fault("format_version 2 without binary data solutions_blob")),
            (Some(version), ..) => {
                Err(fault(format!("format_version {version} is not known, only 1 and 2 are")))
            }
        }
    }
}

/// The meaning of a map's key for its value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ValueKey {
    Operation,
    Solutions,
    SolutionsIndex,
    SolutionsBlob,
    FormatVersion,
    Type,
    Value,
    /// A number, or a text of digits.
    Number,
    Arch,
    /// Any other key, or no key.
    #[default]
    Other,
}

impl ValueKey {
    fn of(text: &str) -> Self {
        match text {
            "operationIdentifier" => Self::Operation,
            "solutions" => Self::Solutions,
            "solutions_index" => Self::SolutionsIndex,
            "solutions_blob" => Self::SolutionsBlob,
            "format_version" => Self::FormatVersion,
            "type" => Self::Type,
            "value" => Self::Value,
            _ if !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()) => Self::Number,
            _ if text.starts_with("gfx") && text.parse::<BaseArch>().is_ok() => Self::Arch,
            _ => Self::Other,
        }
    }
}

/// The place of a value: the number of maps and arrays around it, and the key before it.
#[derive(Debug, Clone, Copy)]
struct ValuePosition {
    depth: usize,
    key: ValueKey,
}

impl ValuePosition {
    fn inside(self, key: ValueKey) -> Self {
        Self { depth: self.depth.saturating_add(1), key }
    }

    fn check(self) -> io::Result<()> {
        if self.depth <= DEPTH_LIMIT {
            return Ok(());
        }
        Err(fault(format!("its values are nested more than {DEPTH_LIMIT} deep")))
    }
}

/// The kind of a value, as far as the map around it needs it.
#[derive(Debug, Default, PartialEq, Eq)]
enum WalkedValue {
    Placeholder,
    Value(String),
    /// An array of this number of elements.
    Array(u32),
    #[default]
    Other,
}
