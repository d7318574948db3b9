//! The program's parts, and the SPDX documents about its packages.

mod confined;
mod dependencies;
mod sbom;
