//! Archives and markers for the tests, damaged ones too.

use std::fs;
use std::path::{Path, PathBuf};

use rmpv::Value;

/// A draft of an archive: its table and the bytes before it.
pub struct Draft {
    pub version: u32,
    pub scheme: &'static str,
    pub arches: Vec<String>,
    pub blob: Vec<u8>,
    /// Key, target, ordinal, original size.
    pub rows: Vec<(String, String, Value, Value)>,
    pub extra: Vec<(Value, Value)>,
    pub zstd_offset: Value,
    pub zstd_size: Option<Value>,
    pub blobs: Vec<(u64, u64)>,
}

/// Compressible bytes that differ by seed.
pub fn code(seed: u32, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let bytes = (0..len).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 26) as u8
    });
    bytes.collect()
}

/// The FNV-1a digest, as the C program prints it.
pub fn digest(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:x}")
}

fn text(text: &str) -> Value {
    Value::from(text)
}

/// One zstd frame.
pub fn frame(content: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(content, 3).unwrap()
}

impl Draft {
    /// An archive with a frame for each of `contents`. Content N is the code object of wrapper N for all of
    /// `arches`.
    pub fn zstd(arches: &[&str], contents: &[Vec<u8>]) -> Self {
        let frames: Vec<Vec<u8>> = contents.iter().map(|content| frame(content)).collect();
        let mut blob = (frames.len() as u32).to_le_bytes().to_vec();
        for frame in &frames {
            blob.extend((frame.len() as u32).to_le_bytes());
            blob.extend(frame);
        }
        let mut draft = Self::rows("zstd-per-kernel", arches, contents);
        draft.blob = blob;
        draft
    }

    /// An archive of `contents` as in [`zstd`](Self::zstd), but uncompressed.
    pub fn stored(arches: &[&str], contents: &[Vec<u8>]) -> Self {
        let mut draft = Self::rows("none", arches, contents);
        for content in contents {
            draft.blobs.push((64 + draft.blob.len() as u64, content.len() as u64));
            draft.blob.extend(content);
        }
        draft
    }

    fn rows(scheme: &'static str, arches: &[&str], contents: &[Vec<u8>]) -> Self {
        let mut rows = Vec::new();
        for (index, content) in contents.iter().enumerate() {
            for arch in arches {
                let (ordinal, size) = (Value::from(index), Value::from(content.len()));
                rows.push((format!("lib/x.so#{index}"), (*arch).to_owned(), ordinal, size));
            }
        }
        let arches = arches.iter().map(|arch| (*arch).to_owned()).collect();
        Self {
            version: 1,
            scheme,
            arches,
            blob: Vec::new(),
            rows,
            extra: Vec::new(),
            zstd_offset: 64.into(),
            zstd_size: None,
            blobs: Vec::new(),
        }
    }

    fn toc(&self) -> Value {
        let mut keys: Vec<(Value, Value)> = Vec::new();
        for (key, target, ordinal, size) in &self.rows {
            let mut row = vec![(text("type"), text("hsaco"))];
            row.extend((!ordinal.is_nil()).then(|| (text("ordinal"), ordinal.clone())));
            row.extend((!size.is_nil()).then(|| (text("original_size"), size.clone())));
            let row = (text(target), Value::Map(row));
            match keys.last_mut().filter(|(last, _)| last.as_str() == Some(key)) {
                Some((_, Value::Map(rows))) => rows.push(row),
                _ => keys.push((text(key), Value::Map(vec![row]))),
            }
        }
        Value::Map(keys)
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut map = self.extra.clone();
        map.push((text("format_version"), self.version.into()));
        let arches = self.arches.iter().map(|arch| text(arch)).collect();
        map.push((text("gfx_arches"), Value::Array(arches)));
        map.push((text("compression_scheme"), text(self.scheme)));
        let size = self.zstd_size.clone().unwrap_or_else(|| self.blob.len().into());
        map.push((text("zstd_offset"), self.zstd_offset.clone()));
        map.push((text("zstd_size"), size));
        let blobs = self.blobs.iter().map(|(offset, size)| {
            let pairs = vec![(text("offset"), (*offset).into()), (text("size"), (*size).into())];
            Value::Map(pairs)
        });
        map.push((text("blobs"), Value::Array(blobs.collect())));
        map.push((text("toc"), self.toc()));
        let mut bytes = b"KPAK".to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend((64 + self.blob.len() as u64).to_le_bytes());
        bytes.resize(64, 0);
        bytes.extend(&self.blob);
        rmpv::encode::write_value(&mut bytes, &Value::Map(map)).unwrap();
        bytes
    }

    /// Writes the archive to `path`.
    pub fn write(&self, path: impl AsRef<Path>) -> PathBuf {
        fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
        fs::write(&path, self.bytes()).unwrap();
        path.as_ref().to_owned()
    }
}

/// Writes the marker of `lib/x.so`.
pub fn marker(folder: &Path, paths: &[&str]) -> PathBuf {
    let paths = paths.iter().map(|path| text(path)).collect();
    let map = vec![
        (text("kernel_name"), text("lib/x.so")),
        (text("kpack_search_paths"), Value::Array(paths)),
    ];
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &Value::Map(map)).unwrap();
    let file = folder.join("marker");
    fs::write(&file, bytes).unwrap();
    file
}
