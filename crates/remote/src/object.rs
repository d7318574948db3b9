//! Objects: their size and entity tag, and their bytes.
//!
//! A reader requests several ranges in parallel, one thread each, which buffers its bytes until they are needed: as
//! many as the budget has memory for, and at least one. A server without ranges gets one request for the whole object.
//! If that is cut off, the next attempt skips the bytes received before.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::{Budget, Lease, MemoryUse, interrupt};
use rusty_s3::S3Action;
use ureq::Body;
use ureq::http::{HeaderMap, Response, StatusCode};
use url::Url;

use crate::address::Address;
use crate::client::{AttemptError, Remote, S3Bucket, broken_off, changed, unknown_length};

/// The prefix of weak entity tags, which `If-Match` ignores.
const WEAK: &str = "W/";

/// Bytes of a range that one request asks for.
pub(crate) const CHUNK: u64 = 8 << 20;

/// Parallel requests for one object.
const REQUESTS: usize = 4;

const PIECE: usize = 256 << 10;

/// Time for which a signed URL is valid, in seconds.
pub(crate) const URL_VALIDITY: Duration = Duration::from_secs(3600);

pub struct Object {
    remote: Arc<Remote>,
    place: ObjectLocation,
    address: Address,
    path: PathBuf,
    facts: OnceLock<ObjectFacts>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

pub(crate) enum ObjectLocation {
    InBucket(Arc<S3Bucket>, String),
    Web(Url),
}

/// Facts about an object when it was first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectFacts {
    pub size: u64,
    pub tag: Option<String>,
    pub ranges: bool,
}

impl ObjectFacts {
    /// Whether both can be of one version of an object. Empty responses have no entity tag, and some servers send tags
    /// only in listings.
    fn agree(&self, other: &Self) -> bool {
        let tags = self.tag.as_ref().zip(other.tag.as_ref());
        let is_weak = |tag: &str| tag.starts_with(WEAK);
        let agree =
            |(one, other): (&String, &String)| one == other || is_weak(one) != is_weak(other);
        self.size == other.size && tags.is_none_or(agree)
    }
}

impl Object {
    pub(crate) fn new(
        remote: &Arc<Remote>,
        place: ObjectLocation,
        address: Address,
        facts: Option<ObjectFacts>,
    ) -> Self {
        let path = PathBuf::from(address.to_string());
        let facts = facts.map_or_else(OnceLock::new, OnceLock::from);
        Self { remote: Arc::clone(remote), place, address, path, facts }
    }

    pub fn at(remote: &Arc<Remote>, address: &Address) -> Result<Self> {
        let place = match address {
            Address::S3 { bucket, key } => {
                ObjectLocation::InBucket(Arc::new(remote.bucket(bucket)?), key.clone())
            }
            Address::Web(url) => ObjectLocation::Web(url.clone()),
        };
        Ok(Self::new(remote, place, address.clone(), None))
    }

    pub fn name(&self) -> String {
        self.address.name()
    }

    /// Its address, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of bytes, from the listing or from the server.
    pub fn size(&self) -> Result<u64> {
        Ok(self.facts()?.size)
    }

    /// A text that identifies the version of the object.
    pub fn version(&self) -> Result<String> {
        let ObjectFacts { size, tag, .. } = self.facts()?;
        Ok(format!("{size} {}", tag.as_deref().unwrap_or_default()))
    }

    pub(crate) fn known(&self) -> Option<&ObjectFacts> {
        self.facts.get()
    }

    fn facts(&self) -> Result<&ObjectFacts> {
        match self.facts.get() {
            Some(facts) => Ok(facts),
            None => {
                let asked = self.ask()?;
                Ok(self.facts.get_or_init(|| asked))
            }
        }
    }

    /// Requests its size and entity tag by a GET of the first byte, because signed URLs are valid for one method.
    fn ask(&self) -> Result<ObjectFacts> {
        let attempt = || {
            let response = self.request(&[("range", "bytes=0-0".to_owned())])?;
            if response.status() == StatusCode::RANGE_NOT_SATISFIABLE
                && range_of(response.headers()).is_none_or(|(_, size)| size == 0)
            {
                return Ok(ObjectFacts { size: 0, tag: None, ranges: true });
            }
            let response = self.remote.accept(response, self.bucket())?;
            let range = range_of(response.headers());
            let (ranges, is_whole) = (range.is_some(), response.status() == StatusCode::OK);
            let length = || length_of(&response).filter(|_| is_whole);
            let size = range.map(|(_, size)| size).or_else(length).ok_or_else(unknown_length)?;
            Ok(ObjectFacts { size, tag: tag_of(response.headers()), ranges })
        };
        self.remote.with_retries(attempt, || 0).map_err(|error| error.file(&self.path))
    }

    /// Fails if the object changed since it was first seen.
    pub fn recheck(&self) -> Result<()> {
        match self.facts.get() {
            Some(facts) if !self.ask()?.agree(facts) => {
                Err(changed("it has another size or entity tag").file(&self.path))
            }
            _ => Ok(()),
        }
    }

    pub fn read_small(&self, limit: u64) -> Result<Vec<u8>> {
        let size = self.size()?;
        if size > limit {
            let message = format!("has {size} bytes, more than {limit}");
            return Err(Error::new(Kind::Limit, message).file(&self.path));
        }
        let mut bytes = Vec::new();
        let read = stream_range(self, 0..size, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        });
        read.map(|()| bytes)
    }

    pub fn reader(self: &Arc<Self>, from: u64, budget: &Budget) -> Result<ObjectReader> {
        let &ObjectFacts { size, ranges, .. } = self.facts()?;
        let (object, budget, pending) = (Arc::clone(self), budget.clone(), VecDeque::new());
        let chunk = if ranges { CHUNK } else { u64::MAX };
        Ok(ObjectReader {
            object,
            budget,
            next: from,
            size,
            chunk,
            pending,
            piece: Vec::new(),
            at: 0,
        })
    }

    fn bucket(&self) -> Option<&Arc<S3Bucket>> {
        match &self.place {
            ObjectLocation::InBucket(bucket, _) => Some(bucket),
            ObjectLocation::Web(_) => None,
        }
    }

    fn request(&self, headers: &[(&str, String)]) -> Result<Response<Body>, AttemptError> {
        match &self.place {
            ObjectLocation::InBucket(bucket, key) => {
                let url =
                    bucket.url(|bucket, keys| bucket.get_object(keys, key).sign(URL_VALIDITY));
                self.remote.get(&url, headers, false)
            }
            ObjectLocation::Web(url) => self.remote.get(url, headers, true),
        }
    }

    /// Requests `range` of the bytes. The response may begin earlier, at the returned offset.
    fn open(
        &self,
        range: &Range<u64>,
        facts: &ObjectFacts,
    ) -> Result<(Response<Body>, u64), AttemptError> {
        let mut headers = Vec::new();
        if *range != (0..facts.size) {
            headers.push(("range", format!("bytes={}-{}", range.start, range.end - 1)));
        }
        if let Some(tag) = facts.tag.as_ref().filter(|tag| !tag.starts_with(WEAK)) {
            headers.push(("if-match", format!("\"{tag}\"")));
        }
        let response = self.remote.accept(self.request(&headers)?, self.bucket())?;
        let found = response.headers();
        // Some servers send the range with 200.
        let (start, size) = match range_of(found) {
            Some((start, size)) if start <= range.start => (start, Some(size)),
            None if response.status() == StatusCode::OK => (0, length_of(&response)),
            _ => {
                let message = "the server returned another range than requested";
                return Err(Error::new(Kind::Io, message).into());
            }
        };
        let now =
            ObjectFacts { size: size.unwrap_or(facts.size), tag: tag_of(found), ranges: true };
        if now.size != facts.size {
            return Err(changed(&format!("it had {} bytes", facts.size)).into());
        }
        if !now.agree(facts) {
            return Err(changed("it has another entity tag").into());
        }
        Ok((response, start))
    }
}

/// The start and the size of the whole in the header `Content-Range: bytes 0-0/123`, or `bytes */0`.
fn range_of(headers: &HeaderMap) -> Option<(u64, u64)> {
    let text = headers.get("content-range")?.to_str().ok()?.strip_prefix("bytes ")?;
    let (range, size) = text.split_once('/')?;
    let start = if range == "*" { "0" } else { range.split_once('-')?.0 };
    Some((start.parse().ok()?, size.parse().ok()?))
}

/// The length of the body. The client does not know that of an empty one.
fn length_of(response: &Response<Body>) -> Option<u64> {
    let is_empty = response.headers().get("content-length").is_some_and(|it| it == "0");
    response.body().content_length().or(is_empty.then_some(0))
}

/// The entity tag without its quotes, which some listings omit; or a weak tag made of the modification time.
fn tag_of(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name)?.to_str().ok();
    let date = || text("last-modified").map(|date| format!("{WEAK}{date}"));
    text("etag").map(|tag| tag.trim_matches('"').to_owned()).or_else(date)
}

/// Passes `range` of the bytes of `object` to `pass`, in order. Resumes responses that are cut off.
fn stream_range(
    object: &Object,
    range: Range<u64>,
    mut pass: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let facts = object.facts()?;
    let at = std::cell::Cell::new(range.start);
    let mut buffer = vec![0; PIECE];
    let mut attempt = || {
        if at.get() == range.end {
            return Ok(());
        }
        let (response, mut position) = object.open(&(at.get()..range.end), facts)?;
        let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
        let mut watch = (Instant::now(), position);
        while position < range.end {
            interrupt::check()?;
            let room = usize::try_from(range.end - position).unwrap_or(PIECE).min(PIECE);
            let len = body.read(&mut buffer[..room]).map_err(broken_off)?;
            if len == 0 {
                return Err(broken_off(io::ErrorKind::UnexpectedEof.into()));
            }
            let skip = at.get().saturating_sub(position).min(len as u64);
            position += len as u64;
            if let Some(piece) =
                buffer.get(usize::try_from(skip).unwrap_or(len)..len).filter(|it| !it.is_empty())
            {
                pass(piece)?;
                at.set(position);
            }
            object.remote.refuse_slow(&mut watch, position)?;
        }
        // A connection is reused only if the body was read to its end.
        if body.read(&mut [0]).map_err(broken_off)? > 0 && range.end == facts.size {
            return Err(changed(&format!("it has more than {} bytes", facts.size)).into());
        }
        Ok(())
    };
    let read = object.remote.with_retries(&mut attempt, || at.get());
    read.map_err(|error| error.file(&object.path).offset(at.get()))
}

/// A range that a thread is reading.
struct PendingRange {
    pieces: Receiver<Result<Vec<u8>>>,
    /// Bytes that are still missing.
    left: u64,
    _memory: Option<Lease>,
}

pub struct ObjectReader {
    object: Arc<Object>,
    budget: Budget,
    /// The first byte that no request asks for yet.
    next: u64,
    size: u64,
    chunk: u64,
    pending: VecDeque<PendingRange>,
    piece: Vec<u8>,
    at: usize,
}

impl ObjectReader {
    /// Requests further ranges as long as there is memory for them.
    fn ask(&mut self) -> Result<()> {
        while self.next < self.size && self.pending.len() < REQUESTS {
            let memory = self.budget.try_draw(MemoryUse::HeldBytes, CHUNK);
            if memory.is_none() && !self.pending.is_empty() {
                break;
            }
            let range = self.next..self.size.min(self.next.saturating_add(self.chunk));
            let room = usize::try_from(CHUNK).unwrap_or(PIECE) / PIECE;
            let (sender, pieces) = sync_channel(room + 1);
            let (object, end, left) =
                (Arc::clone(&self.object), range.end, range.end - range.start);
            let work = move || send(&object, range, &sender);
            let started = thread::Builder::new().name("object".into()).spawn(work);
            match started {
                Ok(_) => self.pending.push_back(PendingRange { pieces, left, _memory: memory }),
                // Read the requested ranges first.
                Err(_) if !self.pending.is_empty() => break,
                Err(error) => return Err(Error::thread_start_failure(error)),
            }
            self.next = end;
        }
        Ok(())
    }

    /// Takes the next piece; leaves an empty one at the end.
    fn advance(&mut self) -> Result<()> {
        (self.piece, self.at) = (Vec::new(), 0);
        loop {
            self.ask()?;
            let Some(first) = self.pending.front_mut() else { return Ok(()) };
            match first.pieces.recv_timeout(Duration::from_millis(100)) {
                Ok(piece) => {
                    self.piece = piece?;
                    first.left -= self.piece.len() as u64;
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => interrupt::check()?,
                Err(RecvTimeoutError::Disconnected) if first.left > 0 => {
                    return Err(Error::bug(
                        "a range is read on after an error, or its thread panicked",
                    ));
                }
                Err(RecvTimeoutError::Disconnected) => drop(self.pending.pop_front()),
            }
        }
    }
}

/// Sends the bytes of a range as pieces, and the error that ended it.
fn send(object: &Object, range: Range<u64>, pieces: &SyncSender<Result<Vec<u8>>>) {
    let mut held = Vec::with_capacity(PIECE);
    let read = stream_range(object, range, |bytes| {
        held.extend_from_slice(bytes);
        if held.len() < PIECE {
            return Ok(());
        }
        let full = std::mem::replace(&mut held, Vec::with_capacity(PIECE));
        pieces.send(Ok(full)).map_err(|_| Error::new(Kind::Interrupted, "the reader is gone"))
    });
    // Fails if the reader is gone.
    let _ = match read {
        Ok(()) if held.is_empty() => Ok(()),
        read => pieces.send(read.map(|()| held)),
    };
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = self.fill_buf()?;
        let len = piece.len().min(buffer.len());
        buffer[..len].copy_from_slice(&piece[..len]);
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for ObjectReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.piece.len() {
            self.advance()?;
        }
        Ok(&self.piece[self.at..])
    }

    fn consume(&mut self, len: usize) {
        self.at += len;
    }
}
