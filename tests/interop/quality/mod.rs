//! Packages good enough for a distribution, judged by its own tools: lint, signatures, the dynamic loader,
//! gdb, update-alternatives, and rpm with a moved prefix.

mod alternatives;
mod debug;
mod gpu_script;
mod lint;
mod loader;
mod moved;
mod receipts;
mod series_link;
mod signed;
mod texts;
