//! Names in artifact directories that are always the same.

/// The folder of kernel archives, relative to a stage prefix: where ROCm's Python tool puts them, so
/// what the configuration says of packages does not hold here.
pub(super) const KERNEL_FOLDER: &str = "lib/.kpack";

/// The name that kernel manifests use for the folder above the last one of [`KERNEL_FOLDER`].
pub(super) const KERNEL_PREFIX: &str = "lib";

/// The GPU family in names of artifacts with host files.
pub(super) const GENERIC: &str = "generic";
