//! `<archive>.sha256sum`: the digest of a packed artifact.
//!
//! | line | meaning |
//! |---|---|
//! | 64 hexadecimal digits | the digest, where the file has one line |
//! | digits, two spaces, a file name | the digest of the file of that name, as sha256sum writes it |
//! | digits, a space, `*`, a file name | the same, as sha256sum writes it with `--binary` |
//!
//! UTF-8, LF or CRLF; empty lines have no meaning. Only the last component of a path counts. The parser
//! refuses all other lines, a file without a digest for its archive, and one with two different digests.

use std::path::{Path, PathBuf};

use rockpack_core::content::{Inputs, hex, if_there, unhex};
use rockpack_core::error::{Error, Result};

/// The suffix of a checksum file's name behind the archive's.
pub(crate) const ENDING: &str = ".sha256sum";

/// Longest checksum file that is read, in bytes: the digests of some thousand archives.
const LIMIT: u64 = 1 << 20;

/// The digest in a checksum file, for its archive.
#[derive(Debug)]
pub(crate) struct Checksum {
    path: PathBuf,
    digest: [u8; 32],
}

impl Checksum {
    /// Reads the checksum file of `archive`, if there is one, and notes it in `inputs`.
    pub fn of(archive: &Path, inputs: &mut Inputs) -> Result<Option<Self>> {
        let mut path = archive.as_os_str().to_owned();
        path.push(ENDING);
        let path = PathBuf::from(path);
        if if_there(&path, "inspect", std::fs::symlink_metadata(&path))?.is_none() {
            return Ok(None);
        }
        let content = inputs.content(&path)?;
        let bytes = content.read_vec(0..content.len(), LIMIT, "checksum file")?;
        let name = archive.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let digest = parse(&bytes, name).map_err(|error| error.file(&path))?;
        Ok(Some(Self { path, digest }))
    }

    /// Fails unless `found` is the digest.
    pub fn compare(&self, found: [u8; 32]) -> Result<()> {
        if found == self.digest {
            return Ok(());
        }
        let message = format!(
            "has the SHA-256 {}, but {} says {}",
            hex(&found),
            self.path.display(),
            hex(&self.digest)
        );
        Err(Error::malformed(message)
            .hint("the archive was damaged or replaced: fetch it again, with its .sha256sum"))
    }
}

/// The digest of the file `name` in the text of a checksum file. Each file has a line of 64 hexadecimal
/// digits, two spaces (or a space and `*`), and a path whose last component counts. Digits alone count if
/// they are the only line.
pub fn parse(bytes: &[u8], name: &str) -> Result<[u8; 32]> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Error::malformed("is not UTF-8").offset(error.valid_up_to() as u64).hint(HINT)
    })?;
    let lines: Vec<(usize, &str)> =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    let mut found: Option<[u8; 32]> = None;
    for (number, line) in &lines {
        let (digest, of) = parse_line(line).ok_or_else(|| {
            let message = "is neither a SHA-256 in hexadecimal nor one with a file name";
            Error::malformed(message).structure(format!("line {}", number + 1)).hint(HINT)
        })?;
        if of.map_or(lines.len() == 1, |of| of.rsplit('/').next() == Some(name)) {
            if found.is_some_and(|other| other != digest) {
                let message = format!("has another SHA-256 of {name} than a line before");
                let place = format!("line {}", number + 1);
                return Err(Error::malformed(message).structure(place).hint(HINT));
            }
            found = Some(digest);
        }
    }
    found.ok_or_else(|| Error::malformed(format!("has no SHA-256 of {name}")).hint(HINT))
}

const HINT: &str = "write it with sha256sum, in the folder of the archive; or remove it";

fn parse_line(line: &str) -> Option<([u8; 32], Option<&str>)> {
    let line = line.trim_end();
    let Some((digest, rest)) = line.split_once(' ') else {
        return Some((unhex(line)?, None));
    };
    let name = rest.strip_prefix([' ', '*']).filter(|name| !name.is_empty())?;
    Some((unhex(digest)?, Some(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const OTHER: &str = "0000000000000000000000000000000000000000000000000000000000000000";

    #[test]
    fn every_form_gives_the_digest() {
        let upper = DIGEST.to_uppercase();
        for text in [
            DIGEST.to_owned(),
            format!("{upper}\r\n"),
            format!("{DIGEST}  a.tar.xz\n"),
            format!("{DIGEST} *a.tar.xz\n"),
            format!("{DIGEST}  /builds/7/a.tar.xz\n\n"),
            format!("{OTHER}  b.tar.xz\n{DIGEST}  a.tar.xz\n{OTHER}  xa.tar.xz\n"),
            format!("{DIGEST}  a.tar.xz\n{upper} *./a.tar.xz\n"),
        ] {
            let digest = parse(text.as_bytes(), "a.tar.xz").map(|digest| hex(&digest));
            assert_eq!(digest.unwrap(), DIGEST, "{text}");
        }
    }

    /// Each cut or change is refused, or gives the digest that the bytes now have for the archive.
    #[test]
    fn damage_never_gives_the_digest_of_another_file() {
        for whole in [
            format!("{DIGEST}\n"),
            format!("{DIGEST}  a.tar.xz\n"),
            format!("{DIGEST} *a.tar.xz\n{OTHER}  b.tar.xz\n{OTHER}  xa.tar.xz\n"),
        ] {
            for end in 0..whole.len() {
                let digest = parse(&whole.as_bytes()[..end], "a.tar.xz");
                assert!(digest.is_err() || hex(&digest.unwrap()) == DIGEST, "{whole} cut at {end}");
            }
            let mut bytes = whole.clone().into_bytes();
            for bit in 0..8 * bytes.len() {
                bytes[bit / 8] ^= 1 << (bit % 8);
                let digest = parse(&bytes, "a.tar.xz");
                let of_another = digest.is_ok_and(|digest| hex(&digest) == OTHER);
                assert!(!of_another, "bit {bit} of {whole}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn what_says_nothing_or_two_things_about_the_archive_is_refused() {
        for text in [
            String::new(),
            DIGEST[1..].to_owned(),
            format!("{DIGEST} a.tar.xz"),
            format!("{DIGEST}  b.tar.xz"),
            format!("{DIGEST}  a.tar.xz\nmore"),
            format!("{DIGEST}\n{DIGEST}\n"),
            format!("SHA256 (a.tar.xz) = {DIGEST}"),
            format!("{DIGEST}  a.tar.xz\n{OTHER}  a.tar.xz\n"),
            format!("{DIGEST}  old/a.tar.xz\n{OTHER}  new/a.tar.xz\n"),
        ] {
            assert!(parse(text.as_bytes(), "a.tar.xz").is_err(), "{text}");
        }
        assert!(parse(b"\xff", "a.tar.xz").is_err());
    }
}
