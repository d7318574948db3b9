//! Commands give the same for archives as for folders.

use super::*;

#[test]
fn the_packages_are_those_of_folders() {
    need(&archives::TOOLS);
    let folder = tempfile::tempdir().unwrap();
    copy_shards(&folder.path().join("shards"));
    let out = folder.path().join("out");
    tools::run(&mut build_of(&folder.path().join("shards"), &out));
    let expected = contents(&out);
    // All archives of the same kind, then mixed with folders.
    let kinds: [[Option<Packing>; 2]; 3] = [
        [Some(Packing::Zstd), Some(Packing::Zstd)],
        [Some(Packing::Xz), Some(Packing::Xz)],
        [None, Some(Packing::Zstd)],
    ];
    for kind in kinds {
        let folder = tempfile::tempdir().unwrap();
        let shards = folder.path().join("shards");
        copy_shards(&shards);
        for (number, artifact) in artifacts(&shards).iter().enumerate() {
            if let Some(packing) = kind[number % 2] {
                sum(&pack(artifact, packing));
            }
        }
        let out = folder.path().join("out");
        tools::run(&mut build_of(&shards, &out));
        let got = contents(&out);
        assert!(got == expected, "{kind:?}: {:?}", names(&out));
        support::tampered::passes(&out, &shards);
    }
}

/// Runs a command on the example shards as folders, then packed; returns the output and folder of each run.
fn both_ways(run: impl Fn(&Path, &Path) -> String) -> [(String, TempDir); 2] {
    [false, true].map(|packed| {
        let folder = tempfile::tempdir().unwrap();
        let shards = folder.path().join("shards");
        copy_shards(&shards);
        if packed {
            for (number, artifact) in artifacts(&shards).iter().enumerate() {
                pack(artifact, BOTH[number % 2]);
            }
        }
        let said = run(&shards, &folder.path().join("out"));
        let ending = if packed { "packed" } else { "folders" };
        note!("{ending}: {said}");
        (said, folder)
    })
}

#[test]
fn every_command_reads_archives_like_folders() {
    need(&archives::TOOLS);
    let command = |name: &str, flag: &str, from: &Path, out: Option<&Path>| {
        let mut command = rockpack();
        command.arg(name).arg(flag).arg(from);
        if name == "recombine" {
            command.arg("--config").arg(example::configuration());
        }
        if let Some(out) = out {
            command.arg("--output-dir").arg(out);
        }
        tools::succeed(&mut command)
    };
    let [one, other] = both_ways(|shards, _| command("discover", "--artifacts", shards, None));
    assert!(one.0 == other.0 && one.0.contains("gfx1151"), "{}", one.0);

    for (name, flag) in [("split", "--artifacts"), ("recombine", "--artifacts")] {
        let [one, other] = both_ways(|shards, out| command(name, flag, shards, Some(out)));
        assert!(written_tree(&one.1) == written_tree(&other.1), "{name}");
        assert!(written_tree(&one.1).len() > 20, "{name}");
    }
    let [one, other] = both_ways(|shards, out| {
        command("split", "--batch-artifact-parent-dir", &GROUPS[1].folder(shards), Some(out))
    });
    assert!(written_tree(&one.1) == written_tree(&other.1));
    let [one, other] = both_ways(|shards, out| {
        let mut artifact = GROUPS[1].folder(shards).join("blas_lib_gfx1151");
        if !artifact.exists() {
            let packed = BOTH.map(|packing| archive_of(&artifact, packing));
            artifact = packed.into_iter().find(|archive| archive.exists()).unwrap();
        }
        command("split", "--artifact-dir", &artifact, Some(out))
    });
    assert!(written_tree(&one.1) == written_tree(&other.1));
    let names = names(&one.1.path().join("out"));
    let expected = ["blas_lib_generic", "blas_lib_gfx1151", "blas_lib_gfx906"];
    assert!(names.iter().eq(expected), "{names:?}");
}

fn written_tree(folder: &TempDir) -> std::collections::BTreeMap<String, example::Entry> {
    example::tree(&folder.path().join("out"))
}

#[test]
fn build_and_split_name_an_artifact_in_an_unknown_packing() {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    copy_shards(&shards);
    let shard = GROUPS[1].folder(&shards);
    fs::write(shard.join("math_lib_gfx1151.tar.gz"), "").unwrap();
    let out = folder.path().join("out");
    names_unknown_packing(&mut build_of(&shards, &out));
    for (flag, input) in [("--artifacts", &shards), ("--batch-artifact-parent-dir", &shard)] {
        let out = folder.path().join(flag);
        let mut split = rockpack();
        split.arg("split").arg(flag).arg(input).arg("--output-dir").arg(&out);
        names_unknown_packing(&mut split);
    }
}

fn names_unknown_packing(command: &mut Command) {
    let Output { stdout, stderr, .. } = tools::run(command);
    let said = String::from_utf8([stdout, stderr].concat()).unwrap();
    let expected =
        "R008 artifact-packing-unknown: gfx1151-build/math_lib_gfx1151.tar.gz: is named like";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn verification_against_another_archive_fails() {
    need(&archives::TOOLS);
    let set = Set::build();
    let shards = set.scratch("shards");
    copy_shards(&shards);
    let artifact = GROUPS[0].folder(&shards).join("blas_lib_gfx110X-dgpu");
    fs::write(artifact.join("math-libs/BLAS/rocBLAS/stage/lib/more.txt"), "more").unwrap();
    pack(&artifact, Packing::Xz);
    let output =
        rockpack().arg("verify").arg(set.out()).arg("--against").arg(&shards).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("lib/more.txt") && said.contains("is in no package"), "{said}");
}
