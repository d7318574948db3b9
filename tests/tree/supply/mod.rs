//! What the program is made of, and what it says of what it makes.

mod confined;
mod dependencies;
mod sbom;
