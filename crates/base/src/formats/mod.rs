//! Bytes ↔ types, with a module for each file format. Each opens with its byte table and the source of that
//! knowledge. No module decides policy, and none opens a file by a path that it reads.

pub mod amdgpu_metadata;
pub mod apt_index;
pub mod ar;
pub mod armor;
pub mod ccob;
pub mod code_object;
pub mod compression;
pub mod deb;
pub mod elf;
pub mod fatbin;
pub mod hip_wrapper;
pub mod hold;
pub mod kpack;
pub mod kpm;
pub mod loaded_code;
pub mod marker;
mod member;
pub mod message_pack;
pub mod message_pack_stream;
pub mod offload_binary;
pub mod offload_bundle;
pub mod package_file;
pub mod path_digests;
pub mod payload;
pub mod python_index;
pub mod rpm;
pub mod rpm_md;
pub mod spdx;
pub mod spelling;
pub mod tar;
mod tar_header;
mod tar_number;
pub mod wheel;
pub mod zip;
mod zstd_frame;
pub mod zstd_stream;
