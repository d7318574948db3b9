//! Packages that are not installed: a folder of `.deb` files, or a package list of apt with its pool.
//!
//! A folder of `.deb` files may have a package list, too: its packages count by their names alone. Without their
//! files nothing is known of their libraries and programs.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rockpack_archive::deb::{
    ControlFields, DebReader, compare_versions, control_texts, each_owned_path, parse_control,
    parse_fields,
};
use rockpack_core::compression::{Decoder, Method};
use rockpack_core::content::{Content, is_file, list, open_file};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::Budget;

use crate::LIST;
use crate::inventory::{ARCHITECTURE, Inventory, SourcePackage};
use crate::make;
use crate::table::{is_program, merged};

/// Folders in which the loader of every system looks for libraries.
const LINKER_PATHS: [&str; 3] = ["usr/lib", "usr/lib/x86_64-linux-gnu", "usr/lib64"];

/// The package whose file names the distribution, and the file.
const RELEASE: (&str, &str) = ("base-files", "usr/lib/os-release");

/// Longest package list in bytes; Debian's has 50 MB.
const LIST_MAX: u64 = 1 << 30;

/// What to do about a list that cannot be read.
const COMPRESSION_HINT: &str =
    "a package list is plain text, or compressed with the extension .gz, .xz, .zst or .lz4";

/// Longest `os-release` in bytes.
const RELEASE_MAX: u64 = 1 << 16;

/// The table of the `.deb` files in a folder.
pub(crate) fn folder_table(folder: &Path) -> Result<String> {
    let (mut files, mut listed) = (Vec::new(), Vec::new());
    for entry in list(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".deb") {
            files.push(path);
        } else if name.starts_with(LIST) {
            listed.extend(own_list(&path)?.into_iter().map(|(package, _)| package));
        }
    }
    if files.is_empty() {
        let message = "has neither a database of dpkg (var/lib/dpkg/status) or rpm nor .deb files";
        let hint = "name the root of an installed system, a folder of .deb files, or a package list of apt \
                    (`Packages`, `Packages.xz`)";
        return Err(Error::new(Kind::Usage, message).file(folder).hint(hint));
    }
    table(files, listed, folder)
}

/// The table of the packages in the list at `path`, whose files are in the folder of the list or in one above it.
pub(crate) fn list_table(path: &Path) -> Result<String> {
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    for (package, file) in own_list(path)? {
        let mut places = path.ancestors().skip(1).map(|folder| folder.join(&file));
        match places.find(|place| is_file(place).unwrap_or(false)) {
            Some(place) => files.push(place),
            None => missing.push(package),
        }
    }
    if files.is_empty() {
        let hint =
            "name the list inside of its repository, as in dists/SUITE/main/binary-amd64/Packages";
        let message = "no package file of the list was found";
        return Err(Error::new(Kind::Usage, message).file(path).hint(hint));
    }
    table(files, missing, path)
}

fn table(mut paths: Vec<PathBuf>, listed: Vec<SourcePackage>, at: &Path) -> Result<String> {
    paths.sort();
    let read = paths.par_iter().map(|path| {
        read_package(path).map_err(|error| error.context(format!("reading {}", path.display())))
    });
    let mut inventory = Inventory { packages: listed, ..Inventory::default() };
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in read.collect::<Vec<_>>() {
        let (package, os_release) = file?;
        if package.name == RELEASE.0 {
            inventory.set_os_release(&os_release);
        }
        for library in &package.libraries {
            found.entry(library.clone()).or_default().push(package.name.clone());
        }
        inventory.packages.push(package);
    }
    // Of two versions of a package, the higher one counts.
    inventory.packages.sort_by(|one, other| compare_versions(&other.version, &one.version));
    // Of several packages with one library, that with the plainest name comes first.
    found.values_mut().for_each(|names| names.sort_by_key(|name| (name.len(), name.clone())));
    make::table(&inventory, at, |soname| Ok(found.get(soname).cloned()))
}

/// The packages of a list, all of which have to be for the architecture of tables; see [`read_list`].
fn own_list(path: &Path) -> Result<Vec<(SourcePackage, String)>> {
    let packages = read_list(path)?.into_iter().zip(1..);
    let own = packages.map(|((package, file), number)| {
        Ok((package.ok_or_else(|| other_architecture(path, number))?, file))
    });
    own.collect()
}

/// The packages of a list, each with the path of its file in the repository; `None` for one of another architecture.
pub(crate) fn read_list(path: &Path) -> Result<Vec<(Option<SourcePackage>, String)>> {
    let text = read_packed(path)?;
    let read = read_paragraphs(&text, path, "a package list", COMPRESSION_HINT);
    let packages = read.map(|read| {
        let (package, fields) = read?;
        Ok((package, fields.get("Filename").cloned().unwrap_or_default()))
    });
    packages.collect()
}

/// Reads the paragraphs `of` a file at `path`: packages as [`SourcePackage::new`] has them, and their fields.
pub(crate) fn read_paragraphs(
    text: &str,
    path: &Path,
    of: &str,
    hint: &str,
) -> impl Iterator<Item = Result<(Option<SourcePackage>, ControlFields)>> {
    let paragraphs = text.split("\n\n").map(|text| text.trim_matches('\n'));
    paragraphs.filter(|text| !text.is_empty()).zip(1..).map(move |(paragraph, number)| {
        let read = parse_fields(paragraph);
        let read = read.and_then(|fields| Ok((SourcePackage::new(&fields)?, fields)));
        read.map_err(|error| {
            error.file(path).context(format!("reading paragraph {number} of {of}")).hint(hint)
        })
    })
}

/// The text of a file that may be compressed, as the end of its name says.
fn read_packed(path: &Path) -> Result<String> {
    let io = |error| Error::io(path, "read", error).hint(COMPRESSION_HINT);
    let source = BufReader::new(open_file(path).map_err(io)?);
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    let decoder: Box<dyn Read> = if ending == "lz4" {
        Box::new(lz4_flex::frame::FrameDecoder::new(source))
    } else {
        let method = Method::of_extension(&ending).unwrap_or(Method::Stored);
        Box::new(Decoder::of_streams(source, method)?)
    };
    let mut text = Vec::new();
    decoder.take(LIST_MAX).read_to_end(&mut text).map_err(io)?;
    // The names of people may be in old encodings, and do not matter.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The package in the file at `path`, and the `os-release` in it.
fn read_package(path: &Path) -> Result<(SourcePackage, String)> {
    let content = Content::open(path, &Budget::unlimited())?;
    let texts = control_texts(&content, &["control", "symbols", "shlibs", "postinst"])?;
    let text = |name: &str| texts.get(name).map(|text| text.to_string()).unwrap_or_default();
    let package = SourcePackage::new(&parse_control(&text("control"))?)?;
    let mut package = package.ok_or_else(|| other_architecture(path, 1))?;
    package.symbols = vec![text("symbols")];
    package.shlibs = vec![text("shlibs")];
    each_owned_path(&content, |path, _| {
        let path = merged(path);
        let Some((folder, name)) = path.rsplit_once('/') else { return };
        if LINKER_PATHS.contains(&folder) {
            package.libraries.insert(name.to_owned());
        }
        if is_program(&path) {
            package.programs.push(path);
        }
    })?;
    // Libraries and programs may be links that the package makes when it is installed.
    let postinst = text("postinst");
    let words = postinst.split_whitespace().map(|word| word.trim_matches(['"', '\'', ';', '\\']));
    let mut previous = "";
    // A backslash at the end of a line is no word.
    for word in words.filter(|word| !word.is_empty()) {
        let path = merged(word);
        let (_, name) = path.rsplit_once('/').unwrap_or_default();
        if name.contains(".so") {
            package.libraries.insert(name.to_owned());
        }
        let is_offered = ["--install", "--slave"].contains(&previous) && !word.contains('$');
        if is_offered && is_program(&path) {
            package.alternatives.push(path);
        }
        previous = word;
    }
    let mut os_release = String::new();
    if package.name == RELEASE.0 {
        DebReader::open(content)?.visit(&mut |read, source| {
            if *read.entry.path == *RELEASE.1 {
                let read = source.take(RELEASE_MAX).read_to_string(&mut os_release);
                read.map_err(|error| Error::io(path, "read os-release of", error))?;
            }
            Ok(())
        })?;
    }
    Ok((package, os_release))
}

/// The error about the package `number` in the file at `path`.
pub(crate) fn other_architecture(path: &Path, number: usize) -> Error {
    let message = format!("package {number} is not for the architecture {ARCHITECTURE}");
    Error::unsupported(message)
        .file(path)
        .hint("rockpack makes packages for x86-64: name those of amd64")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use lz4_flex::frame::FrameEncoder;

    use super::*;

    const PACKAGES: &str = "Package: a\nVersion: 1\nArchitecture: amd64\nFilename: pool/a.deb\n\n\n\
                            Package: b\nVersion: 2\nArchitecture: i386\n";

    /// Docker's images let apt compress its lists by lz4.
    #[test]
    fn a_list_may_be_compressed_by_lz4() {
        let folder = tempfile::tempdir().unwrap();
        let mut encoder = FrameEncoder::new(Vec::new());
        encoder.write_all(PACKAGES.as_bytes()).unwrap();
        let packed = encoder.finish().unwrap();
        for (name, bytes) in
            [("deb.example.org_Packages", PACKAGES.as_bytes()), ("Packages.lz4", &packed[..])]
        {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            let read = read_list(&path).unwrap();
            let read: Vec<_> =
                read.iter().map(|(it, file)| (it.as_ref().map(|it| &*it.name), &**file)).collect();
            assert_eq!(read, [(Some("a"), "pool/a.deb"), (None, "")], "{name}");
            let error = own_list(&path).unwrap_err().to_string();
            assert!(error.contains("package 2 is not for the architecture amd64"), "{error}");
        }
        for (name, bytes) in
            [("Packages.lz4", &packed[..packed.len() / 2]), ("Packages", &b"Package\n"[..])]
        {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            let error = read_list(&path).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
