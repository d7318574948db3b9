//! Claimed lengths cost no memory; real content costs a few times its bytes.

use std::cell::Cell;
use std::env;
use std::process::{Command, Output};

use crate::support::{Value, archive, blob, deep, framed_fields, map, plain_with, row, set, text};
use peak_alloc::PeakAlloc;
use rockpack_kpack::archive::{Archive, Span};
use rockpack_kpack::{Code, ReadAt, marker};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Maximum heap bytes for each byte of an archive, while lists grow.
const FACTOR: usize = 48;
/// Maximum number of heap bytes besides these: a window of the file.
const ASIDE: usize = 256 << 10;

/// Opens `source`, and returns the peak heap use.
fn peak<R: ReadAt + ?Sized>(source: &R) -> (Result<Archive, Code>, usize) {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let opened = Archive::open(source).map_err(|fault| fault.code());
    (opened, HEAP.peak_usage() - before)
}

fn many(value: impl Fn(usize) -> Value) -> Value {
    Value::Array((0..20_000).map(value).collect())
}

/// The densest possible tables.
fn dense() -> Vec<Vec<u8>> {
    vec![
        plain_with("blobs", many(|_| Value::Raw(vec![0x80]))),
        plain_with("gfx_arches", many(|_| text(""))),
        plain_with("gfx_arches", many(|n| text(&n.to_string()))),
        plain_with("toc", map([("", many_rows(|_| String::new()))])),
        plain_with("toc", map([("", many_rows(|n| n.to_string()))])),
        plain_with("toc", many_keys(|| map([("", map([]))]))),
        plain_with("toc", many_keys(|| Value::Nil)),
        plain_with("toc", many_keys(|| map([("", map([("ordinal", Value::Number(0))]))]))),
        plain_with("group_name", deep(1_000_000)),
    ]
}

fn many_rows(name: fn(usize) -> String) -> Value {
    let rows = (0..20_000).map(|n| (text(&name(n)), map([("ordinal", Value::Number(0))])));
    Value::Map(rows.collect())
}

fn many_keys(value: fn() -> Value) -> Value {
    Value::Map((0..20_000_usize).map(|n| (text(&n.to_string()), value())).collect())
}

/// A file of `len` bytes that begins with `front` and goes on with zeros. It counts the bytes read.
struct Sparse {
    front: Vec<u8>,
    len: u64,
    read: Cell<u64>,
}

impl ReadAt for Sparse {
    type Error = ();

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), ()> {
        self.read.set(self.read.get() + buffer.len() as u64);
        assert!(offset + buffer.len() as u64 <= self.len);
        for (byte, at) in buffer.iter_mut().zip(offset..) {
            *byte =
                usize::try_from(at).ok().and_then(|at| self.front.get(at)).copied().unwrap_or(0);
        }
        // No disk is that long, and no test reads that much.
        if self.read.get() > 4 << 20 { Err(()) } else { Ok(()) }
    }
}

/// A sparse file of 8 TB.
fn terabytes(front: Vec<u8>) -> Sparse {
    Sparse { front, len: 8 << 40, read: Cell::new(0) }
}

/// The variable that marks the process which measures.
const ALONE: &str = "ROCKPACK_TEST_ALONE";

/// The heap is counted for the whole process. So one test measures everything, in its own process.
#[test]
fn memory_is_bounded_by_the_file() {
    if env::var_os(ALONE).is_some() {
        return measure();
    }
    let mut alone = Command::new(env::current_exe().unwrap());
    alone.args(["--exact", "memory::memory_is_bounded_by_the_file"]).env(ALONE, "1");
    let Output { stdout, stderr, .. } = alone.output().unwrap();
    let told = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(told.contains("1 passed; 0 failed"), "{told}");
}

fn measure() {
    for (number, bytes) in dense().into_iter().enumerate() {
        let (opened, peak) = peak(&bytes[..]);
        opened.unwrap();
        let limit = FACTOR * bytes.len() + ASIDE;
        assert!(peak <= limit, "table {number}: {peak} bytes for a file of {}", bytes.len());
    }
    claims_cost_nothing();
    markers_cost_little();
}

fn claims_cost_nothing() {
    let claims: [&[u8]; 8] = [
        // Maps, arrays and texts of four billion.
        b"\xdf\xff\xff\xff\xff",
        b"\x81\xa5blobs\xdd\xff\xff\xff\xff",
        b"\x81\xaagfx_arches\xdd\xff\xff\xff\xff",
        b"\x81\xaagfx_arches\x91\xdb\xff\xff\xff\xff",
        b"\x81\xa3toc\xdf\xff\xff\xff\xff\xa0\xdf\xff\xff\xff\xff",
        b"\x81\xa3toc\x81\xdb\xff\xff\xff\xff",
        // Nested arrays of fifty million, which a table has room for one by one.
        b"\x81\xa1x\xdd\x03\x00\x00\x00\xdd\x03\x00\x00\x00",
        // A text that ends a few bytes behind the largest table.
        b"\x81\xa1x\xdb\x04\x00\x00\x00",
    ];
    for claim in claims {
        let bytes = archive(b"", claim);
        let (opened, taken) = peak(&bytes[..]);
        assert_eq!(opened.err(), Some(Code::MsgpackParseFailed), "{claim:x?}");
        assert!(taken <= ASIDE, "{claim:x?}: {taken}");
        // A sparse file has the bytes, and they are too many for a table.
        let (opened, taken) = peak(&terabytes(bytes));
        assert_eq!(opened.err(), Some(Code::InvalidFormat), "{claim:x?}");
        assert!(taken <= ASIDE, "{claim:x?}: {taken}");
    }
    // A table may be followed by any number of bytes, and a code object has 4 GiB at most.
    let blobs = [4 << 30, (4 << 30) + 1].map(|size| blob(64, size)).into();
    let (opened, _) = peak(&terabytes(plain_with("blobs", Value::Array(blobs))));
    let stored = [0, 1].map(|ordinal| opened.as_ref().unwrap().stored(ordinal));
    assert_eq!(stored, [Ok(Span { offset: 64, size: 4 << 30 }), Err(Code::Io)]);
    // If the file really has the bytes, memory is taken as they are read.
    let front = archive(b"", b"\x81\xaagfx_arches\x91\xdb\x02\x00\x00\x00");
    let (opened, taken) = peak(&Sparse { front, len: 1 << 40, read: Cell::new(0) });
    assert_eq!(opened.err(), Some(Code::Io));
    assert!(taken <= 16 << 20, "{taken}");
    // A blob that claims a million frames without room for them.
    let mut fields = framed_fields(12);
    set(&mut fields, "toc", map([("k", map([("t", row(0, 1))]))]));
    let blob = [(1_u32 << 20).to_le_bytes(), [0; 4], [0; 4]].concat();
    let bytes = archive(&blob, &Value::Map(fields).bytes());
    let (opened, taken) = peak(&bytes[..]);
    assert_eq!(opened.err(), Some(Code::InvalidFormat));
    assert!(taken <= ASIDE, "{taken}");
}

fn markers_cost_little() {
    let paths = Value::Array((0..60_000).map(|_| text("")).collect());
    let bytes = map([("kernel_name", text("k")), ("kpack_search_paths", paths)]).bytes();
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let loaded = marker::load(&bytes[..]).unwrap();
    assert_eq!(loaded.search_paths.len(), 60_000);
    assert!(HEAP.peak_usage() - before <= FACTOR * bytes.len());
}
