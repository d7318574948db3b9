//! Servers that refuse, wait, lie or send forever.

use std::time::Instant;

use super::*;

const REFUSAL: &str = "<?xml version=\"1.0\"?>\n<Error><Code>SomeCode</Code><Message>Some text</Message>\
    <StringToSign>not told</StringToSign></Error>";

/// Answers with this status and what S3 sends with it.
fn refusal(status: &str) -> Reply {
    Reply::new(status, &[("content-type", "application/xml")], REFUSAL)
}

/// A path without the blanks of a status.
fn target(status: &str) -> String {
    format!("/{}", &status[..3])
}

/// Each status: whether it is asked for again, and what the hint says.
#[test]
fn a_refusal_is_named_with_its_reason() {
    let table = [
        ("400 Bad Request", false, ""),
        ("401 Unauthorized", false, "requests were anonymous"),
        ("403 Forbidden", false, "requests were anonymous"),
        ("404 Not Found", false, "check the address"),
        ("405 Method Not Allowed", false, ""),
        ("410 Gone", false, "check the address"),
        ("501 Not Implemented", false, "the server failed"),
        ("408 Request Timeout", true, ""),
        ("429 Too Many Requests", true, "the server asks for fewer requests"),
        ("500 Internal Server Error", true, "the server failed"),
        ("502 Bad Gateway", true, "the server failed"),
        ("503 Service Unavailable", true, "the server asks for fewer requests"),
        ("504 Gateway Timeout", true, "the server failed"),
    ];
    let server = Server::new(move |request| {
        let status = table.iter().find(|(status, ..)| request.target.ends_with(&status[..3]));
        let status = status.unwrap().0;
        let passes = request.target.starts_with("/passing") && request.nth + 1 >= ATTEMPTS as usize;
        if passes { ranged(request, b"bytes", TAG) } else { refusal(status) }
    });
    for (status, is_repeated, hint) in table {
        let target = target(status);
        let error = read(&server.object(&target)).unwrap_err();
        assert!(error.hint_text().unwrap_or_default().starts_with(hint), "{status}: {error:?}");
        let frames: &[&str] = if is_repeated { &["at attempt 3 of 3"] } else { &[] };
        assert_eq!(error.frames(), frames, "{status}");
        let text = format!("the server answers {status} (SomeCode: Some text)");
        assert_eq!(error.message(), text);
        fails_at(Err::<(), _>(error), Kind::Io, &server, &target, &text);
        let requests = if is_repeated { ATTEMPTS as usize } else { 1 };
        assert_eq!(server.requests(&target).len(), requests, "{status}");
        let passing = format!("/passing{}", &status[..3]);
        let read = read(&server.object(&passing));
        assert_eq!(read.is_ok(), is_repeated, "{status}");
        assert_eq!(server.requests(&passing).len(), if is_repeated { 4 } else { 1 }, "{status}");
    }
}

/// A wait as long as the server asks for, but not longer than silence.
#[test]
fn retry_after_is_heeded_within_reason() {
    let server = Server::new(|request| {
        let wait = request.target[1..].replace('_', " ");
        match request.nth {
            0 => Reply::new("429 Too Many Requests", &[("retry-after", &wait)], ""),
            _ => ranged(request, b"bytes", TAG),
        }
    });
    for (wait, is_heeded) in [
        ("1", true),
        ("31536000", true),
        ("18446744073709551615", true),
        ("18446744073709551616", false),
        ("-1", false),
        ("Wed,_21_Oct_2065_07:28:00_GMT", false),
    ] {
        let began = Instant::now();
        let object = server.object_of(&HASTY, &format!("/{wait}"));
        assert_eq!(object.size().unwrap(), 5);
        assert!(!is_heeded || began.elapsed() >= Duration::from_millis(250), "{wait}");
        assert_eq!(server.requests(&format!("/{wait}")).len(), 2, "{wait}");
    }
}

/// Bytes that come too slowly, and none at all, before and in a body.
#[test]
fn a_slow_or_silent_answer_is_cut() {
    let bytes = content(5000);
    let server = Server::new(move |request| {
        let reply = ranged(request, &bytes, TAG);
        let wait = End::Wait(Duration::from_secs(2));
        match (&*request.target, request.nth) {
            ("/drips", 1..) | ("/dripped", 1) => reply.slow(1, 20),
            ("/silent", 1..) | ("/paused", 1) => {
                Reply { end: wait, ..reply.cut_body(PROGRESS - 1) }
            }
            ("/mute", _) => Reply { end: wait, ..reply.cut(10) },
            _ => reply,
        }
    });
    let object = |target: &str| server.object_of(&HASTY, target);
    for (target, before, text) in [
        ("/drips", 1, "bytes in 0.25 seconds"),
        ("/silent", 1, "the response was cut off: timeout"),
        ("/mute", 0, "cannot be read: timeout"),
    ] {
        fails_at(read(&object(target)), Kind::Io, &server, target, text);
        assert_eq!(server.requests(target).len(), before + ATTEMPTS as usize, "{target}");
    }
    for target in ["/dripped", "/paused"] {
        assert!(read(&object(target)).unwrap() == content(5000));
        let requests = server.requests(target);
        assert!(requests.len() == 3 && requests[2].range().unwrap().0 > 0, "{target}");
    }
}

/// Bytes that the client skips, because the server supports no ranges, count as progress.
#[test]
fn skipped_bytes_do_not_count_as_silence() {
    let bytes = content(20_000);
    let body = bytes.clone();
    let server = Server::new(move |request| match request.nth {
        0 => Reply::ok(&body),
        1 => Reply::ok(&body).cut_body(19_000),
        _ => Reply::ok(&body).slow(2000, 50),
    });
    assert!(read(&server.object_of(&HASTY, "/")).unwrap() == bytes);
    assert_eq!(server.requests("/").len(), 3);
}

/// The reason of a refusal is waited for no longer than for other bytes, and of an endless one the start is read.
#[test]
fn the_reason_of_a_refusal_has_limits() {
    let server = Server::new(|request| match &*request.target {
        "/slow" => refusal("403 Forbidden").slow(1, 20),
        "/long" => Reply::new("403 Forbidden", &[], format!("{REFUSAL}{}", " ".repeat(1 << 20))),
        "/other" => Reply::new("403 Forbidden", &[], b"\xff<Code>\xff</Code>"),
        _ => Reply::endless("403 Forbidden"),
    });
    for (target, reason) in [
        ("/slow", "403 Forbidden"),
        ("/long", "403 Forbidden (SomeCode: Some text)"),
        ("/other", "403 Forbidden (\u{fffd})"),
        ("/endless", "403 Forbidden"),
    ] {
        let error = server.object_of(&HASTY, target).size().unwrap_err();
        assert_eq!(error.message(), format!("the server answers {reason}"));
        assert_eq!(server.requests(target).len(), 1, "{target}");
    }
}

/// The answer to the request for bytes is longer than the object.
#[test]
fn an_answer_that_is_too_long_is_of_another_object() {
    let server = Server::new(|request| match (&*request.target, request.nth) {
        (_, 0) => ranged(request, b"bytes", TAG),
        ("/endless", _) => Reply::endless("200 OK"),
        ("/chunk", _) => {
            Reply::new("200 OK", &[("transfer-encoding", "chunked")], "6\r\nbytes!\r\n0\r\n\r\n")
        }
        ("/range", _) => {
            let range = [("content-range", "bytes 0-4/5"), ("etag", TAG)];
            Reply::new("206 Partial Content", &range, "bytes and more")
        }
        _ => Reply::ok("bytes and more"),
    });
    for target in ["/endless", "/chunk", "/range", "/length"] {
        fails_at(
            read(&server.object(target)),
            Kind::Changed,
            &server,
            target,
            "during the run: it ",
        );
        assert_eq!(server.requests(target).len(), 2, "{target}");
    }
}

/// Bytes beyond the length that an answer says belong to no other answer.
#[test]
fn what_follows_an_answer_is_dropped() {
    let server = Server::new(|request| {
        let mut reply = ranged(request, b"bytes", TAG);
        reply.body.extend_from_slice(
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\netag: \"one\"\r\n\r\nother",
        );
        reply
    });
    for _ in 0..3 {
        assert_eq!(read(&server.object("/")).unwrap(), b"bytes");
    }
}

/// Answers to the request for bytes that name another range than was asked for.
#[test]
fn a_range_that_lies_is_refused() {
    let ranges = [
        ("bytes 1-5/5", Kind::Io),
        ("bytes 5-4/5", Kind::Io),
        ("bytes 0-4/*", Kind::Io),
        ("bytes -1-4/5", Kind::Io),
        ("bytes 0-4", Kind::Io),
        ("items 0-4/5", Kind::Io),
        ("", Kind::Io),
        ("bytes 18446744073709551615-18446744073709551615/5", Kind::Io),
        ("bytes 18446744073709551616-4/5", Kind::Io),
        ("bytes 0-4/6", Kind::Changed),
        ("bytes 0-4/4", Kind::Changed),
        ("bytes 0-4/18446744073709551615", Kind::Changed),
    ];
    let server = Server::new(move |request| match request.nth {
        0 => ranged(request, b"bytes", TAG),
        _ => {
            let range = ranges[request.number()].0;
            Reply::new("206 Partial Content", &[("content-range", range)], "bytes")
        }
    });
    for (number, (range, kind)) in ranges.iter().enumerate() {
        let target = format!("/{number}");
        let error = read(&server.object(&target)).unwrap_err();
        assert_eq!((error.kind(), server.requests(&target).len()), (*kind, 2), "{range}: {error}");
    }
}

/// Answers to the request for the size.
#[test]
fn a_size_that_is_unknown_or_absurd_is_refused() {
    let server = Server::new(|request| {
        let part =
            |range: &str| Reply::new("206 Partial Content", &[("content-range", range)], "b");
        match &*request.target {
            "/star" => part("bytes 0-0/*"),
            "/none" => part(""),
            "/chunked" => Reply::new("200 OK", &[("transfer-encoding", "chunked")], "0\r\n\r\n"),
            "/closed" => {
                Reply { end: End::Close, ..Reply::new("200 OK", &[("content-length", "")], "b") }
            }
            "/empty" => Reply::new("204 No Content", &[("content-length", "")], ""),
            "/overflow" => Reply::new("200 OK", &[("content-length", "18446744073709551616")], ""),
            "/negative" => Reply::new("200 OK", &[("content-length", "-1")], ""),
            "/most" if request.nth == 0 => part("bytes 0-0/18446744073709551615"),
            "/most" => {
                let (first, last) = request.range().unwrap();
                part(&format!("bytes {first}-{last}/18446744073709551615"))
            }
            _ => {
                let length = [("content-length", "18446744073709551615")];
                Reply { end: End::Close, ..Reply::new("200 OK", &length, "b") }
            }
        }
    });
    for target in ["/star", "/none", "/chunked", "/closed", "/empty"] {
        let text = "the server does not state its length";
        fails_at(read(&server.object(target)), Kind::Unsupported, &server, target, text);
        assert_eq!(server.requests(target).len(), 1, "{target}");
    }
    for target in ["/overflow", "/negative"] {
        let text = "cannot be read: protocol: content-length header not a number";
        fails_at(read(&server.object(target)), Kind::Io, &server, target, text);
    }
    for target in ["/most", "/large"] {
        let object = server.object(target);
        assert_eq!(object.size().unwrap(), u64::MAX);
        fails_at(object.read_small(1000), Kind::Limit, &server, target, "more than 1000");
        fails_at(read(&object), Kind::Io, &server, target, "the response was cut off");
        fails_at(
            read_from(&object, u64::MAX - 9),
            Kind::Io,
            &server,
            target,
            "the response was cut off",
        );
    }
}

#[test]
fn redirects_are_followed_a_few_times_and_without_their_bodies() {
    let server = Server::new(|request| {
        let to = |place: &str| Reply::new("302 Found", &[("location", place)], "moved");
        match &*request.target {
            "/relative" => to("moved?X-Amz-Signature=secret"),
            "/endless" => {
                let Reply { end, body, .. } = Reply::endless("302 Found");
                let headers = [("transfer-encoding", "chunked"), ("location", "/moved")];
                Reply { end, body, ..Reply::new("302 Found", &headers, "") }
            }
            "/round" => to("/round"),
            "/refused" => to("/forbidden?X-Amz-Signature=secret"),
            "/nowhere" => to("http://[::secret"),
            "/file" => to("file:///secret"),
            "/silent" => Reply::new("302 Found", &[], ""),
            target if target.starts_with("/moved") => ranged(request, b"bytes", TAG),
            _ => refusal("403 Forbidden"),
        }
    });
    for target in ["/relative", "/endless"] {
        assert_eq!(read(&server.object(target)).unwrap(), b"bytes");
        assert_eq!(server.requests(target).len(), 2, "{target}");
    }
    for (target, text) in [
        ("/round", "redirects more than 5 times"),
        ("/refused", "the server answers 403 Forbidden (SomeCode: Some text)"),
        ("/nowhere", "redirects to an invalid URL"),
        ("/file", "redirects to an invalid URL"),
        ("/silent", "the server answers 302 Found"),
    ] {
        let error = server.object(target).size().unwrap_err();
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        fails_at(Err::<(), _>(error), Kind::Io, &server, target, text);
    }
    assert_eq!(server.requests("/round").len(), 6);
    let redirected =
        server.requests("/moved").len() + server.requests("/moved?X-Amz-Signature=secret").len();
    assert_eq!(redirected, 4);
}

#[test]
fn no_connection_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    let object = Object::at(&PATIENT, &address).unwrap();
    let error = fails(object.size(), Kind::Io, "at attempt 3 of 3");
    assert!(error.message().starts_with("cannot be read: "), "{error}");
    assert!(error.hint_text().unwrap().starts_with("check the address, the network"));
}

#[test]
fn an_address_with_a_secret_is_not_repeated() {
    for text in
        ["https://me:secret@host:99999/", "https://host:99999/?secret", "https://host:x/#secret"]
    {
        let error = Address::parse(text).unwrap_err();
        assert!(
            !error.full_text().contains("secret") && error.message().contains("host"),
            "{error}"
        );
    }
    let error = fails(Address::parse("https://me:secret@host/"), Kind::Usage, "a password");
    assert!(!error.full_text().contains("secret"));
    let url = "https://host/a/b.tar.zst?X-Amz-Signature=secret";
    assert_eq!(Address::parse(url).unwrap().to_string(), "https://host/a/b.tar.zst");
}
