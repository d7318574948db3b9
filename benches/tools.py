#!/usr/bin/python3
"""Measures one build of a set in both formats beside the sum of its parts done with other tools.

    tools.py ROCKPACK SHARD SCRATCH [ROUNDS] [OPTION...]

Each round: `rockpack build` with OPTIONs makes the set of the shard. Then its parts: `rockpack split`
takes the device code out of the shard, and compresses it fast; zstd compresses it as in the packages;
dpkg-deb and rpmbuild make every package of the set again from trees that were unpacked before; sync
waits for the disk. All is done two at a time, the largest package first. A package for dpkg gets the
list of its files' MD5 before, as dh_md5sums makes it. Printed are medians (3 rounds) of wall and CPU
seconds, and the bytes of packages.

The settings are the same as far as the tools have them: dpkg-deb takes zstd's level and has no
long-distance matching; rpmbuild takes level and window. What the tools would do besides is turned
off: looking for dependencies (which a build does), stripping, debug packages, compressing files.
Nothing is copied into their trees. Needs zstd, dpkg-deb, rpmbuild, rpm2cpio and cpio, and three times
the room of the artifacts.
"""

import concurrent.futures
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

CI = pathlib.Path(__file__).resolve().parent.parent / ".ci"
sys.dont_write_bytecode = True
sys.path.insert(0, str(CI))

from measure import taken  # noqa: E402

CODE_OBJECTS = CI / "code_objects.py"
ROUNDS = 3
AT_A_TIME = 2
MD5SUMS = "find * -path DEBIAN -prune -o -type f -print0 | xargs -r0 md5sum >DEBIAN/md5sums"
DPKG_DEB = "dpkg-deb --root-owner-group -Zzstd -z9 --build"
RPM_PAYLOAD = "w9L27.zstdio"
RPMBUILD = ["rpmbuild", "-bb", "--quiet", "--noclean", "--target", "x86_64"]
RPM_MACROS = {
    "_binary_payload": RPM_PAYLOAD,
    # The files are already in the build root, and stay unchanged.
    "__spec_install_pre": "%{___build_pre}",
    "__spec_install_post": "%{nil}",
    "debug_package": "%{nil}",
    "_build_id_links": "none",
    "_build_name_fmt": "%{NAME}.rpm",
}
SPEC = """Name: %{NAME}
Version: %{VERSION}
Release: %{RELEASE}
Summary: %{SUMMARY}
License: %{LICENSE}
AutoReqProv: no
%|PROVIDENAME?{[Provides: %{PROVIDENAME} %{PROVIDEFLAGS:depflags} %{PROVIDEVERSION}\\n]}|\
%|REQUIRENAME?{[Requires: %{REQUIRENAME} %{REQUIREFLAGS:depflags} %{REQUIREVERSION}\\n]}|"""


def unpack_deb(package, tree):
    subprocess.run(["dpkg-deb", "-R", package, tree], check=True)
    return tree


def unpack_rpm(package, tree):
    """Writes a spec beside the tree."""
    tree.mkdir()
    with subprocess.Popen(["rpm2cpio", package], stdout=subprocess.PIPE) as archive:
        subprocess.run(["cpio", "-id", "--quiet"], stdin=archive.stdout, cwd=tree, check=True)
    query = ["rpm", "-qp", "--nosignature", "--qf", SPEC, package]
    spec = subprocess.run(query, check=True, capture_output=True, text=True).stdout
    lines = [line.rstrip() for line in spec.splitlines() if not line.startswith("Requires: rpmlib(")]
    lines += ["%description", "As it was.", "%install", "%files"]
    files = subprocess.run(["rpm", "-qpl", "--nosignature", package], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    for file in files:
        place = tree / file.lstrip("/")
        if os.path.lexists(place):
            folder = place.is_dir() and not place.is_symlink()
            lines.append(f'{"%dir " if folder else ""}"{file}"')
        elif file != "(contains no files)":
            sys.exit(f"{package}: rpm2cpio left {file} out")
    spec_file = tree.with_suffix(".spec")
    spec_file.write_text("\n".join(lines) + "\n")
    return spec_file


def command(source, out):
    """The command that makes a package from a tree or a spec."""
    if source.suffix != ".spec":
        return ["sh", "-c", f'cd "$1" && {MD5SUMS} && {DPKG_DEB} . "$2"', "sh", source, out]
    macros = RPM_MACROS | {"_topdir": str(out / "top"), "_rpmdir": str(out)}
    defines = (["--define", f"{name} {value}"] for name, value in macros.items())
    root = ["--buildroot", source.with_suffix(".tree")]
    return [*RPMBUILD, *(word for define in defines for word in define), *root, source]


def run(words):
    """The CPU seconds of a command and its children."""
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    return taken(process, f":\n{process.stderr.read().decode()}")


def timed(commands, at_a_time):
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
        cpu = sum(pool.map(run, commands))
    return time.monotonic() - begin, cpu


def sizes(folder):
    return {form: sum(path.stat().st_size for path in folder.rglob(f"*.{form}")) for form in ("deb", "rpm")}


def unpack_all(packages, trees):
    """The sources of all packages, the largest first."""
    shutil.rmtree(trees, ignore_errors=True)
    trees.mkdir(parents=True)
    unpack = {".deb": unpack_deb, ".rpm": unpack_rpm}
    found = sorted((path for path in packages.iterdir() if path.suffix in unpack),
                   key=lambda path: (-installed(path), path.name))
    return [unpack[path.suffix](path, trees / f"{path.name}.tree") for path in found]


def installed(package):
    """The unpacked bytes of a package."""
    if package.suffix == ".deb":
        field = ["dpkg-deb", "-f", package, "Installed-Size"]
        return int(subprocess.run(field, check=True, capture_output=True).stdout) * 1024
    tag = ["rpm", "-qp", "--nosignature", "--qf", "%{LONGSIZE}", package]
    return int(subprocess.run(tag, check=True, capture_output=True).stdout)


def main(rockpack, shard, scratch, rounds=ROUNDS, *options):
    scratch = pathlib.Path(scratch).resolve()
    packages, again, split = scratch / "packages", scratch / "again", scratch / "split"
    build = [rockpack, "build", "--artifacts", shard, "--out", packages, *options]
    take_out = [rockpack, "split", "--batch-artifact-parent-dir", shard, "--output-dir", split]
    code = scratch / "code"
    if not code.exists():
        subprocess.run([CODE_OBJECTS, "cut", shard, code], check=True)
    objects = sorted(code.iterdir())
    # Alternately, which gives two halves of similar size.
    compress = [["zstd", "-q", "-T1", "-9", "-c", *objects[part::AT_A_TIME]] for part in range(AT_A_TIME)]
    trees, figures = None, []
    for _ in range(int(rounds)):
        for folder in (packages, again, split):
            shutil.rmtree(folder, ignore_errors=True)
        # Two rpmbuilds that begin at once would both make them.
        for folder in ("BUILD", "BUILDROOT", "RPMS", "SOURCES", "SPECS", "SRPMS"):
            (again / "top" / folder).mkdir(parents=True)
        figure = {"build": timed([build], 1), "split": timed([take_out], 1),
                  "zstd": timed(compress, AT_A_TIME)}
        trees = trees or unpack_all(packages, scratch / "trees")
        for form, suffix in (("dpkg-deb", ".tree"), ("rpmbuild", ".spec")):
            commands = [command(tree, again) for tree in trees if tree.suffix == suffix]
            figure[form] = timed(commands, AT_A_TIME)
        written = [path for path in again.rglob("*") if path.suffix in (".deb", ".rpm")]
        figure["sync"] = timed([["sync", *written]], 1)
        print(json.dumps(figure), file=sys.stderr)
        figures.append(figure)
    for name in figures[0]:
        wall, cpu = (statistics.median(figure[name][index] for figure in figures) for index in (0, 1))
        print(f"| {name} | {wall:.1f} | {cpu:.1f} |")
    print(f"{len(trees)} packages; bytes of ours {sizes(packages)}, of the tools {sizes(again)}")


if len(sys.argv) < 4:
    sys.exit(__doc__)
main(*sys.argv[1:])
