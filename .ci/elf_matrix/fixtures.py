"""The fixtures: built with the compilers and linkers of a system, and transformed by rockpack."""

import pathlib
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
ASSEMBLE = """
cd /matrix/source/tests/fixtures/src
gcc -shared -fPIC -o "/matrix/fat/$1" $2 cases.S -L /matrix/stub -l:libamdhip64.so.7
"""


def build(system):
    """Builds every fixture in the system: below its work folder, the stub runtime and the program
    that loads a library in `stub`, the fat binaries in `fat`."""
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
    for name, flags in SHAPES.items():
        system.succeed(ASSEMBLE, name, flags)
    for path in (REPOSITORY / "tests/fixtures/binaries").iterdir():
        # The end of the name decides what is run and what is loaded, so it stays.
        shutil.copy(path, fat / f"committed_{path.name}")
    shutil.copy(REPOSITORY / ".ci/elf_matrix/judge.sh", system.work)
    return sorted(path.name for path in fat.iterdir())


def transform(rockpack, fat, host):
    """Splits the binaries of folder `fat` as an artifact; the host binaries go to folder `host`."""
    with tempfile.TemporaryDirectory(dir=fat.parent) as scratch:
        artifact = pathlib.Path(scratch) / "matrix_lib_gfx110X"
        shutil.copytree(fat, artifact / "stage/lib", symlinks=True)
        (artifact / "artifact_manifest.txt").write_text("stage\n")
        out = pathlib.Path(scratch) / "out"
        command = [rockpack, "split", "--artifact-dir", artifact, "--output-dir", out]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(host, ignore_errors=True)
        shutil.copytree(out / "matrix_lib_generic/stage/lib", host, symlinks=True)
