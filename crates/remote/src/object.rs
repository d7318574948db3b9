//! Objects: their size and entity tag, and their bytes.
//!
//! A reader asks for several ranges at once, each by a thread that keeps its bytes until it is its turn: as many as the
//! budget has memory for, and at least one. A server that gives no ranges is asked for the whole once, and where its
//! answer breaks off, what came before is read over.

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
use rockpack_core::run::{Budget, Lease, Use, interrupt};
use rusty_s3::S3Action;
use ureq::Body;
use ureq::http::{HeaderMap, Response, StatusCode};
use url::Url;

use crate::address::Address;
use crate::client::{Failed, Remote, S3Bucket, changed, cut, unknown_length};

/// What entity tags begin with by which a server compares nothing.
const WEAK: &str = "W/";

/// Bytes of a range that one request asks for.
pub(crate) const CHUNK: u64 = 8 << 20;

/// Requests for one object at the same time.
const REQUESTS: usize = 4;

/// Bytes that are passed on at once.
const PIECE: usize = 256 << 10;

/// Time for which a signed URL is valid, in seconds.
pub(crate) const VALID: Duration = Duration::from_secs(3600);

/// An object that was found.
pub struct Object {
    remote: Arc<Remote>,
    place: Place,
    address: Address,
    path: PathBuf,
    facts: OnceLock<Facts>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

pub(crate) enum Place {
    InBucket(Arc<S3Bucket>, String),
    Web(Url),
}

/// What was seen of an object first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub size: u64,
    pub tag: Option<String>,
    /// Whether the server gives ranges of it.
    pub ranges: bool,
}

impl Facts {
    /// Whether both can be of one object. Answers without bytes have no entity tag, and some servers none but in
    /// listings.
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
        place: Place,
        address: Address,
        facts: Option<Facts>,
    ) -> Self {
        let path = PathBuf::from(address.to_string());
        let facts = facts.map_or_else(OnceLock::new, OnceLock::from);
        Self { remote: Arc::clone(remote), place, address, path, facts }
    }

    /// The object at `address`.
    pub fn at(remote: &Arc<Remote>, address: &Address) -> Result<Self> {
        let place = match address {
            Address::S3 { bucket, key } => {
                Place::InBucket(Arc::new(remote.bucket(bucket)?), key.clone())
            }
            Address::Web(url) => Place::Web(url.clone()),
        };
        Ok(Self::new(remote, place, address.clone(), None))
    }

    /// The last part of its address.
    pub fn name(&self) -> String {
        self.address.name()
    }

    /// Its address, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of bytes; asks the server, where no listing told it.
    pub fn size(&self) -> Result<u64> {
        Ok(self.facts()?.size)
    }

    /// A text that is another one when the object was changed.
    pub fn version(&self) -> Result<String> {
        let Facts { size, tag, .. } = self.facts()?;
        Ok(format!("{size} {}", tag.as_deref().unwrap_or_default()))
    }

    pub(crate) fn known(&self) -> Option<&Facts> {
        self.facts.get()
    }

    fn facts(&self) -> Result<&Facts> {
        match self.facts.get() {
            Some(facts) => Ok(facts),
            None => {
                let asked = self.ask()?;
                Ok(self.facts.get_or_init(|| asked))
            }
        }
    }

    /// Asks the server for its size and entity tag: by its first byte, because signatures of URLs are for one method.
    fn ask(&self) -> Result<Facts> {
        let attempt = || {
            let response = self.request(&[("range", "bytes=0-0".to_owned())])?;
            if response.status() == StatusCode::RANGE_NOT_SATISFIABLE
                && range_of(response.headers()).is_none_or(|(_, size)| size == 0)
            {
                return Ok(Facts { size: 0, tag: None, ranges: true });
            }
            let response = self.remote.accept(response, self.bucket())?;
            let range = range_of(response.headers());
            let (ranges, is_whole) = (range.is_some(), response.status() == StatusCode::OK);
            let length = || length_of(&response).filter(|_| is_whole);
            let size = range.map(|(_, size)| size).or_else(length).ok_or_else(unknown_length)?;
            Ok(Facts { size, tag: tag_of(response.headers()), ranges })
        };
        self.remote.patiently(attempt, || 0).map_err(|error| error.file(&self.path))
    }

    /// Fails unless the object is the same as when it was first seen.
    pub fn recheck(&self) -> Result<()> {
        match self.facts.get() {
            Some(facts) if !self.ask()?.agree(facts) => {
                Err(changed("it has another size or entity tag").file(&self.path))
            }
            _ => Ok(()),
        }
    }

    /// All its bytes, unless they are more than `limit`.
    pub fn read_small(&self, limit: u64) -> Result<Vec<u8>> {
        let size = self.size()?;
        if size > limit {
            let message = format!("has {size} bytes, more than {limit}");
            return Err(Error::new(Kind::Limit, message).file(&self.path));
        }
        let mut bytes = Vec::new();
        let read = bytes_of(self, 0..size, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        });
        read.map(|()| bytes)
    }

    /// A reader from byte `from` to the last one.
    pub fn reader(self: &Arc<Self>, from: u64, budget: &Budget) -> Result<ObjectReader> {
        let &Facts { size, ranges, .. } = self.facts()?;
        let (object, budget, ahead) = (Arc::clone(self), budget.clone(), VecDeque::new());
        let chunk = if ranges { CHUNK } else { u64::MAX };
        Ok(ObjectReader {
            object,
            budget,
            next: from,
            size,
            chunk,
            ahead,
            piece: Vec::new(),
            at: 0,
        })
    }

    fn bucket(&self) -> Option<&Arc<S3Bucket>> {
        match &self.place {
            Place::InBucket(bucket, _) => Some(bucket),
            Place::Web(_) => None,
        }
    }

    fn request(&self, headers: &[(&str, String)]) -> Result<Response<Body>, Failed> {
        match &self.place {
            Place::InBucket(bucket, key) => {
                let url = bucket.url(|bucket, keys| bucket.get_object(keys, key).sign(VALID));
                self.remote.get(&url, headers, false)
            }
            Place::Web(url) => self.remote.get(url, headers, true),
        }
    }

    /// Asks for `range` of the bytes. The answer may begin earlier, at the byte that is returned.
    fn open(&self, range: &Range<u64>, facts: &Facts) -> Result<(Response<Body>, u64), Failed> {
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
                let message = "the server gives another range than it was asked for";
                return Err(Error::new(Kind::Io, message).into());
            }
        };
        let now = Facts { size: size.unwrap_or(facts.size), tag: tag_of(found), ranges: true };
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

/// The entity tag without its quotes, which not every listing has; or, as a weak one, the time of the last change.
fn tag_of(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name)?.to_str().ok();
    let date = || text("last-modified").map(|date| format!("{WEAK}{date}"));
    text("etag").map(|tag| tag.trim_matches('"').to_owned()).or_else(date)
}

/// Passes `range` of the bytes of `object` on, in order. An answer that breaks off is continued.
fn bytes_of(
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
            let len = body.read(&mut buffer[..room]).map_err(cut)?;
            if len == 0 {
                return Err(cut(io::ErrorKind::UnexpectedEof.into()));
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
        // Only a body that was read to its end leaves its connection to the next request.
        if body.read(&mut [0]).map_err(cut)? > 0 && range.end == facts.size {
            return Err(changed(&format!("it has more than {} bytes", facts.size)).into());
        }
        Ok(())
    };
    let read = object.remote.patiently(&mut attempt, || at.get());
    read.map_err(|error| error.file(&object.path).offset(at.get()))
}

/// A range that a thread asks for.
struct Ahead {
    pieces: Receiver<Result<Vec<u8>>>,
    /// Bytes that are still to come.
    left: u64,
    _memory: Option<Lease>,
}

/// Reads an object from a byte to its end.
pub struct ObjectReader {
    object: Arc<Object>,
    budget: Budget,
    /// The first byte that no request asks for yet.
    next: u64,
    size: u64,
    /// Bytes that one request asks for.
    chunk: u64,
    ahead: VecDeque<Ahead>,
    piece: Vec<u8>,
    /// The place in the piece.
    at: usize,
}

impl ObjectReader {
    /// Asks for further ranges as long as there is memory for them.
    fn ask(&mut self) -> Result<()> {
        while self.next < self.size && self.ahead.len() < REQUESTS {
            let memory = self.budget.try_draw(Use::Held, CHUNK);
            if memory.is_none() && !self.ahead.is_empty() {
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
                Ok(_) => self.ahead.push_back(Ahead { pieces, left, _memory: memory }),
                // What has been asked for is read first.
                Err(_) if !self.ahead.is_empty() => break,
                Err(error) => return Err(Error::no_thread(error)),
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
            let Some(first) = self.ahead.front_mut() else { return Ok(()) };
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
                Err(RecvTimeoutError::Disconnected) => drop(self.ahead.pop_front()),
            }
        }
    }
}

/// Sends the bytes of a range as pieces, and the error that ended it.
fn send(object: &Object, range: Range<u64>, pieces: &SyncSender<Result<Vec<u8>>>) {
    let mut held = Vec::with_capacity(PIECE);
    let read = bytes_of(object, range, |bytes| {
        held.extend_from_slice(bytes);
        if held.len() < PIECE {
            return Ok(());
        }
        let full = std::mem::replace(&mut held, Vec::with_capacity(PIECE));
        pieces.send(Ok(full)).map_err(|_| Error::new(Kind::Interrupted, "nobody reads it any more"))
    });
    // Nobody hears it if the reader is gone.
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
