//! Which build of rockpack this is.

use std::sync::LazyLock;

use liblzma_sys::{LZMA_VERSION_MAJOR, LZMA_VERSION_MINOR, LZMA_VERSION_PATCH};

/// The commit that this program was compiled from, as `ROCKPACK_COMMIT` said when it was. Nothing looks
/// for a repository: the same source compiles to the same program with git and without.
const COMMIT: Option<&str> = option_env!("ROCKPACK_COMMIT");

/// What stands behind the name of the program.
static LONG: LazyLock<String> = LazyLock::new(|| {
    let commit = COMMIT.map(str::trim).filter(|commit| !commit.is_empty());
    let commit = commit.map_or("of an unknown commit".to_owned(), |it| format!("of commit {it}"));
    let (version, zstd) = (env!("CARGO_PKG_VERSION"), zstd::zstd_safe::version_string());
    let xz = [LZMA_VERSION_MAJOR, LZMA_VERSION_MINOR, LZMA_VERSION_PATCH].map(|it| it.to_string());
    let (machine, linked) = (machine(), linked());
    format!("{version}, {commit}\nfor {machine}, {linked}; zstd {zstd}, liblzma {}", xz.join("."))
});

/// What `--version` says behind the name of the program: the version, the commit if that is known, the
/// machine that it is for, how it is linked, and the compressors in it, which decide bytes of packages.
pub(super) fn long() -> &'static str {
    &LONG
}

fn machine() -> String {
    let libc = match () {
        () if cfg!(target_env = "gnu") => "-gnu",
        () if cfg!(target_env = "musl") => "-musl",
        () => "",
    };
    format!("{}-{}{libc}", std::env::consts::ARCH, std::env::consts::OS)
}

fn linked() -> &'static str {
    if cfg!(target_feature = "crt-static") { "linked statically" } else { "linked dynamically" }
}
