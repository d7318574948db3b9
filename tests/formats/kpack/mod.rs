//! Kernel archives: their bytes, what the pack stage puts into them, and what loaders find.

mod format;
mod loader;
mod pack;
