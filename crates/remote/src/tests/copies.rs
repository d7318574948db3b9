//! Objects as files: begun, continued, and refused.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rockpack_core::content::hex;
use rockpack_core::run::threads;
use sha2::{Digest as _, Sha256};

use super::*;
use crate::is_complete_copy;
use crate::object::CHUNK;

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Copies, and returns the bytes that the progress was told of.
fn copy(object: &Arc<Object>, path: &Path, digest: Option<[u8; 32]>) -> Result<u64> {
    let told = AtomicU64::new(0);
    object.copy_to(path, digest, &Budget::unlimited(), |bytes| {
        told.fetch_add(bytes, Ordering::Relaxed);
    })?;
    Ok(told.into_inner())
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn objects_of_all_sizes_become_files() {
    let folder = tempfile::tempdir().unwrap();
    for len in [0, 1, CHUNK, CHUNK + 1] {
        let bytes = content(len as usize);
        let body = bytes.clone();
        let server = Server::new(move |request| match &*request.target {
            "/ranges" => ranged(request, &body, TAG),
            _ => Reply::ok(&body),
        });
        for target in ["/ranges", "/none"] {
            let path = folder.path().join(format!("{len}")).join(&target[1..]);
            assert_eq!(copy(&server.object(target), &path, Some(digest(&bytes))).unwrap(), len);
            assert!(
                fs::read(&path).unwrap() == bytes
                    && is_complete_copy(&path, &digest(&bytes)).unwrap()
            );
            assert!(!is_complete_copy(&path, &[0; 32]).unwrap());
            // It is there: nothing is read.
            let before = server.requests(target).len();
            copy(&server.object(target), &path, None).unwrap();
            assert_eq!(server.requests(target).len(), before + 1);
        }
        assert_eq!(names(&folder.path().join(format!("{len}"))).len(), 2);
    }
    assert!(!is_complete_copy(&folder.path().join("absent"), &[0; 32]).unwrap());
}

/// The server refuses after half of the bytes; the next run asks for the rest alone.
#[test]
fn a_copy_that_broke_off_is_continued() {
    let (bytes, folder) = (content(PROGRESS), tempfile::tempdir().unwrap());
    let path = folder.path().join("file");
    let body = bytes.clone();
    let server = Server::new(move |request| match request.nth {
        1 => ranged(request, &body, TAG).cut_body(PROGRESS / 2),
        2 => Reply::new("403 Forbidden", &[], ""),
        _ => ranged(request, &body, TAG),
    });
    fails_at(copy(&server.object("/"), &path, None), Kind::Io, &server, "/", "403 Forbidden");
    // What came before the error is not in the file: a piece is whole before it is written.
    let left = names(folder.path());
    let [partial] = left.as_slice() else { panic!("{left:?}") };
    assert!(partial.starts_with(".file.") && partial.ends_with(".part"), "{partial}");
    fs::write(folder.path().join(partial), &bytes[..300]).unwrap();
    let told = copy(&server.object("/"), &path, Some(digest(&bytes))).unwrap();
    assert_eq!((told, names(folder.path())), (PROGRESS as u64, vec!["file".to_owned()]));
    assert!(fs::read(&path).unwrap() == bytes);
    let last = server.requests("/").pop().unwrap();
    assert_eq!(last.range(), Some((300, PROGRESS as u64 - 1)));
}

/// What is left of another version, or is longer than the object, is no beginning of it.
#[test]
fn what_is_left_of_other_objects_is_not_continued() {
    let (bytes, folder) = (content(PROGRESS), tempfile::tempdir().unwrap());
    let path = folder.path().join("file");
    let body = bytes.clone();
    let server = Server::new(move |request| match (&*request.target, request.nth) {
        ("/", 0) => ranged(request, &body, "\"old\""),
        ("/", 1) => Reply::new("403 Forbidden", &[], ""),
        _ => ranged(request, &body, TAG),
    });
    copy(&server.object("/"), &path, None).unwrap_err();
    let left = names(folder.path());
    let [old] = left.as_slice() else { panic!("{left:?}") };
    fs::write(folder.path().join(old), [0; 100]).unwrap();
    fs::write(folder.path().join(".file.other"), "").unwrap();
    copy(&server.object("/"), &path, Some(digest(&bytes))).unwrap();
    assert!(fs::read(&path).unwrap() == bytes && !folder.path().join(old).exists());
    assert!(server.requests("/").pop().unwrap().range().is_none());
    // Only its own are removed.
    assert_eq!(names(folder.path()).len(), 2);

    let path = folder.path().join("longer");
    let version = hex(&Sha256::digest(server.object("/longer").version().unwrap()));
    let partial = folder.path().join(format!(".longer.{}.part", &version[..16]));
    fs::write(partial, content(PROGRESS + 1)).unwrap();
    assert_eq!(copy(&server.object("/longer"), &path, None).unwrap(), PROGRESS as u64);
    assert!(fs::read(&path).unwrap() == bytes);
    assert_eq!(names(folder.path()).len(), 3);
}

/// Wrong bytes from the server, and wrong ones from an earlier run, which a second try overcomes.
#[test]
fn a_wrong_digest_leaves_nothing() {
    let (bytes, folder) = (content(PROGRESS), tempfile::tempdir().unwrap());
    let path = folder.path().join("file");
    let body = bytes.clone();
    let server = Server::new(move |request| ranged(request, &body, TAG));
    let wrong = [7; 32];
    let text = format!(
        "has the SHA-256 {}, but its .sha256sum says {}",
        hex(&digest(&bytes)),
        hex(&wrong)
    );
    let copied = copy(&server.object("/"), &path, Some(wrong));
    fails_at(copied, Kind::Malformed, &server, "/", &text);
    assert_eq!(names(folder.path()), Vec::<String>::new());
    let version = hex(&Sha256::digest(server.object("/").version().unwrap()));
    let partial = folder.path().join(format!(".file.{}.part", &version[..16]));
    fs::write(&partial, vec![0; PROGRESS]).unwrap();
    let copied = copy(&server.object("/"), &path, Some(digest(&bytes)));
    fails(copied, Kind::Malformed, "has the SHA-256");
    assert_eq!(names(folder.path()), Vec::<String>::new());
    copy(&server.object("/"), &path, Some(digest(&bytes))).unwrap();
    assert!(fs::read(&path).unwrap() == bytes);
}

/// One run has the lock of the partial file, and the others find what it made.
#[test]
fn runs_at_the_same_time_make_one_file() {
    let (bytes, folder) = (content(CHUNK as usize / 4), tempfile::tempdir().unwrap());
    let path = folder.path().join("file");
    let body = bytes.clone();
    let server = Server::new(move |request| ranged(request, &body, TAG));
    let copied = threads::each(&[(); 8], 8, |()| {
        copy(&server.object("/"), &path, Some(digest(&bytes))).unwrap()
    });
    copied.unwrap();
    assert!(fs::read(&path).unwrap() == bytes);
    assert_eq!(names(folder.path()), ["file"]);
}
