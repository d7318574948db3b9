//! One zstd frame, made by several threads, with a level that may change within it.
//!
//! zstd accepts new levels while it compresses, and applies them from its next job on. A flush before the
//! change ends the job at a position that only depends on the content, so the bytes do not depend on threads.
//! Long-distance matching stays on at every level.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

/// Idle contexts, shared by all clones. Their memory, a window and jobs of some hundred MB, is allocated once
/// and not for every package.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("Contexts")]
pub struct Contexts(Arc<Mutex<Vec<CCtx<'static>>>>);

/// Bytes of compressed output that are buffered before they are written.
const OUTPUT: usize = 128 << 10;

/// The level for compressed content. Such content compresses only by repeated parts, which long-distance
/// matching finds at any level. Below zero, the search for other matches takes larger steps, and the rest is
/// copied.
const LOW: i32 = -1000;

/// Logarithm of the number of remembered positions at that level: the minimum, because the table is cleared
/// for every job.
const LOW_HASH_LOG: u32 = 6;

/// The value that returns to the level's own table size.
const LEVELS_HASH_LOG: u32 = 0;

/// Long-distance matching remembers one of 2^9 positions. zstd's own choice is one of 2^6 or 2^7. It takes a
/// third more time on compressed content to save half a percent, and makes other content larger at level 9
/// (`benches/RESULTS.md`).
const LDM_HASH_RATE_LOG: u32 = 9;

/// Shortest repetition in bytes that is searched for in nearly equal files. Shorter ones, which the level finds
/// as well, would hide longer ones: seven archives of jax's code (633 MB) become 6.3 MB with 64, 3.6 MB with 1024.
const COPY_LEN: u32 = 1024;

/// The first level at which zstd uses its optimal parser. There every match counts and time does not, so zstd
/// chooses the rate of long-distance matching.
const OPTIMAL: i32 = 13;

/// Shortest content that is worth a change of the level, in bytes.
const LONG: u64 = 1 << 20;

/// First bytes of compressed content: offload bundles (CCOB), and streams of zstd, xz, gzip and bzip2.
const COMPRESSED: [&[u8]; 5] =
    [b"CCOB", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"\x1f\x8b\x08", b"BZh"];

/// First bytes of kernel archives; the range at which an uncompressed one has the magic of its code, and these magics:
/// ELF, SPIR-V in both byte orders, and LLVM bitcode.
const ARCHIVE: &[u8] = b"KPAK";
const CODE: Range<usize> = 64..68;
const CODE_STARTS: [&[u8]; 4] =
    [b"\x7fELF", b"\x03\x02\x23\x07", b"\x07\x23\x02\x03", b"BC\xc0\xde"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    #[default]
    Full,
    Low,
}

impl Effort {
    /// Number of bytes that [`Effort::of`] needs.
    pub const START: usize = CODE.end;

    /// The effort that content of `len` bytes that begins with `start` is worth.
    pub fn of(start: &[u8], len: u64) -> Self {
        let is_stored = start.get(CODE).is_some_and(|code| CODE_STARTS.contains(&code));
        let is_archive = start.starts_with(ARCHIVE) && !is_stored;
        let compressed = is_archive || COMPRESSED.iter().any(|magic| start.starts_with(magic));
        if compressed && len >= LONG { Self::Low } else { Self::Full }
    }
}

/// The search for repetitions over long distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongMatches {
    Off,
    /// Repetitions of any length that zstd takes.
    On,
    /// Long ones, on one thread: for content that is nearly the same as other content before it.
    NearCopies,
}

pub(super) struct FrameSettings {
    pub level: i32,
    pub window_log: u32,
    pub long: LongMatches,
    /// Number of threads, at least one.
    pub workers: u32,
    pub size: u64,
}

pub(super) struct FrameEncoder<W> {
    context: CCtx<'static>,
    idle: Contexts,
    sink: W,
    output: Vec<u8>,
    level: i32,
    effort: Effort,
}

impl<W: Write> FrameEncoder<W> {
    /// Begins a frame, with an idle context if there is one.
    pub fn new(sink: W, settings: &FrameSettings, idle: Contexts) -> io::Result<Self> {
        let waiting = idle.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut context = match waiting {
            Some(context) => context,
            None => CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?,
        };
        let FrameSettings { level, window_log, long, workers, size } = *settings;
        // Zero lets zstd choose.
        let rate = if level < OPTIMAL { LDM_HASH_RATE_LOG } else { 0 };
        let (shortest, workers) = match long {
            // A worker forgets what its predecessors found, which doubles the size of nearly equal files.
            LongMatches::NearCopies => (COPY_LEN, 0),
            LongMatches::Off | LongMatches::On => (0, workers),
        };
        for parameter in [
            CParameter::CompressionLevel(level),
            CParameter::WindowLog(window_log),
            CParameter::EnableLongDistanceMatching(long != LongMatches::Off),
            CParameter::LdmHashRateLog(rate),
            CParameter::LdmMinMatch(shortest),
            CParameter::ChecksumFlag(true),
            CParameter::NbWorkers(workers),
        ] {
            zstd_result(context.set_parameter(parameter))?;
        }
        zstd_result(context.set_pledged_src_size(Some(size)))?;
        let output = Vec::with_capacity(OUTPUT);
        let mut encoder = Self { context, idle, sink, output, level, effort: Effort::Full };
        // Begins the frame, so that only the level of its jobs changes later.
        encoder.run(&[], ZSTD_EndDirective::ZSTD_e_continue)?;
        Ok(encoder)
    }

    pub fn set_effort(&mut self, effort: Effort) -> io::Result<()> {
        if effort == self.effort {
            return Ok(());
        }
        self.run(&[], ZSTD_EndDirective::ZSTD_e_flush)?;
        self.effort = effort;
        let (level, hash_log) = match effort {
            Effort::Full => (self.level, LEVELS_HASH_LOG),
            Effort::Low => (LOW, LOW_HASH_LOG),
        };
        zstd_result(self.context.set_parameter(CParameter::CompressionLevel(level)))?;
        zstd_result(self.context.set_parameter(CParameter::HashLog(hash_log))).map(drop)
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.run(&[], ZSTD_EndDirective::ZSTD_e_end)?;
        zstd_result(self.context.reset(ResetDirective::SessionAndParameters))?;
        self.idle.0.lock().unwrap_or_else(PoisonError::into_inner).push(self.context);
        Ok(self.sink)
    }

    /// Passes `bytes` on and writes the available output, all of it when the frame is flushed or ended.
    fn run(&mut self, bytes: &[u8], directive: ZSTD_EndDirective) -> io::Result<()> {
        let mut input = InBuffer::around(bytes);
        let goes_on = directive == ZSTD_EndDirective::ZSTD_e_continue;
        loop {
            self.output.clear();
            let before = input.pos();
            let mut output = OutBuffer::around(&mut self.output);
            let left =
                zstd_result(self.context.compress_stream2(&mut output, &mut input, directive))?;
            self.sink.write_all(&self.output)?;
            if input.pos() == bytes.len() && (goes_on || left == 0) {
                return Ok(());
            }
            // Between the end of a job and the end of its thread, zstd returns at once. Without a yield, this loop
            // could keep that thread off its processor.
            if self.output.is_empty() && input.pos() == before {
                thread::yield_now();
            }
        }
    }
}

impl<W: Write> Write for FrameEncoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.run(bytes, ZSTD_EndDirective::ZSTD_e_continue)?;
        Ok(bytes.len())
    }

    /// Does nothing: a flush would end a job and change the bytes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The result of a call of zstd, or an error with zstd's text.
pub(super) fn zstd_result(result: Result<usize, usize>) -> io::Result<usize> {
    result.map_err(|code| io::Error::other(get_error_name(code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(seed: u64) -> impl Iterator<Item = u8> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        })
    }

    /// Parts: text, the same noise twice, text.
    fn parts() -> [(Effort, Vec<u8>); 4] {
        let noise: Vec<u8> = numbers(1).take(2 << 20).collect();
        [
            (Effort::Full, text(2)),
            (Effort::Low, noise.clone()),
            (Effort::Low, noise),
            (Effort::Full, text(3)),
        ]
    }

    fn text(seed: u64) -> Vec<u8> {
        numbers(seed).take(3 << 20).map(|byte| byte & 7).collect()
    }

    /// Pieces from a small stock in random order, and the same with a byte changed in every 8 KiB.
    fn copies() -> [(Effort, Vec<u8>); 2] {
        const PIECE: usize = 400;
        let stock: Vec<u8> = numbers(4).take(256 * PIECE).collect();
        let mut random = numbers(5);
        let mut one: Vec<u8> = Vec::new();
        while one.len() < 8 << 20 {
            let start = usize::from(random.next().unwrap()) * PIECE;
            one.extend(&stock[start..start + PIECE]);
            one.extend(random.by_ref().take(4));
        }
        let mut other = one.clone();
        for part in other.chunks_mut(8 << 10) {
            part[0] ^= 1;
        }
        [(Effort::Full, one), (Effort::Full, other)]
    }

    fn frame(
        parts: &[(Effort, Vec<u8>)],
        long: LongMatches,
        (workers, chunk): (u32, usize),
        idle: &Contexts,
    ) -> Vec<u8> {
        let size = parts.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let settings = FrameSettings { level: 9, window_log: 27, long, workers, size };
        let mut encoder = FrameEncoder::new(Vec::new(), &settings, idle.clone()).unwrap();
        for (effort, bytes) in parts {
            encoder.set_effort(*effort).unwrap();
            for bytes in bytes.chunks(chunk) {
                encoder.write_all(bytes).unwrap();
            }
        }
        encoder.finish().unwrap()
    }

    #[test]
    fn changes_of_effort_give_one_frame_whatever_the_threads() {
        let parts = parts();
        let whole: Vec<u8> = parts.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        // The second frame and later ones reuse the context of the first.
        let idle = Contexts::default();
        for long in [LongMatches::On, LongMatches::NearCopies] {
            let expected = frame(&parts, long, (1, 1 << 20), &idle);
            for way in [(1, 99_999), (2, 1 << 20), (3, 77_777)] {
                assert!(frame(&parts, long, way, &idle) == expected, "{long:?}, {way:?}");
                assert_eq!(idle.0.lock().unwrap().len(), 1);
            }
            let size = zstd::zstd_safe::get_frame_content_size(&expected).unwrap();
            assert_eq!(size, Some(whole.len() as u64));
            let len = zstd::zstd_safe::find_frame_compressed_size(&expected).unwrap();
            assert_eq!(len, expected.len(), "a single frame");
            assert!(zstd::decode_all(&expected[..]).unwrap() == whole);
            // The second copy of the noise is still found.
            assert!(expected.len() < (6 << 20) / 2 + (2 << 20) + (1 << 16), "{}", expected.len());
        }
    }

    #[test]
    fn copies_with_scattered_changes_cost_little() {
        let (parts, idle) = (copies(), Contexts::default());
        let [[usual, usual_half], [small, small_half]] = [LongMatches::On, LongMatches::NearCopies]
            .map(|long| [&parts[..], &parts[..1]].map(|it| frame(it, long, (1, 1 << 20), &idle)));
        assert!(small.len() < usual.len(), "{} and {}", small.len(), usual.len());
        let of_copy = [(usual, usual_half), (small.clone(), small_half)]
            .map(|(whole, half)| whole.len() - half.len());
        assert!(of_copy[1] * 8 < of_copy[0], "bytes for the copy: {of_copy:?}");
        for way in [(2, 99_999), (3, 1 << 20)] {
            assert!(frame(&parts, LongMatches::NearCopies, way, &idle) == small, "{way:?}");
        }
        let whole = parts.map(|(_, bytes)| bytes).concat();
        assert!(zstd::decode_all(&small[..]).unwrap() == whole);
    }

    #[test]
    fn content_is_told_by_its_first_bytes() {
        assert_eq!(Effort::of(b"KPAK\x01\0\0\0", LONG), Effort::Low);
        for code in CODE_STARTS {
            let stored = [&b"KPAK\x01\0\0\0"[..], &[0; 56], code].concat();
            assert_eq!(Effort::of(&stored, LONG), Effort::Full);
        }
        assert_eq!(Effort::of(b"KPAK\x01\0\0\0", LONG - 1), Effort::Full);
        assert_eq!(Effort::of(b"\x7fELF\x02\x01\x01\0", LONG), Effort::Full);
        assert_eq!(Effort::of(b"", 0), Effort::Full);
    }
}
