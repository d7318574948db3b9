//! Index pages, and texts of addresses.

use rockpack_core::content::Recheck as _;

use super::*;
use crate::Listing;

fn list(server: &Server, target: &str) -> Result<Listing> {
    Listing::at(&PATIENT, &server.address(target))
}

/// Links, and the names of objects that they mean.
const LINKS: &[(&str, &[&str])] = &[
    ("<a href=\"../\">Parent Directory</a>", &[]),
    ("<a href=\"?C=N;O=D\">Name</a>", &[]),
    ("<a href=\"\">here</a><a href=\"/run/\">here</a><a href=\"./\">here</a>", &[]),
    ("<A HREF='b%20c.tar.zst'>blank</A>", &["b c.tar.zst"]),
    ("<a class=x href=plain.tar.zst>no quotes</a>", &["plain.tar.zst"]),
    ("<a href=\"plain.tar.zst\">again</a>", &[]),
    ("<a href=\"./dot.tar.zst\">dot</a>", &["dot.tar.zst"]),
    ("<a href=\"/run/absolute.tar.zst\">absolute</a>", &["absolute.tar.zst"]),
    ("<a href=\"{url}/run/full.tar.zst?x=1&amp;y=2#part\">full</a>", &["full.tar.zst"]),
    ("<a href=\"%C3%BC\">encoded</a>", &["\u{fc}"]),
    ("<a href=\"a+b\">plus</a><a href=\"a%2541\">percent</a>", &["a+b", "a%41"]),
    ("<a href=\"sub/\">folder</a><a href=\"sub/deep.tar.zst\">deeper</a>", &[]),
    ("<a href=\"/other/x.tar.zst\">beside</a><a href=\"../x.tar.zst\">above</a>", &[]),
    ("<a href=\"https://elsewhere/run/x.tar.zst\">elsewhere</a>", &[]),
    ("<a href=\"//elsewhere/run/x.tar.zst\">elsewhere</a>", &[]),
    ("<a href=\"a%2Fb\">slash</a><a href=\"..%2fx\">up</a><a href=\"%2e%2e/x\">up</a>", &[]),
    ("<a href=\"%ff\">no UTF-8</a><a name=\"x\">no link</a><area href=\"area\">", &[]),
    ("<a href=\"javascript:x()\">x</a><a href=\"mailto:x@y\">x</a><a href=\"http://[\">x</a>", &[]),
];

#[test]
fn links_of_an_index_page_name_what_is_in_its_folder() {
    let server = Server::new(|request| match &*request.target {
        "/run" => Reply::new("301 Moved Permanently", &[("location", "/run/")], ""),
        "/run/" => {
            let url = format!("http://{}", request.header("host").unwrap());
            Reply::ok(LINKS.iter().map(|(link, _)| link.replace("{url}", &url)).collect::<String>())
        }
        _ => ranged(request, b"bytes", TAG),
    });
    let mut expected: Vec<&str> = LINKS.iter().flat_map(|(_, names)| *names).copied().collect();
    expected.sort_unstable();
    for target in ["/run/", "/run"] {
        let listing = list(&server, target).unwrap();
        assert!(listing.objects.keys().eq(&expected), "{:?}", listing.objects.keys());
        assert!(listing.folders.keys().eq(["sub"]), "{:?}", listing.folders);
        assert_eq!(listing.folders["sub"], server.address("/run/sub/"));
        let full = &listing.objects["full.tar.zst"];
        assert_eq!(full.path().display().to_string(), format!("{}/run/full.tar.zst", server.url));
        assert_eq!(read(full).unwrap(), b"bytes");
        listing.recheck().unwrap();
    }
    // Its size, its bytes, and its size again, which a page does not tell; nothing of the other
    // objects; and each page twice, one of them by a redirect.
    assert_eq!(server.requests("/run/full.tar.zst?x=1&y=2").len(), 2 * 3);
    assert_eq!(server.requests.lock().unwrap().len(), 2 * 3 + 2 + 2 * 2);
}

#[test]
fn a_page_without_links_and_one_that_changes_are_errors() {
    let server = Server::new(|request| match (&*request.target, request.nth) {
        ("/empty/", _) => Reply::ok("<html><a href=\"../\">..</a></html>"),
        ("/more/", 1..) => Reply::ok("<a href=\"one\">1</a><a href=\"two\">2</a>"),
        ("/gone/", 1..) => Reply::ok(""),
        ("/absent/", 1..) => Reply::new("404 Not Found", &[], ""),
        ("/object/one", nth) => ranged(request, b"bytes", if nth < 2 { TAG } else { "\"two\"" }),
        _ => Reply::ok("<a href=\"one\">1</a>"),
    });
    let text = "there are no objects at this address";
    fails_at(list(&server, "/empty/"), Kind::Usage, &server, "/empty/", text);
    for (target, kind, text) in [
        ("/more/", Kind::Changed, "objects were added, removed or replaced"),
        ("/gone/", Kind::Changed, "objects were added, removed or replaced"),
        ("/absent/", Kind::Io, "the server answers 404 Not Found"),
    ] {
        let listing = list(&server, target).unwrap();
        fails_at(listing.recheck(), kind, &server, target, text);
    }
    let listing = list(&server, "/object/").unwrap();
    read(&listing.objects["one"]).unwrap();
    let text = "it has another size or entity tag";
    fails_at(listing.recheck(), Kind::Changed, &server, "/object/one", text);
}

/// Comments, blanks and line ends of other systems; queries, which are not told.
#[test]
fn a_text_of_addresses_names_objects() {
    let server = Server::new(|request| {
        let url = format!("http://{}", request.header("host").unwrap());
        match &*request.target {
            "/list.txt" => Reply::ok(format!(
                "# comment\r\n\r\n\t{url}/a/one.tar.zst  \r\n#{url}/no\n{url}/b/two%20.tar.zst?secret"
            )),
            "/same.txt" => Reply::ok(format!("{url}/a/one\n{url}/b/one\n")),
            "/twice.txt" => Reply::ok(format!("{url}/a/one\n{url}/a/one\n")),
            "/wrong.txt" => Reply::ok(format!("{url}/a/one\n\n# comment\nftp://host/two\n")),
            "/none.txt" => Reply::ok("# comment\n\n"),
            "/page.txt" => Reply::ok("one\nhttp://host/two\n"),
            _ => ranged(request, b"bytes", TAG),
        }
    });
    let listing = list(&server, "/list.txt").unwrap();
    assert!(listing.objects.keys().eq(["one.tar.zst", "two .tar.zst"]), "{listing:?}");
    for object in listing.objects.values() {
        assert_eq!(read(object).unwrap(), b"bytes");
        assert!(!object.path().display().to_string().contains("secret"));
    }
    assert_eq!(server.requests("/b/two%20.tar.zst?secret").len(), 2);
    for target in ["/same.txt", "/twice.txt"] {
        let text = format!("has the same name as {}/a/one", server.url);
        fails(list(&server, target), Kind::Conflict, &text);
    }
    fails_at(list(&server, "/wrong.txt"), Kind::Usage, &server, "/wrong.txt", "line 4: ");
    for target in ["/none.txt", "/page.txt"] {
        fails(list(&server, target), Kind::Usage, "there are no objects at this address");
    }
}
