#!/usr/bin/python3
"""Takes more than 4 GiB that do not compress through the whole way, in both formats.

    large.py ROCKPACK GENERATE SCRATCH

One component has 2.25 GiB of device code for each of two architectures: two archives of that size, in
one kernel package of 4.5 GiB. Printed are the figures of the build; then the package is unpacked by
dpkg-deb, by rpm2archive, and every code object is compared with that of its binary by
.ci/code_objects.py; at last `rockpack verify` reads the set and the artifacts. SCRATCH takes 20 GB.
GENERATE is the example of that name. Needs gcc, dpkg-deb, rpm2archive and tar.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / ".ci"))
sys.dont_write_bytecode = True
import measure  # noqa: E402

GROUP = {"display_name": "both", "architectures": ["gfx1030", "gfx1100"]}
FOUR_GIB = 4 << 30
TWO_GIB = 2 << 30


def unpack_deb(package, tree):
    subprocess.run(["dpkg-deb", "-x", package, tree], check=True)


def unpack_rpm(package, tree):
    """Unpacks by rpm2archive: rpm2cpio writes the form for large files, which cpio does not read."""
    subprocess.run(["rpm", "-K", "--nosignature", package], check=True)
    tree.mkdir()
    with (open(package, "rb") as rpm,
          subprocess.Popen(["rpm2archive", "-n", "-"], stdin=rpm, stdout=subprocess.PIPE) as archive):
        subprocess.run(["tar", "-x"], stdin=archive.stdout, cwd=tree, check=True)


def check(package, unpack, artifacts, scratch):
    """Compares the files that a package's own tool unpacks with the binaries."""
    begin, tree = time.monotonic(), scratch / "tree"
    unpack(package, tree)
    sizes = [path.stat().st_size for path in tree.rglob("*.kpack") if path.is_file()]
    if package.stat().st_size <= FOUR_GIB or len(sizes) != 2 or min(sizes) <= TWO_GIB:
        sys.exit(f"{package} is no large one, with archives of {sizes}")
    subprocess.run([ROOT / ".ci/code_objects.py", "compare", artifacts, tree], check=True)
    shutil.rmtree(tree)
    print(f"{package.name}: {package.stat().st_size} bytes, archives of {sizes}, "
          f"unpacked and compared in {time.monotonic() - begin:.0f} s", flush=True)


def main(rockpack, generate, scratch):
    scratch = pathlib.Path(scratch).resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    artifacts, out, config = scratch / "artifacts", scratch / "packages", scratch / "config.json"
    if not artifacts.exists():
        part = scratch / "artifacts.part"
        shutil.rmtree(part, ignore_errors=True)
        subprocess.run([generate, part, "large"], check=True)
        part.rename(artifacts)
    config.write_text(json.dumps({"architecture_groups": {"both": GROUP}}))
    options = ["--config", config, "--version", "7.1.0"]
    print(measure.line(measure.build(rockpack, artifacts, out, "2", options)), flush=True)
    for form, unpack in (("deb", unpack_deb), ("rpm", unpack_rpm)):
        package = max(out.glob(f"*.{form}"), key=lambda path: path.stat().st_size)
        check(package, unpack, artifacts, scratch)
    subprocess.run([rockpack, "verify", out, "--against", artifacts], check=True)


if len(sys.argv) != 4:
    sys.exit(__doc__)
main(*sys.argv[1:])
