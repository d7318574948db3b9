#!/usr/bin/env python3
"""Measures how costs grow with the count of what is in the input, and what a publication costs that adds little.

    growth.py builds ROCKPACK SCRATCH          builds of many artifacts, database files, and small files
    growth.py repositories ROCKPACK SCRATCH    repositories of many packages: the first publication, one
                                               package more, and the same again

Inputs are made in SCRATCH once and stay there. Each line is one run: CPU time, anonymous memory, bytes
written. A line of small files also has the CPU time of `dpkg-deb` for the same tree.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / ".ci"))
sys.dont_write_bytecode = True
import measure  # noqa: E402

GROUPS = {"gfx110X": {"display_name": "RDNA3", "architectures": ["gfx1100"]}}
OPTIONS = ["--version", "7.1.0"]


def artifact(shard, name, files):
    """Writes an artifact with the text `name` in each of the files."""
    folder = shard / f"{name}_lib_generic"
    stage = folder / "stage"
    for file in files:
        path = stage / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name} {file}\n")
    (folder / "artifact_manifest.txt").write_text("stage\n")


def artifacts(shard, count):
    for number in range(count):
        artifact(shard, f"part{number:05}", [f"share/part{number:05}/text"])


def databases(shard, count):
    folder = "lib/rocblas/library"
    artifact(shard, "blas", [f"{folder}/TensileLibrary_{n:06}_gfx1100.dat" for n in range(count)])


def files(shard, count):
    artifact(shard, "files", [f"share/files/{n // 1000:03}/file-{n:06}.txt" for n in range(count)])


def made(scratch, kind, count):
    """The input of a kind, with a configuration beside it."""
    folder = scratch / f"{kind.__name__}-{count}"
    if not folder.exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        kind(part / "artifacts" / "shard", count)
        (part / "config.json").write_text(json.dumps({"architecture_groups": GROUPS}))
        part.rename(folder)
    return folder


def build(rockpack, folder, *options):
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    config = ["--config", folder / "config.json"]
    return measure.build(rockpack, folder / "artifacts", out, "2", [*config, *OPTIONS, *options])


def dpkg_deb(folder):
    """CPU seconds of md5sum and dpkg-deb for the files of one artifact, and bytes of the package."""
    tree = folder / "tree"
    if not tree.exists():
        stage, = (folder / "artifacts").glob("*/*/stage")
        shutil.copytree(stage, tree / "opt")
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN/control").write_text(
            "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n")
    package = folder / "of-dpkg.deb"
    digests = "find opt -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum > DEBIAN/md5sums"
    taken = measure.taken(subprocess.Popen(["sh", "-c", digests], cwd=tree))
    command = ["dpkg-deb", "--root-owner-group", "-Zzstd", "-z9", "-b", tree, package]
    taken += measure.taken(subprocess.Popen(command, stdout=subprocess.DEVNULL))
    return taken, package.stat().st_size


def builds(rockpack, scratch):
    for kind, counts in ((artifacts, (400, 1600, 6400)), (databases, (2000, 8000, 32000)),
                         (files, (100_000,))):
        for count in counts:
            folder = made(scratch, kind, count)
            print(f"{count} {kind.__name__}: {measure.line(build(rockpack, folder))}", flush=True)
    form = ["--format", "deb"]
    print(f"… one .deb: {measure.line(build(rockpack, folder, *form))}, "
          f"{sum(p.stat().st_size for p in (folder / 'out').glob('*.deb'))} bytes")
    taken, size = dpkg_deb(folder)
    print(f"… dpkg-deb: CPU {taken:.1f} s, {size} bytes")


def publish(rockpack, out, packages):
    return measure.line(measure.run([rockpack, "repo", *packages, "--out", out], None))


def repositories(rockpack, scratch, count=20_000):
    folder = made(scratch, artifacts, count)
    if not (folder / "packages").exists():
        build(rockpack, folder)
        (folder / "out").rename(folder / "packages")
    for form in ("deb", "rpm"):
        first, more = folder / f"first-{form}", folder / f"more-{form}"
        if not more.exists():
            first.mkdir(exist_ok=True)
            for package in (folder / "packages").glob(f"*.{form}"):
                os.link(package, first / package.name)
            more.mkdir()
            last = max(first.iterdir())
            last.rename(more / last.name)
        out = folder / f"repository-{form}"
        shutil.rmtree(out, ignore_errors=True)
        print(f"{count} {form}: {publish(rockpack, out, [first])}", flush=True)
        print(f"… one more: {publish(rockpack, out, [more])}", flush=True)
        print(f"… the same: {publish(rockpack, out, [first, more])}", flush=True)


def main(which, rockpack, scratch):
    scratch = pathlib.Path(scratch).resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    {"builds": builds, "repositories": repositories}[which](rockpack, scratch)


if len(sys.argv) != 4:
    sys.exit(__doc__)
main(*sys.argv[1:])
