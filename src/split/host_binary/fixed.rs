//! Names of sections, and sizes that the transform goes by.

/// Bytes set aside for the reference to kernel archives in every transformed binary, so that a
/// later rewrite moves nothing. Two hundred bytes are usual.
pub const MARKER_AREA: u64 = 1024;

/// Device code smaller than this is refused, because a reference might not fit in its place. The
/// smallest real one, a single compressed kernel, has a thousand bytes.
pub(super) const LEAST_MARKER_AREA: u64 = 256;

/// Page size of the machine: what loads are mapped by.
pub(super) const PAGE: u64 = 0x1000;

/// Faults of a kind that are reported at once: a damaged table has as many as entries.
pub(super) const MAX_FAULTS: usize = 16;

/// Name of the section with the offload bundles.
pub const FATBIN_SECTION: &str = ".hip_fatbin";
/// Name of the section with the wrappers.
pub const WRAPPER_SECTION: &str = ".hipFatBinSegment";
/// Name of the section with the reference to kernel archives.
pub const MARKER_SECTION: &str = ".rocm_kpack_ref";
