//! `librocm_kpack.so.0`: finds and loads code objects in kernel archives, for the HIP runtime. The C functions here
//! check arguments, stop panics and hand out memory; `rocm-kpack-core` does the work.

#![deny(unsafe_code)]

mod abi;

pub use abi::*;
