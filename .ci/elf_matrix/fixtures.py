"""The fixtures: built with the compilers and linkers of a system, and transformed by rockpack."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# The variables that tests/fixtures/build.sh reads.
SOURCES = ["tests/fixtures", "tests/support", "examples/shards/source"]
# Shapes of tests/fixtures/src/cases.S, as tests/transform/tools.rs has them.
SHAPES = {"ordered": "", "reversed": "-DORDER=1", "shared_bundle": "-DORDER=2", "exact_pages": "-DCODE=4096",
          "one_word": "-DCODE=512", "before_bss": "-DCODE=520 -DWRITABLE"}
HELPERS = ["load", "libamdhip64.so.7"]
SHIM = "librocm_kpack_shim.so.0"
COMPILE_SHIM = 'gcc -shared -fPIC -O1 -Wl,-soname,"$1" -o "/matrix/stub/$1" /matrix/source/tests/support/stub_shim.c'
ANY = {"hip_runtime": "any", "validation": {"untransformable": "keep-fat"}}
# What cannot be made for every HIP runtime, as tests/transform/tools.rs has it.
LEFT_FAT = re.compile(r"nopie$|lld_relr(_pie)?$|sub_page")
ASSEMBLE = """
cd /matrix/source/tests/fixtures/src
gcc -shared -fPIC -o "/matrix/fat/$1" $2 cases.S -L /matrix/stub -l:libamdhip64.so.7
"""


def build(system):
    """Builds every fixture in the system: below its work folder, the stub runtime, the stub shim and the
    program that loads a library in `stub`, the fat binaries in `fat`."""
    for place in ("source", "fat", "stub", "host"):
        shutil.rmtree(system.work / place, ignore_errors=True)
    for source in SOURCES:
        shutil.copytree(REPOSITORY / source, system.work / "source" / source)
    system.succeed("/matrix/source/tests/fixtures/build.sh /matrix/fat")
    fat, stub = system.work / "fat", system.work / "stub"
    shutil.rmtree(fat / "objects")
    stub.mkdir()
    for helper in HELPERS:
        (fat / helper).rename(stub / helper)
    system.succeed(COMPILE_SHIM, SHIM)
    for name, flags in SHAPES.items():
        system.succeed(ASSEMBLE, name, flags)
    for path in (REPOSITORY / "tests/fixtures/binaries").iterdir():
        # The end of the name decides what is run and what is loaded, so it stays.
        shutil.copy(path, fat / f"committed_{path.name}")
    shutil.copy(REPOSITORY / ".ci/elf_matrix/judge.sh", system.work)


def transformed(system):
    """The names of the fixtures that are transformed: all, or for every HIP runtime those that call the shim."""
    names = {path.name for path in (system.work / "fat").iterdir()}
    if system.hip_runtime == "archives":
        return names
    calls = {name for name in names if b"\0rocm_kpack_register_fat_binary\0" in (system.work / "host" / name).read_bytes()}
    wrong = calls ^ {name for name in names if not LEFT_FAT.search(name)}
    assert not wrong, f"{system.name}: left fat or not, otherwise than is known: {sorted(wrong)}"
    return calls


def transform(rockpack, hip_runtime, fat, host):
    """Splits the binaries of folder `fat` as an artifact; the host binaries go to folder `host`."""
    with tempfile.TemporaryDirectory(dir=fat.parent) as scratch:
        artifact = pathlib.Path(scratch) / "shard/matrix_lib_gfx110X"
        shutil.copytree(fat, artifact / "stage/lib", symlinks=True)
        (artifact / "artifact_manifest.txt").write_text("stage\n")
        out = pathlib.Path(scratch) / "out"
        command = [rockpack, "split", "--artifact-dir", artifact]
        if hip_runtime == "any":
            configuration = pathlib.Path(scratch) / "any.json"
            configuration.write_text(json.dumps(ANY))
            command = [rockpack, "recombine", "--config", configuration, "--artifacts", artifact.parent]
        subprocess.run([*command, "--output-dir", out], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(host, ignore_errors=True)
        shutil.copytree(out / "matrix_lib_generic/stage/lib", host, symlinks=True)
