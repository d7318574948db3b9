//! Packages, their archives and the indexes of repositories: bytes ↔ types, with a module for each format. Each
//! opens with its byte table and the source of that knowledge. No module decides policy, and none opens a file
//! by a path that it reads.

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
