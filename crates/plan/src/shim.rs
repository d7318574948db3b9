//! `librocm_kpack_shim.so.0`, by which binaries register their device code with every HIP runtime.
//!
//! No artifact has it. A set gets it as a component of its own, so that it is named, related and packed like
//! every other library; `crates/wheel` makes it a member of the host wheel.

use std::env;
use std::path::Path;

use object::elf;
use rockpack_core::content::{Content, read_small};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::{Node, Tree, TreePath};
use rockpack_elf::{ElfFile, Linking};
use rockpack_split::host_binary::SHIM;
use rockpack_split::input::artifact::ComponentKind;
use rockpack_split::{HostFile, HostKind};

use crate::config::Config;
use crate::recombine::{Component, Recombined};
use crate::runtime::uses_shim;

pub(crate) const ARTIFACT: &str = "kpack-shim";

pub(crate) const COMPONENT: &str = "kpack-shim_lib";

/// The licence of the library, which has zstd linked in, and its holders.
pub(crate) const LICENCE: &str = "MIT AND BSD-3-Clause";
pub(crate) const HOLDERS: &str = "2026 The rockpack authors, Meta Platforms, Inc. and affiliates";

const FUNCTIONS: [&str; 2] = ["rocm_kpack_register_fat_binary", "rocm_kpack_unregister_fat_binary"];

/// Paths of its file relative to the folder of the program: its own name, the name that cargo gives it, and the path
/// in rockpack's packages.
const PLACES: [&str; 3] =
    [SHIM, "librocm_kpack_shim.so", "../lib/rockpack/librocm_kpack_shim.so.0"];

/// Longest file that is read, in bytes: a build with debug information has some MiB.
const FILE_LIMIT: u64 = 64 << 20;

const HINT: &str = "build it with `cargo build --release -p rocm-kpack-shim`, and put the file next to \
                    rockpack or name it (`hip_shim` in the configuration, `--hip-shim` of `wheel`)";

#[derive(Debug, Clone)]
pub struct Shim {
    pub content: Content,
    /// The newest version of glibc that it needs, such as 2.28; `None` if any glibc satisfies it.
    pub glibc: Option<(u32, u32)>,
}

impl Shim {
    pub const LICENCE_TEXT: &str = include_str!("../../../runtime/shim/LICENSE");

    /// Reads the library in `file`, or else the one that is installed with the running program.
    pub fn open(file: Option<&Path>) -> Result<Self> {
        let found = file.map(Path::to_path_buf).or_else(|| {
            let program = env::current_exe().ok()?;
            let mut files = PLACES.iter().map(|place| program.with_file_name(place));
            files.find(|file| file.is_file())
        });
        let Some(path) = found else {
            let message =
                format!("{SHIM} is neither next to the running program nor in ../lib/rockpack");
            return Err(Error::new(Kind::Usage, message).hint(HINT));
        };
        Self::read(&path).map_err(|error| error.file(path).hint(HINT))
    }

    fn read(path: &Path) -> Result<Self> {
        let content = Content::of_bytes(read_small(path, FILE_LIMIT, "shared library")?);
        let file = ElfFile::read(&content, elf::EM_X86_64)?;
        let linking = file.map_or(Ok(None), |file| Linking::read(&file))?;
        let is_shim = |it: &Linking| {
            let defines = |name: &&str| it.defined.iter().any(|symbol| symbol.name == *name);
            it.soname.as_deref() == Some(SHIM) && FUNCTIONS.iter().all(defines)
        };
        let linking = linking.filter(is_shim).ok_or_else(|| {
            let functions = FUNCTIONS.join(" and ");
            let what =
                format!("is not an x86-64 library with the soname {SHIM} that defines {functions}");
            Error::new(Kind::Usage, what)
        })?;
        let versions = linking.versions.needed.iter().flat_map(|need| &need.versions);
        // Versions of three numbers are older than every platform of a wheel.
        let numbers = versions.filter_map(|version| {
            let (major, minor) = version.name.strip_prefix("GLIBC_")?.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        });
        Ok(Self { content, glibc: numbers.max() })
    }

    /// Adds the library to a set with binaries that register with it.
    pub fn add_to(&self, recombined: &mut Recombined, config: &Config) -> Result<()> {
        let nodes = recombined.components.iter().flat_map(|component| component.host.values());
        let mut is_needed = false;
        for fat in nodes.filter_map(|node| node.data()?.fat()) {
            is_needed |= uses_shim(fat, true)?;
        }
        if !is_needed {
            return Ok(());
        }
        if recombined.components.iter().any(|component| component.artifact == ARTIFACT) {
            let message = format!("an artifact has the name of the package of {SHIM}, {ARTIFACT}");
            let hint = "rename the artifact, or build without `hip_runtime = \"any\"`";
            return Err(Error::new(Kind::Conflict, message).hint(hint));
        }
        let text = TreePath::new(format!("share/doc/{ARTIFACT}/LICENSE"))?;
        let mut host = Tree::new();
        for (path, content, mode) in [
            (config.folders.libraries.join(SHIM)?, self.content.clone(), 0o755),
            (text, Content::of_bytes(Self::LICENCE_TEXT), 0o644),
        ] {
            let data = HostFile { module: None, kind: HostKind::Plain(content) };
            host.insert(path, Node::File { data, mode })?;
        }
        recombined.components.push(Component {
            id: COMPONENT.into(),
            artifact: ARTIFACT.to_owned(),
            kind: ComponentKind::Lib,
            host,
            kernels: Vec::new(),
            databases: Vec::new(),
        });
        Ok(())
    }
}
