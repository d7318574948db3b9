"""The inputs of .ci/loader and .ci/any-runtime, and the code objects of their fat binaries: public wheels, a wheel
that is compiled here, and the example."""

import hashlib
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import zipfile

import code_objects
import sliced
from sliced import REPOSITORY

RUNTIME = REPOSITORY / "tests/support/runtime"
SHARDS, CONFIGURATION = REPOSITORY / "examples/shards", REPOSITORY / "examples/packaging-config.json"
PREFIX = "opt/rocm-7.1"
PLATFORMS = [f"manylinux{version}_x86_64" for version in ("_2_39", "_2_34", "_2_28", "_2_27", "_2_24", "2014")]

# A GPU reports all features of its architecture, each as on or off.
FEATURES = {
    ("sramecc", "xnack"): "gfx906 gfx908 gfx90a gfx940 gfx941 gfx942 gfx950",
    ("xnack",): "gfx801 gfx810 gfx900 gfx902 gfx904 gfx909 gfx90c gfx1010 gfx1011 gfx1012 gfx1013",
}
# The architectures that run code for a generic target.
GENERIC = {
    "gfx9-generic": "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c", "gfx9-4-generic": "gfx940 gfx941 gfx942 gfx950",
    "gfx10-1-generic": "gfx1010 gfx1011 gfx1012 gfx1013",
    "gfx10-3-generic": "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036",
    "gfx11-generic": "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153", "gfx12-generic": "gfx1200 gfx1201",
}
# The libraries of the wheel that is compiled here: targets by source file of the example.
OWN = {
    "own/_C.so": {"axpy": "gfx90a:xnack+ gfx90a:xnack- gfx908:sramecc+ gfx1030 gfx1201",
                  "gemm": "gfx90a gfx908 gfx1030 gfx12-generic"},
    "own/sub/_C.so": {"gemm": "gfx90a:sramecc-:xnack+ gfx1201 gfx12-generic gfx11-generic"},
}
EMPTY_LIBRARY = "gcc", "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o"
GCC = "gcc", "-O1", "-Wall", "-Wextra", "-Werror"


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def arch_of(target):
    return target.split(":")[0]


def devices(arch):
    """For each kind of GPU of an architecture the target IDs that a HIP runtime asks for: the GPU's own, then the
    generic one."""
    generic = next((generic for generic, archs in GENERIC.items() if arch in archs.split()), "")
    features = next((features for features, archs in FEATURES.items() if arch in archs.split()), ())
    signs = ["".join(signs) for signs in itertools.product(*([f":{feature}+", f":{feature}-"] for feature in features))]
    return [f"{arch}{sign} {generic}{sign}" if generic else arch + sign for sign in signs]


def compatible(targets, device):
    """The target whose code a HIP runtime takes from a fat binary for a device, or None."""
    for asked in device.split():
        arch, *features = asked.split(":")
        fits = [target for target in targets if arch_of(target) == arch and set(target.split(":")[1:]) <= set(features)]
        if fits:
            return max(fits, key=lambda target: target.count(":"))


def unpack(wheel, folder):
    with zipfile.ZipFile(wheel) as members:
        members.extractall(folder)


def digests(targets):
    return {target: hashlib.sha256(code).hexdigest() for target, code in targets.items()}


def wrappers(file):
    """{target: code object} of each wrapper of a fat binary; none for other files."""
    content = file.read_bytes()
    found = {}
    if content[:7] == b"\x7fELF\x02\x01\x01" and content[18:20] == b"\x3e\0":
        for index, target, code in code_objects.code_objects(content):
            assert target not in found.setdefault(index, {}), f"{file}: wrapper {index} has {target} twice"
            found[index][target] = code
    return [targets for _, targets in sorted(found.items())]


def addresses(file, count):
    """The addresses of the wrappers in a split binary, which has as many as the fat one."""
    sections = {name: (address, size) for name, _, address, _, size in code_objects.sections_of(file.read_bytes())}
    address, size = sections[".hipFatBinSegment"]
    assert size == 24 * count, f"{file} has {size // 24} wrappers of {count}"
    return [address + 24 * index for index in range(count)]


def code_of(folder, root, inside):
    """(path below root, address of the wrapper in the split binary there, {target: code object}) of each wrapper in
    the fat binaries of a folder; `inside` is the path below root by that of the fat binary."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
        if own := wrappers(file):
            path = inside(file)
            for address, targets in zip(addresses(root / path, len(own)), own):
                yield path, address, targets


def of_wheel(fat, root):
    code = code_of(fat, root, lambda file: file.relative_to(fat))
    return {(path, address): digests(targets) for path, address, targets in code}


def groups_of_example():
    """The architectures of each group."""
    groups = json.loads(CONFIGURATION.read_text())["architecture_groups"]
    return {name: group["architectures"] for name, group in groups.items()}


def of_example(root):
    """The code of the example's shards for the GPUs of its groups. The packages have the host binaries of the first
    shard. Other shards have the wrappers in another order; the tag in the code names the wrapper."""
    first, found = {}, {}
    archs = {arch for group in groups_of_example().values() for arch in group}
    inside = lambda file: pathlib.Path(PREFIX, str(file).rsplit("/stage/", 1)[1])
    for shard in sorted(SHARDS.glob("*-build")):
        for path, address, targets in code_of(shard, root, inside):
            unit = re.search(rb"rockpack-example shard=\S+ tu=(\S+)", next(iter(targets.values())))[1]
            key = path, first.setdefault((path, unit), address)
            found.setdefault(key, {}).update(digests({target: code for target, code in targets.items() if target in archs}))
    return found


class Inputs:
    """A folder with the pinned downloads, which stay, and with what is made of them, which is recreated."""

    def __init__(self, folder, pins, *recreated):
        self.folder = folder
        for name in "compiled", *recreated:
            shutil.rmtree(folder / name, ignore_errors=True)
        (folder / "downloads").mkdir(parents=True, exist_ok=True)
        for log in folder.glob("*.log"):
            log.unlink()
        self.rockpack = self.program()
        platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
        pip = shutil.which("pip", path=f"{sliced.target() / 'ci-tools/bin'}:{os.environ['PATH']}")
        run(pip, "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary",
            ":all:", "--python-version", "3.12", *platforms, "--dest", folder / "downloads", "--requirement", pins)
        run(*GCC, RUNTIME / "load.c", "-ldl", "-o", folder / "load")
        # The first name that make-stub.sh meets: it makes a stand-in with the symbols of Python.
        run(*EMPTY_LIBRARY, folder / "python.so", "-Wl,-soname,0python.so")
        run(*EMPTY_LIBRARY, folder / "needs-python.so", "-Wl,--no-as-needed", "-x", "none", folder / "python.so")

    def program(self):
        if "ROCKPACK" in os.environ:
            return pathlib.Path(os.environ["ROCKPACK"]).resolve()
        subprocess.run(["cargo", "build", "--release", "--locked", "-q"], check=True, cwd=REPOSITORY)
        return sliced.target() / "release/rockpack"

    def wheel(self, name):
        """The pinned wheel of a project."""
        (found,) = (self.folder / "downloads").glob(f"{name.replace('-', '_')}-*.whl")
        return found

    def compiled_wheel(self):
        """A fat wheel with what those of PyPI lack: code for features of GPUs and for generic targets, and two
        libraries of one name."""
        folder = self.folder / "compiled"
        (folder / "wheel/own-1.dist-info").mkdir(parents=True)
        run(*EMPTY_LIBRARY, folder / "libamdhip64.so.7", "-Wl,-soname,libamdhip64.so.7")
        hip = ("clang-19", "-O1", "-x", "hip", "-std=c++17", "-nogpuinc", "-nogpulib", "-mcode-object-version=6", "-fPIC",
               '-DSHARD="own"')
        for name, units in OWN.items():
            for unit, archs in units.items():
                targets = [f"--offload-arch={arch}" for arch in archs.split()]
                self.log("own", *hip, f"-cuid={name}{unit}", f'-DUNIT="{unit}"', *targets, "-c",
                         REPOSITORY / f"examples/shards/source/{unit}.hip", "-o", folder / f"{unit}.o")
            (folder / "wheel" / name).parent.mkdir(parents=True)
            self.log("own", "clang-19", "-shared", "-fuse-ld=lld-19", *(folder / f"{unit}.o" for unit in units),
                     folder / "libamdhip64.so.7", "-o", folder / "wheel" / name)
        texts = {"METADATA": "Metadata-Version: 2.1\nName: own\nVersion: 1\n",
                 "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n", "RECORD": ""}
        members = [*OWN, *(f"own-1.dist-info/{name}" for name in texts)]
        texts["RECORD"] = "".join(f"{member},,\n" for member in members)
        for name, text in texts.items():
            (folder / "wheel/own-1.dist-info" / name).write_text(text)
        made = folder / "own-1-py3-none-linux_x86_64"
        return pathlib.Path(shutil.make_archive(made, "zip", folder / "wheel")).rename(f"{made}.whl")

    def unpacked(self, name):
        """The wheel of a project, or the one that is compiled here, and the folder with its files."""
        wheel = self.compiled_wheel() if name == "own" else self.wheel(name)
        unpack(wheel, self.folder / "fat" / name)
        return wheel, self.folder / "fat" / name

    def build_example(self, made, configuration=CONFIGURATION, *options):
        self.log("example", self.rockpack, "build", "--artifacts", SHARDS, "--config", configuration,
                 "--version", "7.1.0", "--out", made, *options)

    def log(self, name, *command):
        with open(self.folder / f"{name}.log", "a") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log)


def judge_each(cases, folder):
    """Prints a line for each of (name, function that returns what was judged); returns the exit status."""
    failed = 0
    for name, judge in cases:
        try:
            print(f"ok   {name}: {judge()}", flush=True)
        except (AssertionError, subprocess.CalledProcessError) as fault:
            failed += 1
            print(f"FAIL {name}: {fault}, see {folder / name}.log", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0
