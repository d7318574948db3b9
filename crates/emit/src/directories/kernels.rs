//! The kernel archives and binaries of a component, module by module.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result, ResultExt};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::{Node, TreePath};

use super::staging::FOLDER_MODE;
use super::{GENERIC, KERNEL_FOLDER, KERNEL_PREFIX, Outputs, WriteContext};
use crate::pack::{self, Packer};
use rockpack_files::READABLE;
use rockpack_plan::config::ArchiveLevel;
use rockpack_plan::recombine::Kernel;
use rockpack_split::FatBinary;
use rockpack_split::host_binary::SHIM;

/// The zstd level of kernel archives in artifact directories. They are read once more, when packages are made
/// and compressed again, so speed counts. Measured on Debian's librocblas (435 MB of code objects, one core),
/// level 1 takes 0.6 s for 159 MB, level 3 0.85 s for 149 MB.
const LEVEL: ArchiveLevel = ArchiveLevel::Zstd(1);

/// A binary with device code, and its place in the output.
pub(super) struct Binary<'a> {
    pub prefix: String,
    /// Path relative to the prefix.
    pub path: TreePath,
    pub mode: u32,
    pub fat: &'a FatBinary,
}

pub(super) struct KernelWriter<'a> {
    /// `{name}_{kind}`, e.g. `blas_lib`.
    pub component: &'a str,
    /// The GPU family in the name of the artifact that has an arch's archive.
    pub gpu_family: &'a dyn Fn(&BaseArch) -> Result<String>,
    pub context: WriteContext<'a>,
}

impl KernelWriter<'_> {
    /// Adds the binaries, their archives and manifests to `outputs`. `kernels` are sorted by binary, co_index and
    /// target.
    pub fn add(
        &self,
        binaries: &[Binary<'_>],
        kernels: &[Kernel],
        outputs: &mut Outputs,
    ) -> Result<()> {
        let names = archive_names(self.component, binaries.iter().map(|b| b.prefix.as_str()));
        let generic = format!("{}_{GENERIC}", self.component);
        let folder = TreePath::new(KERNEL_FOLDER)?;
        let WriteContext { staging, budget, progress } = self.context;
        let (budget, spool_dir) = (budget.clone(), staging.folder());
        let packer = Packer { cache: None, spool_dir, budget, progress };
        for (prefix, name) in &names {
            let own: Vec<&Binary<'_>> = binaries.iter().filter(|b| b.prefix == *prefix).collect();
            let paths: BTreeSet<&TreePath> = own.iter().map(|binary| &binary.path).collect();
            let kernels: Vec<Kernel> =
                kernels.iter().filter(|kernel| paths.contains(&kernel.binary)).cloned().collect();
            let archives = packer.pack(name, &kernels, LEVEL)?;
            for archive in &archives {
                let artifact = format!("{}_{}", self.component, (self.gpu_family)(&archive.arch)?);
                let content = archive.content.clone();
                outputs.add_file(&artifact, prefix, &archive.file_name, content)?;
            }
            let manifest = pack::kpm(name, &archives, &BTreeMap::new(), KERNEL_PREFIX)?;
            outputs.add_file(&generic, prefix, &format!("{name}.kpm"), manifest)?;
            for binary in own {
                let marker = pack::marker(&binary.path, [&folder], name)?;
                let data = binary
                    .fat
                    .binary
                    .with_marker(&marker, SHIM)
                    .context(|| format!("writing {}", binary.path))?;
                let node = Node::File { data, mode: binary.mode };
                outputs.add(&generic, prefix, &binary.path, node)?;
            }
        }
        Ok(())
    }
}

impl Outputs {
    /// Adds a file to the kernel folder of a stage prefix, and the folders above it.
    fn add_file(&mut self, artifact: &str, prefix: &str, name: &str, data: Content) -> Result<()> {
        let path = TreePath::new(format!("{KERNEL_FOLDER}/{name}"))?;
        self.add_folders(artifact, prefix, &path)?;
        self.add(artifact, prefix, &path, Node::File { data, mode: READABLE })
    }

    pub fn add_folders(&mut self, artifact: &str, prefix: &str, path: &TreePath) -> Result<()> {
        for folder in std::iter::successors(path.parent(), TreePath::parent) {
            self.add(artifact, prefix, &folder, Node::Directory { mode: FOLDER_MODE })?;
        }
        Ok(())
    }
}

/// Stage prefix → name of its archives without the arch. Names contain the module, or the whole prefix if two modules
/// have the same name.
fn archive_names<'a>(
    component: &str,
    prefixes: impl Iterator<Item = &'a str>,
) -> BTreeMap<String, String> {
    let prefixes: BTreeSet<&str> = prefixes.collect();
    let modules: Vec<&str> = prefixes.iter().map(|prefix| module(prefix)).collect();
    let distinct: BTreeSet<&str> = modules.iter().copied().collect();
    let name = |(prefix, module): (&&str, &&str)| {
        let name = match prefixes.len() {
            1 => component.to_owned(),
            _ if distinct.len() == modules.len() => format!("{component}_{module}"),
            _ => format!("{component}_{}", prefix.replace('/', "-")),
        };
        ((*prefix).to_owned(), name)
    };
    prefixes.iter().zip(&modules).map(name).collect()
}

/// The folder name before `stage`, or the last one.
fn module(prefix: &str) -> &str {
    let mut parts = prefix.rsplit('/').filter(|part| *part != "stage");
    parts.next().unwrap_or(prefix)
}

/// The kernels of binaries of one shard, sorted by binary, co_index and target.
pub(super) fn kernels_of(binaries: &[Binary<'_>], shard: &str) -> Result<Vec<Kernel>> {
    let mut kernels = Vec::new();
    for binary in binaries {
        for (index, wrapper) in binary.fat.wrappers.iter().enumerate() {
            let co_index = u32::try_from(index)
                .map_err(|_| Error::bug("more wrappers than a co_index can count"))?;
            kernels.extend(wrapper.code_objects.iter().map(|code| Kernel {
                binary: binary.path.clone(),
                co_index,
                target: code.target.clone(),
                content: code.content.clone(),
                stored_size: code.stored_size,
                shard: shard.to_owned(),
            }));
        }
    }
    kernels.sort_by(|a, b| {
        (&a.binary, a.co_index, &a.target).cmp(&(&b.binary, b.co_index, &b.target))
    });
    Ok(kernels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(prefixes: &[&str]) -> Vec<String> {
        archive_names("blas_lib", prefixes.iter().copied()).into_values().collect()
    }

    #[test]
    fn archives_of_several_modules_have_names_of_their_own() {
        assert_eq!(names(&["m/BLAS/rocBLAS/stage"]), ["blas_lib"]);
        let two = ["m/BLAS/rocBLAS/stage", "m/BLAS/rocSPARSE/stage"];
        assert_eq!(names(&two), ["blas_lib_rocBLAS", "blas_lib_rocSPARSE"]);
        let alike = ["a/rocBLAS/stage", "b/rocBLAS/stage"];
        assert_eq!(names(&alike), ["blas_lib_a-rocBLAS-stage", "blas_lib_b-rocBLAS-stage"]);
    }
}
