//! The table of contents as a loader reads it.

use std::ffi::CStr;

use super::{FRAME_LIMIT, FrameFault, OpenFault, Scheme, Span};
use crate::message_pack::{Decoder, Fault, Input, Item};
use crate::{Names, OutOfMemory, push};

pub mod field {
    pub const FORMAT_VERSION: &str = "format_version";
    pub const GROUP_NAME: &str = "group_name";
    pub const GFX_ARCH_FAMILY: &str = "gfx_arch_family";
    /// The targets that the archive answers for.
    pub const GFX_ARCHES: &str = "gfx_arches";
    /// The scheme in which code objects are stored.
    pub const COMPRESSION_SCHEME: &str = "compression_scheme";
    /// The offset of the blob of frames.
    pub const ZSTD_OFFSET: &str = "zstd_offset";
    /// The bytes of that blob.
    pub const ZSTD_SIZE: &str = "zstd_size";
    /// The places of uncompressed code objects.
    pub const BLOBS: &str = "blobs";
    /// The offset of a code object, in `blobs`.
    pub const OFFSET: &str = "offset";
    /// The bytes of a code object, in `blobs`.
    pub const SIZE: &str = "size";
    pub const TOC: &str = "toc";
    pub const TYPE: &str = "type";
    pub const ORDINAL: &str = "ordinal";
    /// The uncompressed bytes of the code object.
    pub const ORIGINAL_SIZE: &str = "original_size";
    /// Additions of other tools.
    pub const METADATA: &str = "metadata";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub ordinal: u32,
    /// The uncompressed size of the code object in bytes, if the row has it.
    pub original_size: Option<u64>,
}

/// The fields of a table that a loader uses.
pub(super) struct TocTable {
    pub scheme: Scheme,
    pub arches: Names,
    /// The uncompressed code objects by ordinal.
    pub blobs: Result<Vec<Span>, NotANumber>,
    /// The blob of all frames.
    pub zstd: Result<Span, NotANumber>,
    pub rows: SortedRows,
}

const FIELDS: [&str; 6] = [
    field::GFX_ARCHES,
    field::COMPRESSION_SCHEME,
    field::ZSTD_OFFSET,
    field::ZSTD_SIZE,
    field::BLOBS,
    field::TOC,
];

type TocResult<T, I> = Result<T, OpenFault<<I as Input>::Error>>;

/// A field whose value is not a number. It is a fault only if the scheme needs the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotANumber;

impl<E> From<NotANumber> for OpenFault<E> {
    fn from(_: NotANumber) -> Self {
        Self::NotANumber
    }
}

/// The value of a field that should be a number; `None` if it is absent.
type Number = Option<Result<u64, NotANumber>>;

/// Reads a number, unless an equal key came before.
fn read_number<I: Input>(
    number: &mut Number,
    decoder: &mut Decoder<I>,
) -> Result<(), Fault<I::Error>> {
    match number {
        None => *number = Some(decoder.number()?.ok_or(NotANumber)),
        Some(_) => decoder.skip()?,
    }
    Ok(())
}

/// The place by its two numbers; those that are absent are zero.
fn span([offset, size]: [Number; 2]) -> Result<Span, NotANumber> {
    Ok(Span { offset: offset.unwrap_or(Ok(0))?, size: size.unwrap_or(Ok(0))? })
}

impl TocTable {
    /// Decodes the whole value at the start of `input`.
    pub(super) fn decode<I: Input>(input: I) -> TocResult<Self, I> {
        let mut decoder = Decoder::new(input);
        let Item::Map(pairs) = decoder.item()? else { return Err(OpenFault::NotAMap) };
        let mut found = TocFields::default();
        for _ in 0..pairs {
            found.field(&mut decoder)?;
        }
        let TocFields { scheme, arches, offset, size, blobs, rows } = found;
        Ok(Self {
            scheme: scheme.unwrap_or(Scheme::None),
            arches: arches.unwrap_or_default(),
            blobs: blobs.unwrap_or(Ok(Vec::new())),
            zstd: span([offset, size]),
            rows: rows.unwrap_or_default().finished()?,
        })
    }
}

/// The fields found in a table, also those with invalid values. The first of equal keys counts.
#[derive(Default)]
struct TocFields {
    scheme: Option<Scheme>,
    arches: Option<Names>,
    offset: Number,
    size: Number,
    blobs: Option<Result<Vec<Span>, NotANumber>>,
    rows: Option<UnsortedRows>,
}

impl TocFields {
    fn field<I: Input>(&mut self, decoder: &mut Decoder<I>) -> TocResult<(), I> {
        match decoder.one_of(&FIELDS)? {
            Some(field::GFX_ARCHES) if self.arches.is_none() => {
                self.arches = Some(decoder.names()?);
            }
            Some(field::COMPRESSION_SCHEME) if self.scheme.is_none() => {
                let framed = decoder.one_of(&[Scheme::ZstdPerKernel.as_str()])?;
                self.scheme = Some(framed.map_or(Scheme::None, |_| Scheme::ZstdPerKernel));
            }
            Some(field::ZSTD_OFFSET) => read_number(&mut self.offset, decoder)?,
            Some(field::ZSTD_SIZE) => read_number(&mut self.size, decoder)?,
            Some(field::BLOBS) if self.blobs.is_none() => self.blobs = Some(blobs(decoder)?),
            Some(field::TOC) if self.rows.is_none() => {
                self.rows = Some(UnsortedRows::read(decoder)?)
            }
            _ => decoder.skip()?,
        }
        Ok(())
    }
}

fn blobs<I: Input>(decoder: &mut Decoder<I>) -> TocResult<Result<Vec<Span>, NotANumber>, I> {
    let mut blobs = Ok(Vec::new());
    let count = match decoder.item()? {
        Item::Array(count) => count,
        other => return Ok(decoder.skip_rest_of(other).map(|()| blobs)?),
    };
    for _ in 0..count {
        match decoder.item()? {
            Item::Map(pairs) => {
                let numbers = numbers([field::OFFSET, field::SIZE], pairs, decoder)?;
                match (span(numbers), &mut blobs) {
                    (Ok(_), Ok(blobs)) if blobs.len() as u64 == u64::from(FRAME_LIMIT) => {
                        return Err(OpenFault::Frames(FrameFault::TooMany(count)));
                    }
                    (Ok(span), Ok(blobs)) => push(blobs, span)?,
                    (Ok(_), Err(NotANumber)) => {}
                    (Err(fault), _) => blobs = Err(fault),
                }
            }
            other => decoder.skip_rest_of(other)?,
        }
    }
    Ok(blobs)
}

/// Reads the two numbers with these names from a map of `pairs` pairs.
fn numbers<I: Input>(
    names: [&str; 2],
    pairs: u32,
    decoder: &mut Decoder<I>,
) -> Result<[Number; 2], Fault<I::Error>> {
    let mut numbers = [None; 2];
    for _ in 0..pairs {
        let name = decoder.one_of(&names)?;
        let mut known = names.into_iter().zip(&mut numbers);
        match known.find(|(known, _)| Some(*known) == name) {
            Some((_, number)) => read_number(number, decoder)?,
            None => decoder.skip()?,
        }
    }
    Ok(numbers)
}

/// Reads a row. Returns `None` if it has no ordinal.
fn row<I: Input>(pairs: u32, decoder: &mut Decoder<I>) -> TocResult<Option<Row>, I> {
    let names = [field::ORDINAL, field::ORIGINAL_SIZE];
    let [number, original_size] = numbers(names, pairs, decoder)?.map(Option::transpose);
    let (number, original_size) = (number?, original_size?);
    let ordinal = number.map(u32::try_from).transpose().map_err(|_| NotANumber)?;
    Ok(ordinal.map(|ordinal| Row { ordinal, original_size }))
}

/// Minimum size in bytes of a key with one row. All writers use far more.
const ROW_MIN: u64 = 40;

/// Rows in the order of the file.
#[derive(Default)]
struct UnsortedRows {
    keys: Names,
    targets: Names,
    rows: Vec<NumberedRow>,
}

/// A row with the indexes of its key and target; in sorted rows, with the place of its key.
#[derive(Debug, Clone, Copy)]
struct NumberedRow {
    key: usize,
    target: usize,
    row: Row,
}

impl UnsortedRows {
    fn read<I: Input>(decoder: &mut Decoder<I>) -> TocResult<Self, I> {
        let mut read = Self::default();
        let keys = match decoder.item()? {
            Item::Map(keys) => keys,
            other => return Ok(decoder.skip_rest_of(other).map(|()| read)?),
        };
        // Most keys have one row.
        let most = u64::from(keys).min(decoder.input.left() / ROW_MIN);
        let room = usize::try_from(most).unwrap_or(usize::MAX);
        read.keys.reserve(room)?;
        read.targets.reserve(room)?;
        read.rows.try_reserve_exact(room).map_err(OutOfMemory::from)?;
        for _ in 0..keys {
            if !decoder.append_name(&mut read.keys)? {
                decoder.skip()?;
                continue;
            }
            match decoder.item()? {
                Item::Map(targets) => read.read_targets(targets, decoder)?,
                other => decoder.skip_rest_of(other)?,
            }
        }
        Ok(read)
    }

    /// Reads the rows of the last key.
    fn read_targets<I: Input>(&mut self, count: u32, decoder: &mut Decoder<I>) -> TocResult<(), I> {
        for _ in 0..count {
            if !decoder.append_name(&mut self.targets)? {
                decoder.skip()?;
                continue;
            }
            let row = match decoder.item()? {
                Item::Map(pairs) => row(pairs, decoder)?,
                other => decoder.skip_rest_of(other).map(|()| None)?,
            };
            match row {
                Some(row) => {
                    let (key, target) = (self.keys.len() - 1, self.targets.len() - 1);
                    push(&mut self.rows, NumberedRow { key, target, row })?;
                }
                None => self.targets.pop(),
            }
        }
        Ok(())
    }

    /// Sorts the rows by key and target. The last of equal rows stays. Keys are compared once, not for each row:
    /// many rows may share a long one.
    fn finished(self) -> Result<SortedRows, OutOfMemory> {
        let Self { keys, targets, mut rows } = self;
        let order = sort_keys(&keys, &mut rows)?;
        let by_names = |a: &NumberedRow, b: &NumberedRow| {
            a.key.cmp(&b.key).then_with(|| targets.get(a.target).cmp(&targets.get(b.target)))
        };
        // Writers sort their rows.
        if !rows.is_sorted_by(|a, b| by_names(a, b).is_lt()) {
            // Sorts in place, as a stable sort allocates. The indexes of targets keep the order of the file.
            rows.sort_unstable_by(|a, b| by_names(a, b).then(a.target.cmp(&b.target)));
            rows.dedup_by(|later, earlier| {
                let again = by_names(later, earlier).is_eq();
                if again {
                    *earlier = *later;
                }
                again
            });
        }
        let (mut first, mut end) = (Vec::new(), 0);
        for of_key in rows.chunk_by(|a, b| a.key == b.key) {
            push(&mut first, end)?;
            end += of_key.len();
        }
        // Writers sort their keys, and sorted keys need no copy.
        if order.is_sorted() && first.len() == keys.len() {
            return Ok(SortedRows { keys, first, targets, rows });
        }
        let mut sorted = Names::default();
        for row in first.iter().filter_map(|row| rows.get(*row)) {
            let key = order.get(row.key).and_then(|key| keys.get(*key));
            sorted.push(key.unwrap_or_default())?;
        }
        Ok(SortedRows { keys: sorted, first, targets, rows })
    }
}

/// The indexes of `keys` in byte order. `rows` get their places instead; equal keys share the first place.
fn sort_keys(keys: &Names, rows: &mut [NumberedRow]) -> Result<Vec<usize>, OutOfMemory> {
    let (mut order, mut places) = (Vec::new(), Vec::new());
    for list in [&mut order, &mut places] {
        list.try_reserve_exact(keys.len())?;
        list.extend(0..keys.len());
    }
    order.sort_unstable_by_key(|key| (keys.get(*key), *key));
    let mut last = (0, None);
    for (place, key) in order.iter().enumerate() {
        if last.1 != keys.get(*key) {
            last = (place, keys.get(*key));
        }
        places.get_mut(*key).into_iter().for_each(|slot| *slot = last.0);
    }
    rows.iter_mut().for_each(|row| row.key = places.get(row.key).copied().unwrap_or_default());
    Ok(order)
}

#[derive(Debug, Clone, Default)]
pub(super) struct SortedRows {
    /// The keys, sorted, each once.
    pub keys: Names,
    /// The first row of each key.
    first: Vec<usize>,
    targets: Names,
    /// The rows, sorted by key and target.
    rows: Vec<NumberedRow>,
}

impl SortedRows {
    pub(super) fn find(&self, key: &[u8], target: &[u8]) -> Option<Row> {
        let rows = self.range(key)?;
        let index = rows.binary_search_by(|draft| {
            self.targets.get(draft.target).unwrap_or_default().cmp(target)
        });
        Some(rows.get(index.ok()?)?.row)
    }

    /// Iterates over the targets of `key` with their rows.
    pub(super) fn of(&self, key: &[u8]) -> impl Iterator<Item = (&CStr, Row)> {
        let rows = self.range(key).unwrap_or_default().iter();
        rows.filter_map(|draft| Some((self.targets.get_c(draft.target)?, draft.row)))
    }

    fn range(&self, key: &[u8]) -> Option<&[NumberedRow]> {
        let key = self.keys.binary_search(key)?;
        let first = *self.first.get(key)?;
        let end = self.first.get(key + 1).copied().unwrap_or(self.rows.len());
        self.rows.get(first..end)
    }
}
