//! The files that clients find in a repository by following its indexes.

use std::fs;
use std::path::Path;
use std::process::Command;

use sha2::{Digest, Sha256, Sha512};

use crate::tools::succeed;

/// Fails unless a file has this digest.
pub fn is(path: &Path, sha256: &str) {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(crate::hex(&Sha256::digest(bytes)), sha256, "{}", path.display());
}

/// Digests and paths in a list of a `Release` file.
pub fn rows<'a>(release: &'a str, list: &'a str) -> Vec<[&'a str; 2]> {
    let rows = release
        .lines()
        .skip_while(move |line| *line != list)
        .skip(1)
        .take_while(|line| line.starts_with(' '))
        .map(|row| {
            let [digest, _, path] = row.split_whitespace().collect::<Vec<_>>().try_into().unwrap();
            [digest, path]
        });
    rows.collect()
}

/// All texts between `start` and `end`.
pub fn between<'a>(text: &'a str, start: &'a str, end: &'a str) -> Vec<&'a str> {
    text.split(start).skip(1).map(|rest| rest.split(end).next().unwrap()).collect()
}

/// The versions of the only package that clients get from each channel: one client begins with an `InRelease`
/// whose text is `release`, one with `repomd.xml`. Fails unless all files on the way are whole.
pub fn served(release: &str, out: &Path) -> [String; 2] {
    let suite = out.join("dists/stable");
    let mut index = String::new();
    for list in ["SHA256", "SHA512"] {
        let rows = rows(release, if list == "SHA256" { "SHA256:" } else { "SHA512:" });
        assert!([3, 6].contains(&rows.len()));
        for [digest, path] in rows {
            let folder = suite.join(path).with_file_name("by-hash").join(list);
            let bytes = fs::read(folder.join(digest)).unwrap();
            let own = match list {
                "SHA256" => crate::hex(&Sha256::digest(&bytes)),
                _ => crate::hex(&Sha512::digest(&bytes)),
            };
            assert_eq!(own, digest);
            if path == "main/binary-amd64/Packages" {
                index = String::from_utf8(bytes).unwrap();
            }
        }
    }
    is(&out.join(field_of(&index, "Filename")), &field_of(&index, "SHA256"));
    let repomd = fs::read_to_string(out.join("repodata/repomd.xml")).unwrap();
    let lists = between(&repomd, "href=\"", "\"");
    let digests = between(&repomd, "<checksum type=\"sha256\">", "<");
    assert_eq!((lists.len(), digests.len()), (3, 3));
    for (path, digest) in lists.iter().zip(digests) {
        is(&out.join(path), digest);
    }
    let primary = lists.iter().find(|path| path.contains("-primary.")).unwrap();
    let primary = succeed(Command::new("gzip").arg("-dc").arg(out.join(primary)));
    let digest = between(&primary, "pkgid=\"YES\">", "<")[0];
    is(&out.join(between(&primary, "href=\"", "\"")[0]), digest);
    [field_of(&index, "Version"), between(&primary, "ver=\"", "\"")[0].to_owned()]
}

fn field_of(index: &str, name: &str) -> String {
    between(index, &format!("\n{name}: "), "\n")[0].to_owned()
}
