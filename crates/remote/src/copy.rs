//! Downloads of objects into files.

use std::io::{BufRead as _, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockpack_core::content::{Content, exists, hex, list};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::Budget;
use rockpack_files::{lock, make_folders, parent_folder, remove_file, rename, sync};
use sha2::{Digest as _, Sha256};

use crate::object::Object;

const PARTIAL: &str = ".part";

impl Object {
    /// Writes the object to a new file at `path`, which appears when it is complete and has the SHA-256 `digest`, if
    /// one is given. Resumes a partial file of an earlier run. Calls `on_bytes` with the number of bytes that are there.
    pub fn copy_to(
        self: &Arc<Self>,
        path: &Path,
        digest: Option<[u8; 32]>,
        budget: &Budget,
        on_bytes: impl Fn(u64),
    ) -> Result<()> {
        make_folders(parent_folder(path))?;
        let partial = &self.partial(path)?;
        let failed = |doing| move |error| Error::io(partial, doing, error);
        let mut file = lock::open(partial)?;
        lock::wait(&file, partial)?;
        if exists(path)? {
            // Another run was faster.
            return remove_file(partial);
        }
        let (size, mut sum, mut window) = (self.size()?, Sha256::new(), vec![0; 1 << 20]);
        let mut at = 0;
        loop {
            match file.read(&mut window).map_err(failed("read"))? {
                0 => break,
                len => sum.update(&window[..len]),
            }
        }
        let there = file.stream_position().map_err(failed("read"))?;
        if there <= size {
            at = there;
        } else {
            sum = Sha256::new();
            file.set_len(0).map_err(failed("write"))?;
            file.seek(SeekFrom::Start(0)).map_err(failed("write"))?;
        }
        on_bytes(at);
        let mut reader = self.reader(at, budget)?;
        loop {
            let part = reader.fill_buf().map_err(|error| Error::io(self.path(), "read", error))?;
            if part.is_empty() {
                break;
            }
            sum.update(part);
            file.write_all(part).map_err(failed("write"))?;
            let len = part.len();
            reader.consume(len);
            on_bytes(len as u64);
        }
        let found: [u8; 32] = sum.finalize().into();
        if let Some(wanted) = digest.filter(|wanted| *wanted != found) {
            remove_file(partial)?;
            let (found, wanted) = (hex(&found), hex(&wanted));
            let message = format!("has the SHA-256 {found}, but its .sha256sum says {wanted}");
            let hint = "the object or its checksum was replaced, or damaged on the way: try again";
            return Err(Error::new(Kind::Malformed, message).file(self.path()).hint(hint));
        }
        sync(partial)?;
        rename(partial, path)
    }

    /// The path of the partial file of this version of the object. Removes partial files of other versions.
    fn partial(&self, path: &Path) -> Result<PathBuf> {
        let (folder, name) =
            (parent_folder(path), path.file_name().unwrap_or_default().to_string_lossy());
        let version = hex(&Sha256::digest(self.version()?));
        let start = format!(".{name}.");
        let own = format!("{start}{}{PARTIAL}", &version[..16]);
        for entry in list(folder)? {
            let other = entry?.file_name().to_string_lossy().into_owned();
            if other.starts_with(&start) && other.ends_with(PARTIAL) && other != own {
                remove_file(&folder.join(other))?;
            }
        }
        Ok(folder.join(own))
    }
}

/// Whether the file at `path` exists and has this SHA-256.
pub fn is_complete_copy(path: &Path, digest: &[u8; 32]) -> Result<bool> {
    Ok(exists(path)? && Content::open(path, &Budget::unlimited())?.sha256()? == *digest)
}
