//! The bytes of objects: whole ones, cut ones, and other ones than were seen first.

use rockpack_core::run::{Limits, threads};

use super::*;
use crate::object::CHUNK;

const SMALL: usize = 100;

/// Each answer is cut after each number of bytes. It is asked for again; of bytes, only those that did not come.
#[test]
fn an_answer_that_is_cut_anywhere_is_continued() {
    let bytes = content(SMALL);
    for ranges in [true, false] {
        let answer = move |request: &Request, bytes: &[u8]| match ranges {
            true => ranged(request, bytes, TAG),
            false => Reply::ok(bytes),
        };
        for nth in [0, 1] {
            let body = bytes.clone();
            let server = Server::new(move |request| {
                let reply = answer(request, &body);
                if request.nth == nth { reply.cut(request.number()) } else { reply }
            });
            let headers = [("range".to_owned(), "bytes=0-0".to_owned())].into_iter();
            let headers = headers.filter(|_| nth == 0).collect();
            let whole = answer(&Request { target: String::new(), headers, nth }, &bytes);
            // The head alone tells the size.
            let end = if nth == 0 { whole.head.len() } else { whole.len() };
            for len in 0..end {
                let target = format!("/{len}");
                let read = read(&server.object(&target)).unwrap();
                assert!(read == bytes, "{len} bytes of answer {nth}, ranges: {ranges}");
                let requests = server.requests(&target);
                assert_eq!(requests.len(), 3, "{len} bytes of answer {nth}, ranges: {ranges}");
                let came = len.saturating_sub(whole.head.len());
                if nth == 1 && came > 0 {
                    assert_eq!(requests[2].range(), Some((came as u64, SMALL as u64 - 1)));
                }
            }
        }
    }
}

#[test]
fn a_request_goes_on_as_long_as_enough_bytes_come() {
    let bytes = content(10 * PROGRESS);
    let body = bytes.clone();
    let server = Server::new(move |request| {
        let reply = ranged(request, &body, TAG);
        reply.cut_body(if request.target == "/enough" { PROGRESS } else { PROGRESS - 1 })
    });
    assert!(read(&server.object("/enough")).unwrap() == bytes);
    assert_eq!(server.requests("/enough").len(), 1 + 10);
    let error = read(&server.object("/fewer")).unwrap_err();
    assert_eq!(server.requests("/fewer").len(), 1 + ATTEMPTS as usize);
    assert_eq!(error.place().offset, Some(ATTEMPTS as u64 * (PROGRESS as u64 - 1)));
    assert_eq!(error.frames(), ["at attempt 3 of 3"]);
    fails_at(Err::<(), _>(error), Kind::Io, &server, "/fewer", "the response was cut off");
}

/// Sizes around that of a range, of servers that give ranges, and of those that give the whole instead or say so.
#[test]
fn objects_of_all_sizes_are_read_whole() {
    let bytes = content(2 * CHUNK as usize + 1);
    for (len, requests) in [(0, 1), (1, 2), (CHUNK, 2), (CHUNK + 1, 3), (2 * CHUNK + 1, 4)] {
        let body = bytes[..len as usize].to_vec();
        let server = Server::new(move |request| match &*request.target {
            "/ranges" => ranged(request, &body, TAG),
            "/feigned" if request.nth == 0 => ranged(request, &body, TAG),
            _ => Reply::ok(&body),
        });
        for (target, requests) in
            [("/ranges", requests), ("/feigned", requests), ("/none", requests.min(2))]
        {
            let object = server.object(target);
            assert_eq!(object.size().unwrap(), len);
            assert!(read(&object).unwrap() == bytes[..len as usize], "{target} {len}");
            assert_eq!(server.requests(target).len(), requests, "{target} {len}");
            object.recheck().unwrap();
        }
        let mut ranges: Vec<_> = server.requests("/ranges")[1..requests].to_vec();
        ranges.sort_by_key(|request| request.range());
        assert_eq!(
            ranges.iter().filter_map(Request::range).count(),
            if requests > 2 { requests - 1 } else { 0 }
        );
        assert!(ranges.iter().all(|request| request.header("if-match") == Some(TAG)));
        for from in [0, 1, len.saturating_sub(1), len].into_iter().filter(|from| *from <= len) {
            let rest = read_from(&server.object("/ranges"), from).unwrap();
            assert!(rest == bytes[from as usize..len as usize], "{len} from {from}");
        }
    }
}

#[test]
fn an_object_is_read_by_many_threads_and_without_memory() {
    let bytes = content(3 * CHUNK as usize / 2);
    let body = bytes.clone();
    let server = Server::new(move |request| ranged(request, &body, TAG));
    let object = server.object("/");
    let read = threads::each(&[0_u64; 8], 8, |from| read_from(&object, *from).unwrap());
    assert!(read.unwrap().iter().all(|read| *read == bytes));
    let budget = Budget::new(Limits { held: 0, ..Limits::default() });
    let mut read = Vec::new();
    object.reader(1, &budget).unwrap().read_to_end(&mut read).unwrap();
    assert!(read == bytes[1..]);
}

/// A reader that nobody reads to its end asks for no more than it did, and waits for nothing.
#[test]
fn a_reader_is_dropped_at_once() {
    let body = content(9 * CHUNK as usize);
    let server = Server::new(move |request| ranged(request, &body, TAG));
    let mut reader = server.object("/").reader(0, &Budget::unlimited()).unwrap();
    reader.read_exact(&mut [0]).unwrap();
    drop(reader);
    assert!(server.requests("/").len() <= 1 + 4);
}

/// Bytes after a gap are never passed on, however often the reader is asked.
#[test]
fn nothing_is_read_after_an_error() {
    let body = content(3 * CHUNK as usize);
    let server = Server::new(move |request| match request.range() {
        Some((CHUNK, _)) => Reply::new("404 Not Found", &[], ""),
        _ => ranged(request, &body, TAG),
    });
    let mut reader = server.object("/").reader(0, &Budget::unlimited()).unwrap();
    let mut first = vec![0; CHUNK as usize];
    reader.read_exact(&mut first).unwrap();
    let error = Error::io("", "read", reader.read(&mut [0]).unwrap_err());
    fails_at(Err::<(), _>(error), Kind::Io, &server, "/", "the server answers 404 Not Found");
    for _ in 0..10 {
        reader.read(&mut [0]).unwrap_err();
    }
}

/// The second answer with bytes is one of another object.
#[test]
fn an_object_that_changes_while_it_is_read_is_noticed() {
    let (bytes, longer) = (content(SMALL), content(SMALL + 1));
    let server = Server::new(move |request| {
        let unconditional = Request {
            headers: request
                .range()
                .map(|(first, last)| ("range".to_owned(), format!("bytes={first}-{last}")))
                .into_iter()
                .collect(),
            ..request.clone()
        };
        let seen = request.nth < 2;
        let reply = match &*request.target {
            "/condition" => ranged(request, &bytes, if seen { TAG } else { "\"two\"" }),
            "/tag" => ranged(&unconditional, &bytes, if seen { TAG } else { "\"two\"" }),
            "/weak" => ranged(&unconditional, &bytes, if seen { "W/\"one\"" } else { "W/\"two\"" }),
            "/size" => ranged(request, if seen { &bytes } else { &longer }, TAG),
            "/shorter" if !seen => Reply::new("416 Range Not Satisfiable", &[], ""),
            "/whole" if !seen => Reply::new("200 OK", &[("etag", "\"two\"")], &bytes),
            "/gone" if !seen => Reply::new("404 Not Found", &[], ""),
            "/time" => {
                let modified = if seen {
                    "Mon, 01 Jan 2035 00:00:00 GMT"
                } else {
                    "Tue, 02 Jan 2035 00:00:00 GMT"
                };
                Reply::new("200 OK", &[("last-modified", modified)], &bytes)
            }
            _ => ranged(request, &bytes, TAG),
        };
        if request.nth == 1 { reply.cut_body(SMALL / 2) } else { reply }
    });
    let changed = "the object was changed during the run: it ";
    for (target, text) in [
        ("/condition", "has another entity tag or size"),
        ("/tag", "has another entity tag"),
        ("/weak", "has another entity tag"),
        ("/size", "had 100 bytes"),
        ("/shorter", "has another entity tag or size"),
        ("/whole", "has another entity tag"),
        ("/time", "has another entity tag"),
    ] {
        let text = format!("{changed}{text}");
        fails_at(read(&server.object(target)), Kind::Changed, &server, target, &text);
        let requests = server.requests(target);
        assert_eq!(requests.len(), 3, "{target}");
        let is_weak = ["/weak", "/time"].contains(&target);
        assert_eq!(requests[2].header("if-match"), (!is_weak).then_some(TAG), "{target}");
    }
    fails_at(read(&server.object("/gone")), Kind::Io, &server, "/gone", "404 Not Found");
}

/// What was seen first is compared with what is there at the end, if both tell it.
#[test]
fn an_object_is_looked_at_again() {
    let server = Server::new(|request| {
        let later = request.nth > 0;
        match &*request.target {
            "/size" => ranged(request, if later { b"longer" } else { b"long" }, TAG),
            "/tag" => ranged(request, b"long", if later { "\"two\"" } else { TAG }),
            "/gone" if later => Reply::new("404 Not Found", &[], ""),
            "/untagged" if later => Reply::new("200 OK", &[], "long"),
            "/empty" if later => Reply::new("416 Range Not Satisfiable", &[], ""),
            "/empty" => Reply::ok(""),
            _ => ranged(request, b"long", TAG),
        }
    });
    for (target, kind) in [("/size", Kind::Changed), ("/tag", Kind::Changed), ("/gone", Kind::Io)] {
        let object = server.object(target);
        // Nothing was seen of it yet.
        object.recheck().unwrap();
        object.size().unwrap();
        fails_at(object.recheck(), kind, &server, target, "");
    }
    for target in ["/same", "/untagged", "/empty"] {
        let object = server.object(target);
        object.size().unwrap();
        object.recheck().unwrap();
    }
}
