//! Constant names in artifact directories.

/// The folder of kernel archives, relative to a stage prefix. ROCm's Python tool puts them there, so the
/// configuration of packages does not apply.
pub(super) const KERNEL_FOLDER: &str = "lib/.kpack";

/// The name that kernel manifests use for the folder above the last one of [`KERNEL_FOLDER`].
pub(super) const KERNEL_PREFIX: &str = "lib";

/// The GPU family in names of artifacts with host files.
pub(super) const GENERIC: &str = "generic";
