//! How long it takes: `cargo test --release --test repositories -- --ignored --nocapture figures`.

use std::time::Instant;

use rockpack_emit::Compression;
use support::packages::{Tree, emit_set, options, package};
use support::repo_fixture::{deb, publish, repo, repo_at};

/// Packages of the repository, half of each format.
const PACKAGES: usize = 5000;

#[test]
#[ignore = "prints figures, and judges nothing"]
fn figures_of_five_thousand_packages() {
    let room = tempfile::tempdir().unwrap();
    let (folder, out) = (room.path().join("packages"), room.path().join("repo"));
    let all: Vec<_> = (0..PACKAGES / 2)
        .map(|number| {
            let name = format!("package-{number:04}");
            let tree = Tree::default()
                .deb_directory("opt")
                .directory("opt/example")
                .text(&format!("opt/example/{name}"), &name);
            package(&name, tree.entries())
        })
        .collect();
    emit_set(&folder, &all, &options(2, Compression::Xz { preset: 0 }));
    let begun = Instant::now();
    publish(&mut repo(&[&folder], &out));
    let first = begun.elapsed();
    deb(&folder, ("package-0001", "8.0.0-1", "amd64"), "");
    let begun = Instant::now();
    publish(&mut repo_at(&[&folder], &out, 1));
    let again = begun.elapsed();
    println!(
        "{PACKAGES} packages: {:.2} s; one more: {:.2} s ({:.1} %)",
        first.as_secs_f64(),
        again.as_secs_f64(),
        100.0 * again.as_secs_f64() / first.as_secs_f64()
    );
}
