#!/usr/bin/python3
"""Measures programs and their peers in turns, on the same input.

    peers.py packages INPUT ROCKPACK               makes INPUT for debs and rpms (900 MB, takes minutes)
    peers.py debs INPUT SCRATCH ROCKPACK...        repositories, beside apt-ftparchive and aptly without Contents,
                                                   which rockpack does not publish either
    peers.py rpms INPUT SCRATCH ROCKPACK...        repositories, beside createrepo_c
    peers.py files SCRATCH ROCKPACK...             packages of 100,000 files, beside md5sum and dpkg-deb
    peers.py set PACKAGES ROCKPACK...              verify and inspect, beside sha256sum of what is unpacked
    peers.py library LIBRARY SCRATCH ROCKPACK...   extract beside inspect
    peers.py build ARTIFACTS SCRATCH ROCKPACK...   Debian's set, beside bare zstd
    peers.py respin ARTIFACTS SCRATCH ROCKPACK...  Debian's set with a cache: the first build, another version, and
                                                   another code object in one file
    peers.py loads SCRATCH ROCKPACK LIBRARY...     20,000 rows of 1 KB by each librocm_kpack, beside plain zstd

Several programs, such as one before and one after a change, run in turns; their file names must differ, as the
lines have these. ROUNDS (1) is how often all is done. Printed are medians: CPU seconds of user and system, the peak of
anonymous memory, and what was written to files, deleted ones too. All of it includes processes that were started.
SCRATCH is a folder that exists. It must be on a disk, as must the temporary folder: the kernel does not count writes
to a tmpfs. INPUT must be on the same disk, as packages are linked.
"""

import json
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
from random import Random

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / ".ci"))
sys.dont_write_bytecode = True
import measure  # noqa: E402
from growth import GROUPS, artifact  # noqa: E402

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COUNT = 20_000
BATCH = 1000
FOLDERS = ("include/{0}/detail", "share/{0}/doc/html/reference", "lib/cmake/{0}", "share/{0}/samples/kernels",
           "include/{0}", "share/{0}/data/tables/level-{1}")
STEMS = ("implementation", "configuration_parameters", "device_function_table", "benchmark-input",
         "stream_executor_interface", "module")
SUFFIXES = (".hpp", ".html", ".cmake", ".txt", ".h", ".json")
APT_FTPARCHIVE = """apt-ftparchive --db "$1/db" packages . >"$1/Packages"; gzip -9nkf "$1/Packages" """
APTLY = """aptly() { command aptly -config="$1/aptly.conf" "${@:2}" >"$1/log" 2>&1 || { cat "$1/log" >&2; exit 1; }; }
"""
FIRST_BY_APTLY = """aptly "$1" repo create many; aptly "$1" repo add many "$2"
aptly "$1" publish repo -skip-signing -skip-contents -distribution=stable -architectures=all,amd64 many"""
MORE_BY_APTLY = """aptly "$1" repo add many "$2"; aptly "$1" publish update -skip-signing -skip-contents stable"""
UNPACKED = """for package in *.deb; do dpkg-deb --fsys-tarfile "$package" | sha256sum; done
for package in *.rpm; do rpm2cpio "$package" | sha256sum; done"""
MD5SUMS = """find opt -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums
dpkg-deb --root-owner-group -Zzstd -z9 -b . ../of-dpkg.deb"""


def run(*command, **options):
    return measure.run([str(word) for word in command], None, stdout=subprocess.DEVNULL, **options)


def script(text, *words, **options):
    return run("bash", "-euo", "pipefail", "-c", text, "bash", *words, **options)


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def part(shard, number):
    """An artifact of 5 to 200 files."""
    name = f"part{number:05}"
    kinds = len(FOLDERS)
    artifact(shard, name, (
        f"{FOLDERS[(file * 5 + number) % kinds].format(name, file // 40)}/"
        f"{STEMS[(file + number) % kinds]}_{file:03}{SUFFIXES[(file * 5 + number) % kinds]}"
        for file in range(5 + number * 7919 % 196)))


def packages(folder, rockpack):
    """Makes `COUNT` packages of each format, and one more of each beside them."""
    scratch = folder / "scratch"
    for first in range(0, COUNT + 1, BATCH):
        numbers = range(first, min(first + BATCH, COUNT + 1))
        for number in numbers:
            part(scratch / "artifacts/shard", number)
        (scratch / "config.json").write_text(json.dumps({"architecture_groups": GROUPS}))
        run(rockpack, "build", "--artifacts", scratch / "artifacts", "--out", scratch / "out",
            "--config", scratch / "config.json", "--version", "7.1.0")
        for package in scratch.glob("out/*part*"):
            more = "-more" if f"part{COUNT:05}" in package.name else ""
            to = folder / (package.suffix[1:] + more)
            to.mkdir(exist_ok=True)
            package.rename(to / package.name)
        shutil.rmtree(scratch)


def published(rockpack, given, scratch, form):
    """A first publication of rockpack, and one with one package more."""
    # A folder of its own: ext4 without a journal looks at each inode that was deleted just before, and slows down.
    out = scratch / f"repository-{rockpack.name}"
    shutil.rmtree(out, ignore_errors=True)
    yield f"{rockpack.name}, first", run(rockpack, "repo", given / form, "--out", out)
    yield f"{rockpack.name}, one more", run(rockpack, "repo", given / f"{form}-more", "--out", out)


def linked(given, pool):
    pool.mkdir(exist_ok=True)
    for package in given.iterdir():
        os.link(package, pool / package.name)


def debs(given, scratch, *rockpacks):
    for rockpack in rockpacks:
        yield from published(rockpack, given, scratch, "deb")
    pool = fresh(scratch / "pool")
    linked(given / "deb", pool)
    for what in ("first", "one more"):
        out = scratch / "apt-ftparchive"
        fresh(out) if what == "first" else linked(given / "deb-more", pool)
        yield f"apt-ftparchive, {what}", script(APT_FTPARCHIVE, out, cwd=pool)
    out = fresh(scratch / "aptly")
    (out / "aptly.conf").write_text(json.dumps({"rootDir": str(out)}))
    yield "aptly, first", script(APTLY + FIRST_BY_APTLY, out, given / "deb")
    yield "aptly, one more", script(APTLY + MORE_BY_APTLY, out, given / "deb-more")


def rpms(given, scratch, *rockpacks):
    for rockpack in rockpacks:
        yield from published(rockpack, given, scratch, "rpm")
    pool = fresh(scratch / "pool")
    linked(given / "rpm", pool)
    command = ["createrepo_c", "-q", "--no-database", pool]
    yield "createrepo_c, first", run(*command)
    linked(given / "rpm-more", pool)
    yield "createrepo_c, one more", run(*command, "--update")


def files(scratch, *rockpacks):
    given, tree = scratch / "files", scratch / "files/tree"
    if not given.exists():
        part = scratch / "files.part"
        artifact(part / "artifacts/shard", "files", [
            f"share/files/{number // 1000:03}/file-{number:06}.txt" for number in range(100_000)])
        (part / "config.json").write_text(json.dumps({"architecture_groups": GROUPS}))
        shutil.copytree(part / "artifacts/shard/files_lib_generic/stage", part / "tree/opt")
        (part / "tree/DEBIAN").mkdir()
        (part / "tree/DEBIAN/control").write_text(
            "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n")
        part.rename(given)
    for rockpack in rockpacks:
        for name, options in (("one .deb", ["--format", "deb"]), ("both formats", [])):
            out = fresh(given / "out")
            figure = run(rockpack, "build", "--artifacts", given / "artifacts", "--out", out, "--jobs", "2",
                         "--config", given / "config.json", "--version", "7.1.0", *options)
            receipt = (out / "packages.json").stat().st_size
            yield f"{rockpack.name}, {name}, packages.json of {receipt} bytes", figure
    yield "md5sum, dpkg-deb", script(MD5SUMS, cwd=tree)


def of_set(given, *rockpacks):
    found = sorted(path for path in given.iterdir() if path.suffix in measure.READERS)
    for command in ("verify", "inspect"):
        for rockpack in rockpacks:
            what = [given] if command == "verify" else found
            yield f"{rockpack.name} {command}", run(rockpack, "-q", command, *what)
    yield "unpacked to sha256sum", script(UNPACKED, cwd=given)


def library(given, scratch, *rockpacks):
    for rockpack in rockpacks:
        yield f"{rockpack.name} inspect", run(rockpack, "inspect", given)
        out = fresh(scratch / "extracted")
        yield f"{rockpack.name} extract", run(rockpack, "extract", given, "--out", out)
        shutil.rmtree(out)


def build(given, scratch, *rockpacks):
    for rockpack in rockpacks:
        figure = measure.rounds(rockpack, given, scratch, "2", 1, measure.DEBIAN)
        yield rockpack.name, figure
        bare = figure["packed"] + figure["frames"]
        yield "… bare zstd in that round", {"wall": bare, "user": bare, "sys": 0, "anonymous": 0, "written": 0}


def respin(given, scratch, *rockpacks):
    changed = scratch / "changed" / given.name
    if not changed.exists():
        shutil.copytree(given, changed, symlinks=True, copy_function=os.link)
        code, = changed.glob("**/Kernels.so-000-gfx1100.hsaco")
        content = bytearray(code.read_bytes())
        content[len(content) // 2] ^= 1
        code.unlink()
        code.write_bytes(content)
    for rockpack in rockpacks:
        out, cache = scratch / "respun", fresh(scratch / "cache")
        for what, artifacts, version in (("first", given, "5.7.1"), ("another version", given, "5.7.2"),
                                         ("a code object changed", changed, "5.7.2")):
            shutil.rmtree(out, ignore_errors=True)
            options = [*measure.DEBIAN[:-1], version, "--cache", cache]
            yield f"{rockpack.name}, {what}", measure.build(rockpack, artifacts, out, "2", options)


def fat_library(folder):
    """A library of `COUNT` wrappers, each with a code object of 1 KB that compresses by half."""
    random = Random(7)
    words = [random.randbytes(8) for _ in range(256)]
    head = bytearray(64)
    head[:9] = b"\x7fELF\x02\x01\x01\x40\x03"
    for at, value in ((16, 3), (18, 224), (20, 1), (48, 0x41), (52, 64), (54, 56), (58, 64)):
        head[at] = value
    table = MAGIC + struct.pack("<Q", 2)
    for target, size in ((b"host-x86_64-unknown-linux-gnu-", 0), (b"hipv4-amdgcn-amd-amdhsa--gfx1100", 1024)):
        table += struct.pack("<3Q", 2048, size, len(target)) + target
    with open(folder / "bundles", "wb") as file:
        for _ in range(COUNT):
            code = head + b"".join(words[int(random.random() * random.random() * 256)] for _ in range(120))
            file.write((table.ljust(2048, b"\0") + code).ljust(4096, b"\0"))
    (folder / "library.S").write_text(
        '.section .hip_fatbin,"a",@progbits\n.balign 4096\nbundles:\n.incbin "bundles"\n'
        '.section .hipFatBinSegment,"aw",@progbits\n.balign 8\n'
        + "".join(f".long 0x48495046, 1\n.quad bundles + {number * 4096}, 0\n" for number in range(COUNT))
        + '.text\n.globl run\n.type run, @function\nrun: ret\n.size run, . - run\n'
        '.section .note.GNU-stack,"",@progbits\n')
    stage = folder / "shard/rows_lib_all/stage/lib"
    stage.mkdir(parents=True)
    (stage.parent.parent / "artifact_manifest.txt").write_text("stage\n")
    run("gcc", "-shared", "-nostdlib", "-o", stage / "librows.so", "library.S", cwd=folder)


def loads(scratch, rockpack, *libraries):
    archive, bench = scratch / "rows.kpack", scratch / "runtime-bench"
    if not archive.exists():
        part = fresh(scratch / "rows.part")
        fat_library(part)
        run(rockpack, "split", "-q", part / "shard", "--output-dir", part / "split")
        found, = (path for path in part.glob("split/**/*.kpack") if path.is_file())
        found.rename(archive)
        shutil.rmtree(part)
    run("cc", "-O2", f"-I{ROOT / 'runtime/include'}", ROOT / "benches/runtime.c", "-o", bench, "-ldl", "-lpthread")
    for library in libraries:
        print(library.name, flush=True)
        subprocess.run([bench, library, archive], check=True)
    return ()


ROWS = {"debs": debs, "rpms": rpms, "files": files, "set": of_set, "library": library, "build": build, "respin": respin,
        "loads": loads}


def main(which, *words):
    paths = [pathlib.Path(word).resolve() for word in words]
    if which == "packages":
        return packages(*paths)
    figures = {}
    for _ in range(int(os.environ.get("ROUNDS", "1"))):
        for name, figure in ROWS[which](*paths):
            print(name, measure.line(figure), file=sys.stderr)
            figures.setdefault(name, []).append(figure)
    if figures:
        print(f"| {which} | CPU s | memory MiB | written MB |\n|---|---|---|---|")
    for name, found in figures.items():
        cpu = statistics.median(figure["user"] + figure["sys"] for figure in found)
        memory, written = (statistics.median(figure[field] for figure in found) for field in ("anonymous", "written"))
        print(f"| {name} | {cpu:.2f} | {memory / (1 << 20):.0f} | {written / 1e6:.1f} |")


if len(sys.argv) < 4:
    sys.exit(__doc__)
main(*sys.argv[1:])
