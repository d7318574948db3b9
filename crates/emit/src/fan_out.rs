//! Reads every file once for all writers.
//!
//! The reading thread digests each window and sends it, shared, to a bounded channel per writer, small files
//! in batches. A slow writer blocks the reader, and so the other writer: at most [`DEPTH`] batches per writer wait in
//! memory, each of a window or less. When a writer fails, its channel closes and the reader stops; when the reader
//! fails, the channels close without the final message and the writers stop without finishing. The messages of a small
//! package all fit into the channels: its entries are read and then written on one thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use md5::Md5;
use rockpack_archive::payload::{FileDigests, Finished, PayloadWriter};
use rockpack_core::compression::Effort;
use rockpack_core::content::{Content, WINDOW};
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_core::tree::Node;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use super::EmitOptions;
use super::reuse::{CachedDigests, FirstReading, PrecomputedDigests};
use rockpack_files::cache::Cache;
use rockpack_package::{Format, PackageEntry};
use rockpack_report::{Progress, Stage};

/// Batches that may wait for a writer; most are a window.
const DEPTH: usize = 8;

/// Messages and bytes of a batch. Waking a writer for each of very many small files would cost more than
/// writing them.
const BATCH_LEN: usize = 1024;
const BATCH_BYTES: usize = 256 << 10;

pub(super) struct Sink {
    pub format: Format,
    pub file_name: String,
    pub writer: Box<dyn PayloadWriter + Send>,
}

#[derive(Clone)]
enum Message {
    Begin(Effort),
    Data(Arc<Vec<u8>>),
    End(Option<FileDigests>),
    Finish,
}

pub(super) struct Read {
    /// Digests of each entry; `None` for entries that are not files. If nothing was read, also for files that
    /// no payload of the cache has.
    pub digests: Vec<Option<FileDigests>>,
    pub finished: Vec<(Format, Finished)>,
}

/// Reads `entries` once. `precomputed` are their digests from the first reading and the cache; if the cache had every package,
/// nothing is read.
pub(super) fn fan_out(
    entries: &[PackageEntry<Content>],
    precomputed: Option<PrecomputedDigests>,
    sinks: Vec<Sink>,
    options: &EmitOptions<'_>,
) -> Result<Read> {
    let files = entries.iter().filter_map(|entry| entry.node.data());
    let bytes: u64 = files.map(Content::len).sum();
    let precomputed = match precomputed {
        Some(PrecomputedDigests { digests, .. }) if sinks.is_empty() => {
            options.progress.advance(Stage::Emit, bytes);
            return Ok(Read { digests, finished: Vec::new() });
        }
        precomputed => precomputed,
    };
    let (mut channels, mut writers) = (Vec::new(), Vec::new());
    for sink in sinks {
        let (sender, receiver) = sync_channel(DEPTH);
        channels.push(Channel { format: sink.format, sender, batch: Vec::new(), bytes: 0 });
        writers.push(move || drain(sink, &receiver));
    }
    let EmitOptions { progress, sha1, cache, .. } = *options;
    let reader = EntryReader { channels, windows: SharedWindows::default(), sha1, cache, progress };
    // All messages fit into a channel.
    if entries.len() <= BATCH_LEN && bytes <= SMALL_BYTES as u64 {
        // Other threads would cost more than they save.
        let read = reader.read_all(entries, precomputed.as_ref());
        return outcome(read, writers.into_iter().map(|write| write()));
    }
    thread::scope(|scope| {
        let threads = writers.into_iter().map(|write| {
            thread::Builder::new().spawn_scoped(scope, write).map_err(Error::thread_start_failure)
        });
        let threads = threads.collect::<Result<Vec<_>>>()?;
        let read = reader.read_all(entries, precomputed.as_ref());
        let written = threads
            .into_iter()
            .map(|writer| writer.join().unwrap_or_else(|_| Err(Error::bug("a writer panicked"))));
        outcome(read, written)
    })
}

/// Maximum size in bytes of the files of a package that is written on one thread.
const SMALL_BYTES: usize = 32 << 10;

/// A small file is one message. Three messages for each of [`BATCH_LEN`] entries, and the last, are four
/// batches.
const _: () = assert!(SMALL_BYTES < BATCH_BYTES && SMALL_BYTES <= WINDOW && DEPTH >= 4);

fn outcome(
    read: Result<Vec<Option<FileDigests>>>,
    written: impl Iterator<Item = Result<Option<(Format, Finished)>>>,
) -> Result<Read> {
    // If the reader found a closed channel, the writer's error is the cause.
    let finished = Faults::all(written)?.into_iter().flatten().collect();
    Ok(Read { digests: read?, finished })
}

struct Channel {
    format: Format,
    sender: SyncSender<Vec<Message>>,
    /// Messages that are still to be sent, and the bytes of content in them.
    batch: Vec<Message>,
    bytes: usize,
}

impl Channel {
    fn add(&mut self, message: Message) -> Result<()> {
        if let Message::Data(window) = &message {
            if window.len() >= BATCH_BYTES {
                self.send()?;
            }
            self.bytes += window.len();
        }
        self.batch.push(message);
        if self.batch.len() < BATCH_LEN && self.bytes < BATCH_BYTES { Ok(()) } else { self.send() }
    }

    fn send(&mut self) -> Result<()> {
        self.bytes = 0;
        let sent = self.sender.send(std::mem::take(&mut self.batch));
        // Never shown: the writer that closed the channel has the real error.
        sent.map_err(|_| Error::bug("a package writer stopped without an error"))
    }
}

/// Writes the messages as they arrive. Returns `None` if the reader failed, which reports its own error.
fn drain(sink: Sink, receiver: &Receiver<Vec<Message>>) -> Result<Option<(Format, Finished)>> {
    let Sink { file_name, mut writer, format } = sink;
    for message in receiver.iter().flatten() {
        let written = match message {
            Message::Begin(effort) => writer.begin(effort),
            Message::Data(bytes) => writer.data(&bytes),
            Message::End(digests) => writer.end(digests),
            Message::Finish => {
                return Ok(Some((format, writer.finish().map_err(|e| e.file(&file_name))?)));
            }
        };
        written.map_err(|e| e.file(&file_name))?;
    }
    Ok(None)
}

/// Windows that are reused when all writers are done with them: new memory for each would cost a page fault per 4 KiB
/// of payload. Small files, which wait in batches, get windows of their own size.
#[derive(Default)]
struct SharedWindows {
    /// Windows that were shared with writers, oldest first.
    shared: VecDeque<Arc<Vec<u8>>>,
}

impl SharedWindows {
    /// A window of `len` bytes with arbitrary content.
    fn take(&mut self, len: usize) -> Vec<u8> {
        if len < BATCH_BYTES {
            return vec![0; len];
        }
        // Writers process windows in order, so the oldest is free first.
        let mut window = match self.shared.pop_front().map(Arc::try_unwrap) {
            Some(Ok(window)) => window,
            Some(Err(busy)) => {
                self.shared.push_front(busy);
                Vec::new()
            }
            None => Vec::new(),
        };
        window.resize(len, 0);
        window
    }

    fn share(&mut self, window: Vec<u8>) -> Arc<Vec<u8>> {
        let is_reused = window.len() >= BATCH_BYTES;
        let window = Arc::new(window);
        if is_reused {
            self.shared.push_back(Arc::clone(&window));
        }
        window
    }
}

/// Reads the entries of a package, and sends each to the writers of the formats that have it.
struct EntryReader<'a> {
    channels: Vec<Channel>,
    windows: SharedWindows,
    sha1: bool,
    cache: Option<&'a Cache>,
    progress: &'a dyn Progress,
}

impl EntryReader<'_> {
    fn read_all(
        mut self,
        entries: &[PackageEntry<Content>],
        precomputed: Option<&PrecomputedDigests>,
    ) -> Result<Vec<Option<FileDigests>>> {
        let mut digests = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let known = precomputed.and_then(|precomputed| *precomputed.digests.get(index)?);
            let content =
                precomputed.and_then(|precomputed| precomputed.contents.get(index)?.as_ref());
            let read = self.read(entry, known, content);
            digests.push(read.context(|| format!("packing /{}", entry.path))?);
        }
        for channel in &mut self.channels {
            channel.add(Message::Finish)?;
            channel.send()?;
        }
        Ok(digests)
    }

    fn read(
        &mut self,
        entry: &PackageEntry<Content>,
        known: Option<FileDigests>,
        precomputed: Option<&FirstReading>,
    ) -> Result<Option<FileDigests>> {
        let Node::File { data, .. } = &entry.node else {
            self.send(entry, Message::Begin(Effort::Full))?;
            self.send(entry, Message::End(None))?;
            return Ok(None);
        };
        self.send(entry, Message::Begin(effort(data)?))?;
        let taken = self.channels.iter().any(|channel| entry.formats.has(channel.format));
        if let (Some(known), false) = (known, taken) {
            self.progress.advance(Stage::Emit, data.len());
            return Ok(Some(known));
        }
        let digests = self.content(entry, data, precomputed)?;
        self.send(entry, Message::End(Some(digests)))?;
        Ok(Some(digests))
    }

    fn content(
        &mut self,
        entry: &PackageEntry<Content>,
        content: &Content,
        precomputed: Option<&FirstReading>,
    ) -> Result<FileDigests> {
        let mut reader = content.reader();
        let debs = self.channels.iter().any(|channel| channel.format == Format::Deb);
        let sha1 = self.sha1 && precomputed.is_none();
        let md5 = debs && entry.formats.has(Format::Deb);
        let kept = self.cache.zip(precomputed);
        let kept = kept
            .and_then(|(cache, precomputed)| CachedDigests::of(cache, precomputed, content.len()));
        let known = kept.as_ref().and_then(CachedDigests::find);
        let mut hashers = known.is_none().then(|| FileHashers::new(md5, sha1));
        let mut again = precomputed.map(|precomputed| (precomputed, blake3::Hasher::new()));
        let mut left = content.len();
        while left > 0 {
            let len = usize::try_from(left).map_or(WINDOW, |left| left.min(WINDOW));
            let mut window = self.windows.take(len);
            let read = reader.read_window(&mut window)?;
            if read != len {
                return Err(Error::bug("content ends before its length"));
            }
            if let Some(hashers) = &mut hashers {
                hashers.update(&window);
            }
            if let Some((_, hasher)) = &mut again {
                hasher.update(&window);
            }
            let window = self.windows.share(window);
            self.send(entry, Message::Data(window))?;
            self.progress.advance(Stage::Emit, len as u64);
            left -= len as u64;
        }
        let computed = hashers.map(FileHashers::finish);
        let digests = known.or(computed).ok_or_else(|| Error::bug("a file has no digests"))?;
        let Some((precomputed, hasher)) = again else { return Ok(digests) };
        // The cache keeps digests and the compressed payload under the digest of the earlier read.
        if hasher.finalize() != precomputed.digest {
            return Err(changed(content));
        }
        if let (Some(kept), Some(computed)) = (kept, &computed) {
            kept.keep(computed);
        }
        Ok(FileDigests { sha1: precomputed.sha1, ..digests })
    }

    fn send(&mut self, entry: &PackageEntry<Content>, message: Message) -> Result<()> {
        for channel in &mut self.channels {
            if entry.formats.has(channel.format) {
                channel.add(message.clone())?;
            }
        }
        Ok(())
    }
}

fn effort(content: &Content) -> Result<Effort> {
    let mut start = [0; Effort::START];
    let len = usize::try_from(content.len()).map_or(start.len(), |len| len.min(start.len()));
    content.read_at(0, &mut start[..len])?;
    Ok(Effort::of(&start[..len], content.len()))
}

struct FileHashers {
    sha256: Sha256,
    md5: Option<Md5>,
    sha1: Option<Sha1>,
}

impl FileHashers {
    fn new(md5: bool, sha1: bool) -> Self {
        Self { sha256: Sha256::new(), md5: md5.then(Md5::new), sha1: sha1.then(Sha1::new) }
    }

    /// Interleaves the digests block by block, so the CPU overlaps their dependency chains: two digests take
    /// little longer than MD5 alone.
    fn update(&mut self, bytes: &[u8]) {
        if self.md5.is_none() && self.sha1.is_none() {
            return self.sha256.update(bytes);
        }
        // MD5, SHA-1 and SHA-256 have blocks of 64 bytes.
        for block in bytes.chunks(64) {
            if let Some(md5) = &mut self.md5 {
                md5.update(block);
            }
            if let Some(sha1) = &mut self.sha1 {
                sha1.update(block);
            }
            self.sha256.update(block);
        }
    }

    fn finish(self) -> FileDigests {
        let md5 = self.md5.map(|md5| md5.finalize().into());
        let sha1 = self.sha1.map(|sha1| sha1.finalize().into());
        FileDigests { sha256: self.sha256.finalize().into(), md5, sha1 }
    }
}

/// The error for a file that changed since its first reading.
pub(super) fn changed(content: &Content) -> Error {
    let message = "changed between two readings during the run";
    let error = Error::new(Kind::Changed, message).at(&content.place(0));
    error.hint("run again when nothing else writes to the artifacts")
}
