//! Objects and listings of a server that answers as each test wants it to.

#![allow(clippy::cast_possible_truncation, reason = "what tests send is small")]

mod copies;
mod faults;
mod listings;
mod objects;
mod pages;

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::Duration;

use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::Budget;

use crate::{Address, Object, Remote, RetryPolicy};

const TAG: &str = "\"one\"";

/// Attempts of both remotes, and the bytes that have to come for a request to go on.
const ATTEMPTS: u32 = 3;
const PROGRESS: usize = 1000;

/// Waits long for bytes, and not at all for the next attempt.
static PATIENT: LazyLock<Arc<Remote>> = LazyLock::new(|| remote(Duration::from_secs(20)));

/// Takes servers for silent after a quarter of a second.
static HASTY: LazyLock<Arc<Remote>> = LazyLock::new(|| remote(Duration::from_millis(250)));

fn remote(timeout: Duration) -> Arc<Remote> {
    let (first_wait, progress) = (Duration::ZERO, PROGRESS as u64);
    Arc::new(Remote::new(RetryPolicy { attempts: ATTEMPTS, first_wait, timeout, progress }))
}

#[derive(Debug, Clone)]
struct Request {
    /// The path and the query.
    target: String,
    /// By names in lower case.
    headers: BTreeMap<String, String>,
    /// Number of requests for the same target before.
    nth: usize,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The first and the last byte that are asked for.
    fn range(&self) -> Option<(u64, u64)> {
        let (first, last) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().unwrap(), last.parse().unwrap()))
    }

    /// The number that the path is.
    fn number(&self) -> usize {
        self.target[1..].parse().unwrap()
    }
}

/// What a server does after an answer.
enum End {
    /// It takes the next request.
    Stay,
    Close,
    /// It sends the same again and again.
    Repeat(Vec<u8>),
    /// It says nothing for a time.
    Wait(Duration),
}

struct Reply {
    head: Vec<u8>,
    body: Vec<u8>,
    /// Time that passes before each so many bytes of the body.
    pace: Option<(usize, Duration)>,
    end: End,
}

impl Reply {
    /// An answer that says its length, unless `headers` do: an empty one leaves it out.
    fn new(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref().to_vec();
        let mut head = format!("HTTP/1.1 {status}\r\n");
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let sized = ["content-length", "transfer-encoding"];
        if !headers.iter().any(|(name, _)| sized.contains(name)) {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        Self { head: head.into_bytes(), body, pace: None, end: End::Stay }
    }

    fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::new("200 OK", &[("etag", TAG)], body)
    }

    /// The same bytes forever, in chunks.
    fn endless(status: &str) -> Self {
        let chunk = [b"10000\r\n".to_vec(), vec![b'x'; 0x10000], b"\r\n".to_vec()].concat();
        Self {
            end: End::Repeat(chunk),
            ..Self::new(status, &[("transfer-encoding", "chunked")], "")
        }
    }

    fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// The first bytes of head and body alone.
    fn cut(mut self, len: usize) -> Self {
        self.body.truncate(len.saturating_sub(self.head.len()));
        self.head.truncate(len);
        Self { end: End::Close, ..self }
    }

    fn cut_body(self, len: usize) -> Self {
        let head = self.head.len();
        self.cut(head + len)
    }

    fn slow(self, bytes: usize, millis: u64) -> Self {
        Self { pace: Some((bytes, Duration::from_millis(millis))), ..self }
    }

    fn send(&self, stream: &mut TcpStream) -> io::Result<()> {
        let Some((bytes, pause)) = self.pace else {
            return stream.write_all(&[&*self.head, &*self.body].concat());
        };
        stream.write_all(&self.head)?;
        for piece in self.body.chunks(bytes) {
            thread::sleep(pause);
            stream.write_all(piece)?;
        }
        Ok(())
    }
}

/// The answer of a server that knows ranges and conditions.
fn ranged(request: &Request, bytes: &[u8], tag: &str) -> Reply {
    if request.header("if-match").is_some_and(|wanted| wanted != tag) {
        return Reply::new("412 Precondition Failed", &[], "");
    }
    let len = bytes.len() as u64;
    let Some((first, last)) = request.range() else {
        return Reply::new("200 OK", &[("etag", tag)], bytes);
    };
    if first >= len {
        let range = format!("bytes */{len}");
        return Reply::new("416 Range Not Satisfiable", &[("content-range", &range)], "");
    }
    let last = last.min(len - 1);
    let range = format!("bytes {first}-{last}/{len}");
    let part = &bytes[usize::try_from(first).unwrap()..=usize::try_from(last).unwrap()];
    Reply::new("206 Partial Content", &[("etag", tag), ("content-range", &range)], part)
}

/// A server on loopback, as long as the test program runs.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    fn new(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let (log, answer) = (Arc::clone(&requests), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                // A client may go at any time.
                thread::spawn(move || drop(talk(stream, &log, &*answer)));
            }
        });
        Self { url, requests }
    }

    /// The requests for a path and a query.
    fn requests(&self, target: &str) -> Vec<Request> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|request| request.target == target).cloned().collect()
    }

    fn address(&self, target: &str) -> Address {
        Address::parse(&format!("{}{target}", self.url)).unwrap()
    }

    fn object_of(&self, remote: &Arc<Remote>, target: &str) -> Arc<Object> {
        Arc::new(Object::at(remote, &self.address(target)).unwrap())
    }

    fn object(&self, target: &str) -> Arc<Object> {
        self.object_of(&PATIENT, target)
    }
}

fn talk(
    mut stream: TcpStream,
    log: &Mutex<Vec<Request>>,
    answer: &impl Fn(&Request) -> Reply,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream.try_clone()?);
    while let Some(mut request) = receive(&mut input)? {
        {
            let mut log = log.lock().unwrap();
            request.nth = log.iter().filter(|before| before.target == request.target).count();
            log.push(request.clone());
        }
        let reply = answer(&request);
        reply.send(&mut stream)?;
        match reply.end {
            End::Stay => {}
            End::Close => return Ok(()),
            End::Repeat(bytes) => loop {
                stream.write_all(&bytes)?;
            },
            End::Wait(time) => thread::sleep(time),
        }
    }
    Ok(())
}

fn receive(input: &mut impl io::BufRead) -> io::Result<Option<Request>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let target = lines[0].split(' ').nth(1).unwrap().to_owned();
    let headers = lines[1..].iter().map(|line| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_ascii_lowercase(), value.trim().to_owned())
    });
    Ok(Some(Request { target, headers: headers.collect(), nth: 0 }))
}

/// Bytes of which no piece is like another.
fn content(len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    let mut number = 0_u64;
    while bytes.len() < len {
        number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

fn read_from(object: &Arc<Object>, from: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = object.reader(from, &Budget::unlimited())?.read_to_end(&mut bytes);
    read.map_err(|error| Error::io(object.path(), "read", error))?;
    Ok(bytes)
}

fn read(object: &Arc<Object>) -> Result<Vec<u8>> {
    read_from(object, 0)
}

/// The error, which is of this kind and has this in its text.
#[track_caller]
fn fails<T>(result: Result<T>, kind: Kind, text: &str) -> Error {
    let error = result.map(drop).unwrap_err();
    let full = error.full_text();
    assert!(error.kind() == kind && full.contains(text), "{:?}: {full}", error.kind());
    error
}

/// The error of an object at `target`, which has its address and this message.
#[track_caller]
fn fails_at<T>(result: Result<T>, kind: Kind, server: &Server, target: &str, text: &str) {
    let error = fails(result, kind, text);
    let place = error.place().file.as_ref().unwrap().display().to_string();
    assert_eq!(place, format!("{}{target}", server.url));
}
