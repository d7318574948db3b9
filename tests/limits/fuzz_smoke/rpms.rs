//! Dense headers of `.rpm`s.

use support::raw_header::{RawTag, header, header_of, numbers, package, text, texts};

use crate::fuzz_smoke::dense::LEN;

/// The length of inputs in bytes, more than [`LEN`]: the cost limit is far above an input's length, so
/// shorter ones show nothing.
const LONG: usize = 4 * LEN;

/// Inputs for readers of packages.
pub fn packages() -> Vec<Vec<u8>> {
    let files = [files("d", 4 * LONG / 250), files(&"d".repeat(LONG / 2), LONG / 50)];
    [shared(), files.into(), strings()].concat()
}

/// Inputs for commands that sign and list packages.
pub fn signed() -> Vec<Vec<u8>> {
    let folders =
        ["d".into(), "d".repeat(4000), format!("etc/{}", "\"".repeat(46)), "d".repeat(LEN / 2)];
    let folders = folders.map(|folder| listed(vec![], &folder, LEN / 16));
    let dependencies = |name: &str, tags: [u32; 3]| {
        let count = LEN / (name.len() + 8);
        let names = texts(tags[0], (0..count).map(|n| format!("{name}{n:x}")));
        let versions = texts(tags[1], vec![String::new(); count]);
        listed(vec![names, versions, numbers(tags[2], vec![8; count])], "/", 1)
    };
    let provides = ["a", "\"", "\u{1}"].map(|name| dependencies(name, [1047, 1113, 1112]));
    let changes = LEN / 6;
    let changes = listed(
        vec![
            numbers(1080, vec![0; changes]),
            texts(1081, vec![String::new(); changes]),
            texts(1082, vec![String::new(); changes]),
        ],
        "/",
        1,
    );
    [shared(), strings(), folders.into(), provides.into(), vec![changes]].concat()
}

/// Tags that share the same bytes: numbers, strings, and strings that are not UTF-8.
fn shared() -> Vec<Vec<u8>> {
    let count = u32::try_from(LONG / 2).unwrap();
    let [bytes, texts]: [Vec<_>; 2] =
        [2, 8].map(|kind| (0..count / 16).map(|n| [100_000 + n, kind, 0, count]).collect());
    let empty = vec![0; LONG / 2];
    let odd = [&[0xff, 0], &empty[2..]].concat();
    // An odd tag has two bytes for its string.
    let odd_rows: Vec<_> =
        texts.iter().map(|[tag, kind, at, n]| [*tag, *kind, *at, n - 1]).collect();
    let headers = [(&bytes, &empty), (&texts, &empty), (&odd_rows, &odd)];
    headers.map(|(rows, data)| package(&header_of(rows, data))).into()
}

/// One string for each byte, and the same with a first one that is not UTF-8.
fn strings() -> Vec<Vec<u8>> {
    [&b""[..], b"\xff"]
        .map(|first| {
            let bytes = [first, &vec![0; LEN]].concat();
            let count = bytes.iter().filter(|byte| **byte == 0).count();
            package(&header(&[(1117, 8, count, bytes)]))
        })
        .into()
}

/// Empty files in a folder, with the tags that readers of packages need.
fn files(folder: &str, count: usize) -> Vec<u8> {
    let mut more: Vec<RawTag> = [1028, 1034].map(|tag| numbers(tag, vec![0; count])).into();
    more.extend([1035, 1036, 1039, 1040].map(|tag| texts(tag, vec![String::new(); count])));
    more.push(numbers(5011, [8]));
    listed(more, folder, count)
}

/// Folders in a folder, with the tags that lists of packages need, and further tags.
fn listed(more: Vec<RawTag>, folder: &str, count: usize) -> Vec<u8> {
    let named = [(1000, "x"), (1001, "1"), (1002, "1"), (1022, "noarch"), (1044, "x.src.rpm")];
    let mut tags: Vec<RawTag> = named.map(|(tag, value)| text(tag, value)).into();
    tags.extend(more);
    tags.extend([
        texts(1118, [format!("/{folder}/")]),
        texts(1117, (0..count).map(|n| format!("{n:x}"))),
        numbers(1116, vec![0; count]),
        numbers(1037, vec![0; count]),
        (1030, 3, count, 0o40755_u16.to_be_bytes().repeat(count)),
    ]);
    package(&header(&tags))
}
