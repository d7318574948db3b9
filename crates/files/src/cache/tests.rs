use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use super::*;
use rockpack_report::Code;

fn key(name: &str) -> Key {
    let mut maker = KeyBuilder::new("test");
    maker.text(name);
    maker.finish()
}

fn keep(cache: &Cache, name: &str, body: &[u8]) {
    cache.keep(&key(name), name.as_bytes(), body.len() as u64, &mut &body[..]);
}

fn body(cache: &Cache, name: &str) -> Option<Vec<u8>> {
    let entry = cache.find(&key(name))?;
    assert_eq!(entry.facts(), name.as_bytes());
    let mut body = Vec::new();
    cache.copy(&entry, &mut body).unwrap().then_some(body)
}

fn path_of(cache: &Cache, place: &[String; 2]) -> PathBuf {
    storage::path_of(&cache.folder, place)
}

/// Sets the last use of an entry to `minutes` ago.
fn age(cache: &Cache, name: &str, minutes: u64) {
    let file = fs::File::open(path_of(cache, &key(name).place())).unwrap();
    let then = SystemTime::now() - Duration::from_secs(60 * minutes);
    file.set_times(FileTimes::new().set_modified(then)).unwrap();
}

#[test]
fn keys_tell_lists_of_pieces_apart() {
    assert_eq!(key_of_pieces(&["ab", "c"]), key_of_pieces(&["ab", "c"]));
    assert_ne!(key_of_pieces(&["ab", "c"]), key_of_pieces(&["a", "bc"]));
    assert_ne!(key_of_pieces(&["a", ""]), key_of_pieces(&["a"]));
}

fn key_of_pieces(pieces: &[&str]) -> Key {
    let mut maker = KeyBuilder::new("test");
    for piece in pieces {
        maker.text(piece);
    }
    maker.finish()
}

#[test]
fn what_was_not_used_for_the_longest_time_goes_first() {
    let folder = tempfile::tempdir().unwrap();
    let one = entry_size(b"a", 1000);
    let cache = Cache::open(folder.path(), 4 * one).unwrap();
    for (name, minutes) in [("a", 40), ("b", 30), ("c", 20), ("d", 10)] {
        keep(&cache, name, &[7; 1000]);
        age(&cache, name, minutes);
    }
    assert!(body(&cache, "a").is_some(), "which is a use of it");
    keep(&cache, "e", &[8; 1000]);
    let left = ["a", "b", "c", "d", "e"].map(|name| body(&cache, name).is_some());
    // The fifth entry needs the room of one; a sixteenth of the limit is freed in addition.
    assert_eq!(left, [true, false, false, true, true]);
    assert!(cache.findings().is_empty());
    // A smaller limit holds at once.
    let cache = Cache::open(folder.path(), one).unwrap();
    let left = ["a", "d", "e"].map(|name| body(&cache, name).is_some());
    assert_eq!(left.iter().filter(|left| **left).count(), 0, "{left:?}");
    keep(&cache, "large", &[0; 2000]);
    assert_eq!(body(&cache, "large"), None);
}

#[test]
fn an_entry_that_is_evicted_can_still_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path(), 1 << 20).unwrap();
    keep(&cache, "a", b"bytes");
    let entry = cache.find(&key("a")).unwrap();
    drop(Cache::open(folder.path(), 0).unwrap());
    assert_eq!(body(&cache, "a"), None);
    let mut read = Vec::new();
    assert!(cache.copy(&entry, &mut read).unwrap());
    assert_eq!(read, b"bytes");
}

#[test]
fn every_damage_is_found_and_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path(), 1 << 20).unwrap();
    keep(&cache, "a", b"bytes of an entry");
    let path = path_of(&cache, &key("a").place());
    let whole = fs::read(&path).unwrap();
    let mut found = 0;
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        assert_eq!(body(&cache, "a"), None, "cut to {cut}");
        let mut flipped = whole.clone();
        flipped[cut] ^= 1;
        fs::write(&path, flipped).unwrap();
        assert_eq!(body(&cache, "a"), None, "flipped at {cut}");
        found += 2;
        assert!(!path.exists());
    }
    let findings = cache.findings();
    assert_eq!(findings.len(), found);
    assert!(findings.iter().all(|finding| finding.code() == Some(Code::CacheEntryDamaged)));
    // Another entry under its name.
    keep(&cache, "b", b"other bytes");
    fs::rename(path_of(&cache, &key("b").place()), &path).unwrap();
    assert_eq!(body(&cache, "a"), None);
    keep(&cache, "a", b"bytes of an entry");
    assert_eq!(body(&cache, "a").unwrap(), b"bytes of an entry");
}

#[test]
fn an_entry_with_facts_of_another_kind_is_removed_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path(), 1 << 20).unwrap();
    keep(&cache, "a", b"bytes");
    cache.discard_invalid(&cache.find(&key("a")).unwrap());
    assert_eq!(body(&cache, "a"), None);
    let codes: Vec<Code> = cache.findings().iter().filter_map(Finding::code).collect();
    assert_eq!(codes, [Code::CacheEntryDamaged]);
    keep(&cache, "a", b"bytes");
    assert_eq!(body(&cache, "a").unwrap(), b"bytes");
}

#[test]
fn facts_that_could_not_be_read_again_are_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path(), 1 << 40).unwrap();
    let facts = vec![0; usize::try_from(FACTS_LIMIT).unwrap() + 1];
    cache.keep(&key("a"), &facts, 5, &mut &b"bytes"[..]);
    assert!(cache.find(&key("a")).is_none());
    assert!(cache.findings().is_empty());
}

#[test]
fn what_a_dead_run_was_writing_goes_and_what_a_live_one_writes_stays() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path(), 1 << 20).unwrap();
    fs::write(folder.path().join("new/dead-0"), [1; 100]).unwrap();
    let path = path_of(&cache, &key("a").place());
    let reservation =
        cache.storage.as_ref().unwrap().reserve(key("a").place(), 500).unwrap().unwrap();
    let other = Cache::open(folder.path(), 1 << 20).unwrap();
    let names = fs::read_dir(folder.path().join("new")).unwrap().count();
    assert_eq!(names, 1);
    // An entry that a live run is writing counts.
    assert!(
        Cache::open(folder.path(), 600)
            .unwrap()
            .storage
            .as_ref()
            .unwrap()
            .reserve(key("a").place(), 200)
            .unwrap()
            .is_none()
    );
    let body = b"alive";
    let (key, len) = (key("a"), body.len() as u64);
    reservation.fill(|file| write_entry(file, &key, b"a", len, &mut &body[..])).unwrap();
    assert!(path.exists());
    keep(&other, "b", b"more");
    assert!(super::tests::body(&other, "b").is_some());
}

/// A user with write access to the parent folder moves the cache away, and puts a link in its place.
#[test]
fn a_link_in_the_place_of_an_open_cache_leads_nowhere() {
    let storage = tempfile::tempdir().unwrap();
    let [folder, moved, victim] =
        ["cache", "moved", "victim"].map(|name| storage.path().join(name));
    let cache = Cache::open(&folder, entry_size(b"a", 9)).unwrap();
    keep(&cache, "a", b"old bytes");
    // The target of the link has all names of a cache, with an entry to evict and one to find.
    assert!(Command::new("cp").arg("-r").args([&folder, &victim]).status().unwrap().success());
    let [below, name] = key("a").place();
    let entry = victim.join(below).join(name);
    fs::write(&entry, "of somebody").unwrap();
    let before: Vec<_> = walk(&victim);
    fs::rename(&folder, &moved).unwrap();
    symlink(&victim, &folder).unwrap();
    assert_eq!(body(&cache, "a").unwrap(), b"old bytes");
    keep(&cache, "b", b"new bytes");
    assert_eq!((body(&cache, "a"), body(&cache, "b").unwrap()), (None, b"new bytes".to_vec()));
    assert_eq!(walk(&victim), before);
    assert!(cache.findings().is_empty());
    let [below, name] = key("b").place();
    assert!(moved.join(below).join(name).is_file());
    // A link is neither an entry nor a folder of entries.
    let [below, name] = key("b").place();
    let link = moved.join(&below).join(&name);
    fs::remove_file(&link).unwrap();
    symlink(&entry, &link).unwrap();
    assert!(body(&cache, "b").is_none());
    assert!(cache.findings()[0].to_string().contains("symbolic link"));
    assert_eq!(walk(&victim), before);
}

/// All files below a folder, with their bytes.
fn walk(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => open.push(entry.path()),
                false => found.push((entry.path(), fs::read(entry.path()).unwrap())),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn what_cannot_be_written_is_one_finding() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path(), 1 << 20).unwrap();
    fs::remove_dir(folder.path().join("new")).unwrap();
    keep(&cache, "a", b"bytes");
    keep(&cache, "b", b"bytes");
    let findings = cache.findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].code(), Some(Code::CacheUnusable));
}
