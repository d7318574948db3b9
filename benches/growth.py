#!/usr/bin/env python3
"""Measures how the cost of a build grows with the count of artifacts, and of database files.

    growth.py ROCKPACK SCRATCH

Inputs are made in SCRATCH once and stay there. Each line is one run: CPU time, anonymous memory, bytes
written. Of many small files and of repositories, peers.py measures the cost.
"""

import json
import pathlib
import shutil
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


def build(rockpack, folder):
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    config = ["--config", folder / "config.json"]
    return measure.build(rockpack, folder / "artifacts", out, "2", [*config, *OPTIONS])


def builds(rockpack, scratch):
    for kind, counts in ((artifacts, (400, 1600, 6400)), (databases, (2000, 8000, 32000))):
        for count in counts:
            folder = made(scratch, kind, count)
            print(f"{count} {kind.__name__}: {measure.line(build(rockpack, folder))}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    builds(sys.argv[1], pathlib.Path(sys.argv[2]).resolve())
