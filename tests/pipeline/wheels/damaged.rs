//! Wheels that are cut, changed, or built to do harm.

use std::fs;

use serde_json::json;
use support::fat_wheels::{WheelSpec, library};

use super::refused::refuses_file;

fn plain() -> WheelSpec {
    WheelSpec::new("x", "1.0").text("x/__init__.py", "x = 1\n").file("x/_C.so", &library())
}

/// Fails unless a wheel is refused, with `words`, after `change` of its bytes.
fn refuses(wheel: &WheelSpec, words: &[&str], change: impl FnOnce(&mut Vec<u8>)) {
    let room = tempfile::tempdir().unwrap();
    let path = wheel.write(room.path());
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    refuses_file(&path, 2, words);
}

#[test]
fn truncated_wheels_are_refused() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let path = plain().write(room.path());
    let bytes = fs::read(&path).unwrap();
    let places =
        [0, 3, 21, 22, 100, bytes.len() / 2, bytes.len() - 23, bytes.len() - 22, bytes.len() - 1];
    for len in places {
        fs::write(&path, &bytes[..len]).unwrap();
        refuses_file(&path, 2, &["end record"]);
    }
}

#[test]
fn bytes_around_the_archive_are_refused() {
    support::kpack::need_python();
    refuses(&plain(), &["end record"], |bytes| bytes.push(0));
    refuses(&plain(), &["end record"], |bytes| bytes.splice(..0, *b"MZ").for_each(drop));
    // A second archive after the first; other readers take it for the wheel.
    refuses(&plain(), &["end record"], |bytes| bytes.extend(bytes.clone()));
    // Bytes in front of the first member, with offsets in the directory that account for them.
    refuses(&plain(), &["local header"], |bytes| {
        let end = bytes.len() - 22;
        let start = u32::from_le_bytes(bytes[end + 16..end + 20].try_into().unwrap());
        let mut at = start as usize;
        while bytes[at..at + 4] == *b"PK\x01\x02" {
            add(bytes, at + 42, 4);
            at += 46 + length(bytes, at + 28) + length(bytes, at + 30) + length(bytes, at + 32);
        }
        add(bytes, end + 16, 4);
        bytes.splice(..0, *b"#!/x").for_each(drop);
    });
}

fn length(bytes: &[u8], at: usize) -> usize {
    u16::from_le_bytes([bytes[at], bytes[at + 1]]) as usize
}

fn add(bytes: &mut [u8], at: usize, number: u32) {
    let old = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    bytes[at..at + 4].copy_from_slice(&(old + number).to_le_bytes());
}

#[test]
fn damaged_members_are_refused() {
    support::kpack::need_python();
    let stored = plain().set("x/_C.so", "method", 0);
    refuses(&stored, &["the member x/_C.so is damaged", "CRC-32"], |bytes| bytes[400] ^= 1);
    let name = "x/_C.so";
    refuses_as_written(
        &plain().patch(name, "crc", 7),
        &["the member x/_C.so is damaged", "CRC-32"],
    );
    refuses_as_written(
        &plain().patch(name, "size", 48_783),
        &["the member x/_C.so is damaged", "longer than the 48783 bytes"],
    );
    refuses_as_written(
        &plain().patch(name, "size", 48_785),
        &["the member x/_C.so is damaged", "its header says 48785"],
    );
    let stored = plain().set(name, "method", 0).patch(name, "size", 48_783);
    refuses_as_written(&stored, &["of x/_C.so has two sizes"]);
    // The headers of a member contradict each other.
    refuses(&plain(), &["x/__init__.py", "another size or CRC-32"], |bytes| bytes[14] ^= 1);
    refuses(&plain(), &["x/__init__.py", "another name"], |bytes| bytes[30] = b'y');
}

#[test]
fn members_that_cannot_be_read_are_refused() {
    support::kpack::need_python();
    let name = "x/__init__.py";
    refuses_as_written(&plain().patch(name, "flags", 1), &[name, "is encrypted"]);
    refuses_as_written(&plain().patch(name, "flags", 1 << 6 | 1), &[name, "is encrypted"]);
    for method in [1, 9, 12, 14, 93, 95, 99] {
        let words = [name, &format!("by method {method}"), "deflate"];
        refuses_as_written(&plain().patch(name, "method", method), &words);
    }
    let lzma = plain().member(json!({"name": "x/lzma.py", "text": "x", "method": 14}));
    refuses_as_written(&lzma, &["x/lzma.py", "by method 14"]);
}

fn refuses_as_written(wheel: &WheelSpec, words: &[&str]) {
    refuses(wheel, words, |_| ());
}

#[test]
fn wheels_that_decode_to_much_are_refused() {
    support::kpack::need_python();
    // 80 MB of zeros in about 80 kB; below 64 MiB, nothing is refused.
    let room = tempfile::tempdir().unwrap();
    let zeros = room.path().join("zeros");
    fs::File::create(&zeros).unwrap().set_len(80 << 20).unwrap();
    let wheel = plain().file("x/zeros", &zeros);
    refuses(&wheel, &["50 times"], |_| ());
    // A header that understates the size is no way around the limit.
    let lying = wheel.patch("x/zeros", "size", 1000);
    refuses(&lying, &["the member x/zeros is damaged", "longer than the 1000 bytes"], |_| ());
    let metadata = "Name: x\n".to_owned() + &"A: b\n".repeat(4 << 20);
    refuses(&plain().info("METADATA", &metadata), &["METADATA", "longer than"], |_| ());
}
