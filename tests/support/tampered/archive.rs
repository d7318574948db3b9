//! Kernel archives with changed tables.

use std::fs;
use std::path::Path;

use rmpv::Value;

/// A kernel archive with its table decoded.
pub struct Archive {
    /// Header and blob.
    front: Vec<u8>,
    table: Value,
}

impl Archive {
    /// Edits the table of the archive at `path`.
    pub fn edit(path: &Path, edit: impl FnOnce(&mut Self)) {
        let bytes = fs::read(path).unwrap();
        let mut archive = Self::open(&bytes);
        edit(&mut archive);
        let mut out = archive.front;
        rmpv::encode::write_value(&mut out, &archive.table).unwrap();
        fs::write(path, out).unwrap();
    }

    fn open(bytes: &[u8]) -> Self {
        let at = usize::try_from(u64::from_le_bytes(bytes[8..16].try_into().unwrap())).unwrap();
        let table = rmpv::decode::read_value(&mut &bytes[at..]).unwrap();
        Self { front: bytes[..at].to_vec(), table }
    }

    fn row(&mut self, key: &str) -> &mut Value {
        field(field(&mut self.table, "toc"), key)
    }

    /// Removes a row, and its key if that was the last one.
    pub fn drop_row(&mut self, key: &str, target: &str) {
        let Value::Map(row) = self.row(key) else { panic!("no map") };
        row.retain(|(name, _)| name.as_str() != Some(target));
        if row.is_empty() {
            let Value::Map(rows) = field(&mut self.table, "toc") else { panic!("no map") };
            rows.retain(|(name, _)| name.as_str() != Some(key));
        }
    }

    /// Renames a key.
    pub fn rename(&mut self, key: &str, name: &str) {
        let Value::Map(rows) = field(&mut self.table, "toc") else { panic!("no map") };
        let row = rows.iter_mut().find(|(found, _)| found.as_str() == Some(key)).unwrap();
        row.0 = name.into();
    }

    /// Exchanges the rows of two keys for one target.
    pub fn exchange(&mut self, [one, other]: [&str; 2], target: &str) {
        let first = field(self.row(one), target).clone();
        let second = std::mem::replace(field(self.row(other), target), first);
        *field(self.row(one), target) = second;
    }

    /// Repeats a row under another target, which is listed first.
    pub fn copy_row(&mut self, key: &str, target: &str, again: &str) {
        let copy = field(self.row(key), target).clone();
        let Value::Map(row) = self.row(key) else { panic!("no map") };
        row.push((again.into(), copy));
        let Value::Array(listed) = field(&mut self.table, "gfx_arches") else { panic!("no array") };
        listed.insert(0, again.into());
    }
}

/// The number of rows in an archive.
pub fn rows(bytes: &[u8]) -> u64 {
    let mut archive = Archive::open(bytes);
    let rows = field(&mut archive.table, "toc").as_map().unwrap();
    rows.iter().map(|(_, row)| row.as_map().unwrap().len() as u64).sum()
}

pub fn field<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    let Value::Map(fields) = value else { panic!("{name}: no map") };
    let found = fields.iter_mut().find(|(key, _)| key.as_str() == Some(name));
    &mut found.unwrap_or_else(|| panic!("no {name}")).1
}
