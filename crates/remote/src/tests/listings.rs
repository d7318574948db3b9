//! Listings of buckets.

use std::fmt::Display;

use percent_encoding::percent_decode_str;
use rockpack_core::content::Recheck as _;

use super::*;
use crate::Listing;
use crate::listing::PAGES_MAX;

/// An object of a listing; the key as it is written there.
fn object(key: &str, size: impl Display, tag: &str) -> String {
    let tag = tag.replace('"', "&quot;");
    format!(
        "<Contents><Key>{key}</Key><LastModified>2035-01-01T00:00:00.000Z</LastModified>\
         <ETag>{tag}</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
    )
}

fn folder(prefix: &str) -> String {
    format!("<CommonPrefixes><Prefix>{prefix}</Prefix></CommonPrefixes>")
}

/// A page as S3 sends it.
fn page(entries: &str, token: Option<&str>) -> String {
    let next = |token| format!("<NextContinuationToken>{token}</NextContinuationToken>");
    let next = token.map(next).unwrap_or_default();
    let is_truncated = token.is_some();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>bucket</Name>\
         <Prefix>run/</Prefix>{next}<KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys>\
         <Delimiter>/</Delimiter><EncodingType>url</EncodingType>\
         <IsTruncated>{is_truncated}</IsTruncated>{entries}</ListBucketResult>"
    )
}

/// A value of the query.
fn asked<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let (_, query) = request.target.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn list_of(remote: &Arc<Remote>, server: &Server, prefix: &str) -> Result<Listing> {
    let target = format!("/bucket?list-type=2&prefix={prefix}");
    Listing::at(remote, &server.address(&target))
}

fn list(server: &Server) -> Result<Listing> {
    list_of(&PATIENT, server, "run/")
}

fn count(server: &Server) -> usize {
    server.requests.lock().unwrap().len()
}

fn names(listing: &Listing) -> Vec<&str> {
    listing.objects.keys().map(String::as_str).collect()
}

/// 5,000 objects in five pages, each of which breaks off once.
#[test]
fn a_listing_in_pages_is_whole() {
    let server = Server::new(|request| {
        let number = asked(request, "continuation-token").map_or(0, |it| it.parse().unwrap());
        let keys = (0..1000).map(|key| format!("run/{:04}", 1000 * number + key));
        let objects: String = keys.map(|key| object(&key, 5, TAG)).collect();
        let next = (number < 4).then(|| (number + 1).to_string());
        let reply = Reply::ok(page(&objects, next.as_deref()));
        if request.nth == 0 { reply.cut_body(40_000 * number) } else { reply }
    });
    let listing = list(&server).unwrap();
    assert!(names(&listing).into_iter().eq((0..5000).map(|key| format!("{key:04}"))));
    assert!(listing.folders.is_empty());
    assert_eq!(count(&server), 10);
    let asked_for = server.requests.lock().unwrap();
    assert!(asked_for.iter().all(|request| asked(request, "prefix") == Some("run%2F")));
}

/// A page that is cut anywhere, though it has the length that the server says.
#[test]
fn half_a_page_is_not_a_listing() {
    let whole = page(&[object("run/one", 5, TAG), folder("run/two/")].concat(), None);
    let (len, xml) = (whole.len(), whole);
    let server = Server::new(move |request| {
        let prefix = asked(request, "prefix").unwrap();
        Reply::ok(&xml[..prefix.trim_end_matches("%2F").parse().unwrap()])
    });
    for len in 0..len {
        let listing = list_of(&PATIENT, &server, &len.to_string());
        fails_at(listing, Kind::Malformed, &server, "/bucket", "the response is not an S3 listing");
    }
    assert_eq!(count(&server), len);
}

#[test]
fn a_page_without_an_end_is_not_a_listing() {
    let xml = page(&object("run/one", 5, TAG), None);
    let server = Server::new(move |request| {
        let chunk = format!("{:x}\r\n{xml}\r\n", xml.len());
        match asked(request, "prefix").unwrap() {
            // All that is there, but nothing says so.
            "closed%2F" => {
                Reply { end: End::Close, ..Reply::new("200 OK", &[("content-length", "")], &xml) }
            }
            "chunked%2F" => {
                let chunked = Reply::new("200 OK", &[("transfer-encoding", "chunked")], chunk);
                Reply { end: End::Close, ..chunked }
            }
            "slow%2F" => Reply::ok(&xml).slow(1, 20),
            _ => Reply::endless("200 OK"),
        }
    });
    for (prefix, kind, text, requests) in [
        ("closed", Kind::Unsupported, "the server does not state its length", 1),
        ("chunked", Kind::Io, "the response was cut off", ATTEMPTS as usize),
        ("slow", Kind::Io, "bytes in 0.25 seconds", ATTEMPTS as usize),
        ("endless", Kind::Limit, "the answer has more than 67108864 bytes", 1),
    ] {
        let before = count(&server);
        let remote = if prefix == "slow" { &HASTY } else { &PATIENT };
        fails_at(list_of(remote, &server, prefix), kind, &server, "/bucket", text);
        assert_eq!(count(&server) - before, requests, "{prefix}");
    }
}

/// Pages that say that there are further ones.
#[test]
fn a_listing_comes_to_an_end() {
    let server = Server::new(|request| match asked(request, "prefix").unwrap() {
        "tokens%2F" => Reply::ok(page("", Some(&request.nth.to_string()))),
        "same%2F" => Reply::ok(page(&object("same/key", 5, TAG), Some("token"))),
        "none%2F" => Reply::ok(page(&object("none/key", 5, TAG), Some(""))),
        _ => {
            let last = page(&object("last/key", 5, TAG), Some("token"));
            Reply::ok(last.replace("<IsTruncated>true", "<IsTruncated>false"))
        }
    });
    let conflict = format!("has the same name as {}/bucket/same/key", server.url);
    for (prefix, kind, text, requests) in [
        ("tokens", Kind::Limit, "the listing has more than", PAGES_MAX),
        ("same", Kind::Conflict, &*conflict, 2),
        ("none", Kind::Malformed, "the response is not an S3 listing", 1),
    ] {
        let before = count(&server);
        fails(list_of(&PATIENT, &server, prefix), kind, text);
        assert_eq!(count(&server) - before, requests, "{prefix}");
    }
    assert_eq!(names(&list_of(&PATIENT, &server, "last").unwrap()), ["key"]);
}

/// Keys as S3 writes them, and what they are; the objects are asked for by the right ones.
#[test]
fn odd_keys_name_their_objects() {
    let keys = [
        ("a+b", "a b"),
        ("a%2Bb", "a+b"),
        ("a%2541", "a%41"),
        ("%C3%BC", "\u{fc}"),
        ("a%26b%3Bc", "a&b;c"),
        ("%3F%23%25", "?#%"),
        ("%3Cx%3E%22%27", "<x>\"'"),
        ("a%5Cb", "a\\b"),
        ("%20", " "),
        ("...", "..."),
    ];
    let written = keys.map(|(written, key)| object(&format!("run/{written}"), 4 + key.len(), TAG));
    let others = [object("run/", 0, TAG), object("elsewhere/key", 1, TAG), folder("run//")];
    let folders = ["run/sub/", "run/a%2Bb/"].map(folder);
    let xml = page(&[written.concat(), others.concat(), folders.concat()].concat(), None);
    let server = Server::new(move |request| match asked(request, "list-type") {
        Some(_) => Reply::ok(&xml),
        None => {
            let path = request.target.strip_prefix("/bucket/").unwrap();
            ranged(request, percent_decode_str(path).decode_utf8().unwrap().as_bytes(), TAG)
        }
    });
    let listing = list(&server).unwrap();
    let mut expected = keys.map(|(_, key)| key);
    expected.sort_unstable();
    assert_eq!(names(&listing), expected);
    for (name, object) in &listing.objects {
        assert_eq!(String::from_utf8(read(object).unwrap()).unwrap(), format!("run/{name}"));
    }
    assert_eq!(count(&server), 1 + keys.len());
    assert!(listing.folders.keys().eq(["a+b", "sub"]), "{:?}", listing.folders);
    let Address::Web(sub) = &listing.folders["a+b"] else { panic!("{:?}", listing.folders) };
    assert_eq!(sub.query(), Some("list-type=2&prefix=run%2Fa%2Bb%2F"));
}

/// Servers that do not write keys for URLs say so by saying nothing.
#[test]
fn keys_without_an_encoding_are_taken_as_they_are() {
    let keys = ["a+b", "a%2Bb", "a&amp;b"].map(|key| object(&format!("run/{key}"), 1, TAG));
    let xml = page(&keys.concat(), None).replace("<EncodingType>url</EncodingType>", "");
    let server = Server::new(move |_| Reply::ok(&xml));
    assert_eq!(names(&list(&server).unwrap()), ["a%2Bb", "a&b", "a+b"]);
}

#[test]
fn keys_and_sizes_that_no_object_has_are_refused() {
    let table = [
        (
            object("run/../../x_lib_generic.tar.zst", 1, TAG),
            Kind::Unsupported,
            "ignores the delimiter",
        ),
        (object("run/sub/key", 1, TAG), Kind::Unsupported, "in a subfolder"),
        (object("run/key", "18446744073709551616", TAG), Kind::Malformed, "not an S3 listing"),
        (object("run/key", "-1", TAG), Kind::Malformed, "not an S3 listing"),
        (object("run/key", "", TAG), Kind::Malformed, ""),
        (
            object("run/key", 1, TAG).replace("Size>", "Length>"),
            Kind::Malformed,
            "no size for run/key",
        ),
        (String::new(), Kind::Usage, "there are no objects at this address"),
        (folder("run//"), Kind::Usage, "there are no objects at this address"),
    ];
    for (entries, kind, text) in table {
        let xml = page(&entries, None);
        let server = Server::new(move |_| Reply::ok(&xml));
        let error = list(&server).unwrap_err();
        let hint = error.hint_text().unwrap_or_default();
        assert!(
            error.kind() == kind && format!("{error}{hint}").contains(text),
            "{entries}: {error}"
        );
        assert_eq!(count(&server), 1);
    }
    let xml = page(&object("run/key", u64::MAX, TAG), None);
    let server = Server::new(move |_| Reply::ok(&xml));
    assert_eq!(list(&server).unwrap().objects["key"].size().unwrap(), u64::MAX);
}

/// Answers that are no listings. Buckets lead nowhere.
#[test]
fn a_refused_listing_is_named_with_its_reason() {
    let server = Server::new(|request| {
        let region = ("x-amz-bucket-region", "eu-west-1");
        let body = "<Error><Code>Reason</Code><Message>and text</Message></Error>";
        match asked(request, "prefix").unwrap() {
            "region%2F" => Reply::new("301 Moved Permanently", &[region, ("location", "/")], body),
            "bad%2F" => Reply::new("400 Bad Request", &[region], body),
            "key%2F" => Reply::new("403 Forbidden", &[], body),
            "bucket%2F" => Reply::new("404 Not Found", &[], body),
            "html%2F" => Reply::ok("<html><a href=\"x.tar.zst\">x</a></html>"),
            "bytes%2F" => Reply::ok(b"\xff"),
            _ => Reply::new("503 Service Unavailable", &[], body),
        }
    });
    for (prefix, kind, text, requests) in [
        ("region", Kind::Io, "the server answers 301 Moved Permanently (Reason: and text)", 1),
        ("bad", Kind::Io, "the server answers 400 Bad Request (Reason: and text)", 1),
        ("key", Kind::Io, "the server answers 403 Forbidden (Reason: and text)", 1),
        ("bucket", Kind::Io, "the server answers 404 Not Found (Reason: and text)", 1),
        ("html", Kind::Malformed, "the response is not an S3 listing", 1),
        ("bytes", Kind::Malformed, "the answer is not UTF-8", 1),
        ("busy", Kind::Io, "503 Service Unavailable (Reason: and text)", ATTEMPTS as usize),
    ] {
        let before = count(&server);
        fails_at(list_of(&PATIENT, &server, prefix), kind, &server, "/bucket", text);
        assert_eq!(count(&server) - before, requests, "{prefix}");
    }
}

#[test]
fn a_listing_is_looked_at_again() {
    let first = [object("run/one", 5, TAG), object("run/two", 0, TAG), folder("run/sub/")];
    let [one, two, sub] = first.each_ref().map(String::as_str);
    let other = |entries: &[&str]| page(&entries.concat(), None);
    let (replaced, grown) = (object("run/one", 5, "\"two\""), object("run/one", 6, TAG));
    let third = object("run/three", 5, TAG);
    let changes = [
        other(&[&*replaced, two, sub]),
        other(&[&*grown, two, sub]),
        other(&[one, two, &*third, sub]),
        other(&[one, sub]),
        other(&[one, two]),
        other(&[one, two, sub, &*folder("run/more/")]),
        other(&[]),
    ];
    let now = Arc::new(Mutex::new(other(&[one, two, sub])));
    let served = Arc::clone(&now);
    let server = Server::new(move |request| match asked(request, "list-type") {
        Some(_) => Reply::ok(&*served.lock().unwrap()),
        None => Reply::new("403 Forbidden", &[], ""),
    });
    let listing = list(&server).unwrap();
    listing.recheck().unwrap();
    // The listing says it of all objects.
    assert_eq!(count(&server), 2);
    for change in changes {
        now.lock().unwrap().clone_from(&change);
        let text = "the object was changed during the run: objects were added, removed or replaced";
        fails_at(listing.recheck(), Kind::Changed, &server, "/bucket", text);
    }
}
