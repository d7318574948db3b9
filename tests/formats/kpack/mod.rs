//! Kernel archives: their bytes, the pack stage's output, and the code objects that loaders find.

mod format;
mod loader;
mod pack;
