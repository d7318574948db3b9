//! The texts of a wheel, chosen by the first byte: its name, RECORD, METADATA, WHEEL. Written anew, each is
//! read as the same.

use rockpack_archive::wheel::{Metadata, Record, WheelFile, WheelName, normalized};

pub fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => name(bytes),
        1 => record(bytes),
        2 => metadata(bytes),
        _ => wheel_file(bytes),
    }
}

fn name(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some(name) = super::read(text.parse::<WheelName>()) else {
        return;
    };
    assert_eq!(name.to_string(), text);
    let tags = name.pythons.len() * name.abis.len() * name.platforms.len();
    // A long name has many tags: each is as long as three words of it.
    if tags < 10_000 {
        assert_eq!(name.tags().len(), tags);
    }
    let plain = normalized(&name.distribution);
    assert_eq!(normalized(&plain), plain);
    if let Some(version) = name.parsed_version() {
        assert_eq!(version.to_string().parse().ok(), Some(version));
    }
}

fn record(bytes: &[u8]) {
    let Some(record) = super::read(Record::parse(bytes)) else {
        return;
    };
    let text: String = record.rows.iter().map(|(path, row)| row.line(path)).collect();
    assert_eq!(Record::parse(text.as_bytes()).unwrap(), record);
}

fn metadata(bytes: &[u8]) {
    let Some(old) = super::read(Metadata::parse(bytes)) else { return };
    let new = old.with("Provides-Extra: device-gfx942\n");
    let new = Metadata::parse(new.as_bytes()).expect("what was added to is read");
    assert_eq!((new.name(), new.version()), (old.name(), old.version()));
    let extras: Vec<String> = old.extras().chain(["device-gfx942".to_owned()]).collect();
    assert_eq!(new.extras().collect::<Vec<_>>(), extras);
    let required = |metadata: &Metadata| metadata.lines("Requires-Dist");
    assert_eq!(required(&new), required(&old));
}

fn wheel_file(bytes: &[u8]) {
    let Some(old) = super::read(WheelFile::parse(bytes)) else {
        return;
    };
    let name: WheelName = "a-1-2b-py2.py3-none-any.whl".parse().unwrap();
    let new = WheelFile::parse(old.of(&name, "fuzz").as_bytes()).unwrap();
    assert_eq!(new.is_purelib, old.is_purelib);
    assert_eq!((new.tags(), new.build()), (WheelFile::tags_of(&name), Some("2b")));
}
