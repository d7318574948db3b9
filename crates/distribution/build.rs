//! Compresses the tables in `config/distros`, which are compiled in: a sixth of their size.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;

const TABLES: &str = "../../config/distros";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={TABLES}");
    let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let entries = fs::read_dir(TABLES)?.map(|entry| Ok(entry?.path()));
    let mut paths: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let mut list = String::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let packed = folder.join(format!("{name}.gz"));
        let mut encoder = GzEncoder::new(File::create(&packed)?, Compression::best());
        encoder.write_all(&fs::read(&path)?)?;
        encoder.finish()?;
        list.push_str(&format!("({name:?}, include_bytes!({packed:?})),\n"));
    }
    fs::write(folder.join("tables.rs"), format!("&[\n{list}]\n"))
}
