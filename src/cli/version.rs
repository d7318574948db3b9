//! The identity of this build of rockpack.

use std::sync::LazyLock;

use rockpack_core::compression::LIBLZMA_SYS;

/// The commit that this program was compiled from, by `ROCKPACK_COMMIT` at compile time. Nothing looks for a
/// repository: the same source compiles to the same program with git and without.
const COMMIT: Option<&str> = option_env!("ROCKPACK_COMMIT");

/// The text behind the name of the program.
static LONG: LazyLock<String> = LazyLock::new(|| {
    let known = COMMIT.map(str::trim).filter(|commit| !commit.is_empty());
    let commit = known.map_or("of an unknown commit".to_owned(), |it| format!("of commit {it}"));
    let (version, zstd) = (env!("CARGO_PKG_VERSION"), zstd::zstd_safe::version_string());
    let (machine, linked) = (machine(), linked());
    format!("{version}, {commit}\nfor {machine}, {linked}; zstd {zstd}, liblzma-sys {LIBLZMA_SYS}")
});

/// The text of `--version` behind the name of the program: the version, the commit if it is known, the target
/// machine, the linking, and the compressors, which decide bytes of packages.
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
