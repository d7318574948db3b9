//! A static index of Python wheels.
//!
//! ```text
//! simple/index.html, index.json              the projects; their names are normalized (PEP 503)
//! simple/<project>/index.html, index.json    the files of a project
//! <wheel>.metadata                           the METADATA of the wheel beside it (PEP 658)
//! ```
//!
//! | a file has in HTML | in JSON (PEP 691) | source |
//! |---|---|---|
//! | `href="URL#sha256=DIGEST"` | `url`, `hashes` | PEP 503 |
//! | `data-requires-python` | `requires-python` | PEP 503 |
//! | `data-yanked="REASON"` | `yanked`: true, a reason or false | PEP 592 |
//! | `data-core-metadata="sha256=DIGEST"`, and `data-dist-info-metadata`, as pip before 23.3 reads it | `core-metadata`, `dist-info-metadata` | PEP 714 |
//! | – | `size`; `versions` of the project | PEP 700 |
//!
//! The version of the interface is in `<meta name="pypi:repository-version">` (PEP 629) and in `meta`.
//! 1.1 is the first one with sizes. URLs are relative to the page, so that an index can be moved and copied.

mod package;
mod page;

pub use package::{WheelPackage, compare_versions, metadata_of};
pub use page::{ListedWheel, Page, projects_html, projects_json};
