//! Builds from a web server that cuts connections, or whose objects are wrong, missing or replaced.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use support::archives::{self, Packing, artifacts, pack, sum};
use support::example::{build_of, contents, copy_shards, names};
use support::tools::{need, run};

/// What the server does with a request, by its path, the requests before, and those for the same path before.
type Fault = fn(&str, usize, usize) -> Strike;

enum Strike {
    None,
    /// Half of the answer comes.
    Cut,
    Absent,
    /// The object has another entity tag.
    Replaced,
    /// The digits of the digest come in reverse.
    Wrong,
    /// The page has one more link.
    Longer,
}

/// Shards on disk, and a server of them.
struct Served {
    room: tempfile::TempDir,
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Served {
    fn new(fault: Fault) -> Self {
        need(&archives::TOOLS);
        let room = tempfile::tempdir().unwrap();
        let shards = room.path().join("shards");
        copy_shards(&shards);
        for (number, artifact) in artifacts(&shards).iter().enumerate() {
            sum(&pack(artifact, [Packing::Zstd, Packing::Xz][number % 2]));
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shards, log) = (shards.clone(), Arc::clone(&log));
                // A client may go at any time.
                thread::spawn(move || drop(talk(stream, &shards, &log, fault)));
            }
        });
        Self { room, url, requests }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }
}

fn talk(
    mut stream: TcpStream,
    shards: &Path,
    log: &Mutex<Vec<String>>,
    fault: Fault,
) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while let Some(first) = lines.next().transpose()? {
        let path = first.split(' ').nth(1).unwrap().to_owned();
        let mut range = None;
        for line in lines.by_ref() {
            let line = line?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            let bytes = line.strip_prefix("range: bytes=").and_then(|range| range.split_once('-'));
            range =
                range.or(bytes.map(|(first, last)| [first, last].map(|it| it.parse().unwrap())));
        }
        let strike = {
            let mut log = log.lock().unwrap();
            let before = log.iter().filter(|other| **other == path).count();
            log.push(path.clone());
            fault(&path, log.len() - 1, before)
        };
        let answer = answer(&shards.join(&path[1..]), range, &strike);
        if matches!(strike, Strike::Cut) {
            return stream.write_all(&answer[..answer.len() / 2]);
        }
        stream.write_all(&answer)?;
    }
    Ok(())
}

/// The bytes of an answer: a part of a file, or the index page of a folder.
fn answer(place: &Path, range: Option<[usize; 2]>, strike: &Strike) -> Vec<u8> {
    if matches!(strike, Strike::Absent) {
        return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec();
    }
    let mut body = if place.is_dir() {
        let slash = |name: &str| if place.join(name).is_dir() { "/" } else { "" };
        let link = |name: &String| format!("<a href=\"{name}{}\">{name}</a>\n", slash(name));
        names(place).iter().map(link).collect::<String>().into_bytes()
    } else {
        fs::read(place).unwrap()
    };
    match strike {
        Strike::Wrong => body[..64].reverse(),
        Strike::Longer => body.extend_from_slice(b"<a href=\"new_lib_generic.tar.zst\">new</a>\n"),
        _ => {}
    }
    let tag = if matches!(strike, Strike::Replaced) { "two" } else { "one" };
    let (status, part, ranged) = match range {
        Some([first, last]) => {
            let ranged = format!("content-range: bytes {first}-{last}/{}\r\n", body.len());
            ("206 Partial Content", &body[first..=last], ranged)
        }
        None => ("200 OK", &*body, String::new()),
    };
    let length = part.len();
    let head =
        format!("HTTP/1.1 {status}\r\netag: \"{tag}\"\r\n{ranged}content-length: {length}\r\n\r\n");
    [head.as_bytes(), part].concat()
}

/// Pages, checksums and archives are cut alike, now and when they are looked at again.
#[test]
fn a_build_from_a_server_that_cuts_connections_is_whole() {
    let served =
        Served::new(|_, before, _| if before % 8 == 5 { Strike::Cut } else { Strike::None });
    let (local, fetched) = (served.path("local"), served.path("fetched"));
    run(&mut build_of(&served.path("shards"), &local));
    run(&mut build_of(Path::new(&served.url), &fetched));
    assert!(contents(&fetched) == contents(&local), "{:?}", names(&fetched));
    // 4 pages twice; the sizes and the bytes of 9 archives and their checksums, and the sizes again.
    let whole = 4 * 2 + 9 * 2 * 3;
    let requests = served.requests.lock().unwrap().len();
    assert!(requests >= whole + 7, "{requests}");
}

/// What the server does, the place of the error, and its message.
#[test]
fn a_build_from_a_server_that_does_not_keep_its_word_writes_nothing() {
    const ARCHIVE: &str = "/gfx1151-build/blas_lib_gfx1151.tar.";
    let table: [(Fault, &str, &str); 4] = [
        (
            |path, _, _| {
                let is_it = path.starts_with(ARCHIVE) && path.ends_with(".sha256sum");
                if is_it { Strike::Wrong } else { Strike::None }
            },
            "gfx1151-build/blas_lib_gfx1151.tar.",
            "sha256sum",
        ),
        (
            |path, _, before| match before {
                1 if path.starts_with(ARCHIVE) => Strike::Cut,
                2.. if path.starts_with(ARCHIVE) => Strike::Absent,
                _ => Strike::None,
            },
            "gfx1151-build/blas_lib_gfx1151.tar.",
            "the server answers 404 Not Found",
        ),
        (
            |path, _, before| match before {
                2.. if path.starts_with(ARCHIVE) => Strike::Replaced,
                _ => Strike::None,
            },
            "gfx1151-build/blas_lib_gfx1151.tar.",
            "the object was changed during the run: it has another size or entity tag",
        ),
        (
            |path, _, before| match before {
                1.. if path == "/gfx1151-build/" => Strike::Longer,
                _ => Strike::None,
            },
            "gfx1151-build/: ",
            "the object was changed during the run: objects were added, removed or replaced",
        ),
    ];
    for (fault, place, message) in table {
        let served = Served::new(fault);
        let out = served.path("out");
        let output = build_of(Path::new(&served.url), &out).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        // Long lines are broken.
        let flat: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            flat.contains(&format!("{}{place}", served.url)) && flat.contains(message),
            "{said}"
        );
        assert!(!out.exists() && output.stdout.is_empty(), "{said}");
    }
}
