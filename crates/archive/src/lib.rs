//! Reads and writes packages, their archives and the indexes of repositories. Each format has a module, whose
//! documentation begins with the layout of the bytes and its source. No module decides policy or opens a path that
//! it read from an archive.

pub mod apt_index;
pub mod ar;
pub mod armor;
pub mod deb;
mod member;
pub mod package_file;
pub mod path_digests;
pub mod payload;
pub mod python_index;
pub mod relation;
pub mod rpm;
pub mod rpm_md;
pub mod sdist;
pub mod spdx;
pub mod spelling;
pub mod tar;
mod tar_header;
pub mod tarball;
pub mod wheel;
pub mod zip;
