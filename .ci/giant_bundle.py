#!/usr/bin/python3
"""Makes an artifact whose only bundle is a giant one that compresses to almost nothing.

    giant_bundle.py ARTIFACTS [MEBIBYTES]

ARTIFACTS gets a shard with one artifact, `giant_lib_all`: a shared library with one compressed bundle
(CCOB version 2, zstd) of a code object of MEBIBYTES (128) for each of 24 architectures. A code object
is one of the example shards with the number of its architecture changed and text behind it.
Needs gcc and zstd.
"""

import hashlib
import pathlib
import struct
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE = REPOSITORY / "examples/shards/gfx1151-build/blas_lib_gfx1151/math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2"
# EF_AMDGPU_MACH of LLVM's ELF.h.
MACHINES = {"gfx900": 0x2C, "gfx902": 0x2D, "gfx904": 0x2E, "gfx906": 0x2F, "gfx908": 0x30, "gfx909": 0x31,
            "gfx90a": 0x3F, "gfx942": 0x4C, "gfx1010": 0x33, "gfx1011": 0x34, "gfx1012": 0x35,
            "gfx1030": 0x36, "gfx1031": 0x37, "gfx1032": 0x38, "gfx1034": 0x3E, "gfx1035": 0x3D,
            "gfx1036": 0x45, "gfx1100": 0x41, "gfx1101": 0x46, "gfx1102": 0x47, "gfx1103": 0x44,
            "gfx1151": 0x4A, "gfx1200": 0x48, "gfx1201": 0x4E}
PAGE = 4096
HOST = "host-x86_64-unknown-linux-gnu-"
ASSEMBLY = """
    .section .hip_fatbin,"a",@progbits
    .balign 4096
bundle: .incbin "{bundle}"
    .section .hipFatBinSegment,"aw",@progbits
    .balign 8
    .long 0x48495046, 1
    .quad bundle, 0
    .section .note.GNU-stack,"",@progbits
"""


def decoded(bundle):
    """An uncompressed bundle."""
    if bundle[:4] != b"CCOB":
        return bundle
    version, method, total = struct.unpack_from("<HHI", bundle, 4)
    assert (version, method) == (2, 1)
    return subprocess.run(["zstd", "-dc"], input=bundle[24:total], stdout=subprocess.PIPE, check=True).stdout


def code_object():
    """A code object of the example."""
    library = EXAMPLE.read_bytes()
    starts = [at for at in range(0, len(library), PAGE)
              if library[at:at + 4] == b"CCOB" or library[at:at + 24] == b"__CLANG_OFFLOAD_BUNDLE__"]
    bundle = decoded(library[starts[0]:])
    at = 32
    for _ in range(struct.unpack_from("<Q", bundle, 24)[0]):
        offset, size, length = struct.unpack_from("<QQQ", bundle, at)
        name = bundle[at + 24:at + 24 + length]
        if size and b"gfx" in name:
            return bundle[offset:offset + size]
        at += 24 + length
    sys.exit("the example has no code object")


def pieces(size):
    """The bundle, piece by piece."""
    original = code_object()
    names = [HOST, *(f"hipv4-amdgcn-amd-amdhsa--{arch}" for arch in MACHINES)]
    head, offset = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names)), PAGE
    for name in names:
        length = 0 if name == HOST else size
        head += struct.pack("<QQQ", offset, length, len(name)) + name.encode()
        offset += length
    assert len(head) <= PAGE
    yield head.ljust(PAGE, b"\0")
    for arch, machine in MACHINES.items():
        # The number of the architecture in e_flags.
        yield original[:48] + bytes([machine]) + original[49:]
        rest = size - len(original)
        text = (f"{arch} " * (1 << 20)).encode()[:1 << 20]
        for at in range(0, rest, len(text)):
            yield text[:min(len(text), rest - at)]


def compressed(size, file):
    """Writes the compressed bundle to `file`."""
    digest, length = hashlib.md5(), 0
    with tempfile.TemporaryFile() as stream:
        with subprocess.Popen(["zstd", "-q", "-1"], stdin=subprocess.PIPE, stdout=stream) as zstd:
            for piece in pieces(size):
                digest.update(piece)
                length += len(piece)
                zstd.stdin.write(piece)
        stream.seek(0)
        body = stream.read()
    file.write(b"CCOB" + struct.pack("<HHII", 2, 1, 24 + len(body), length) + digest.digest()[:8] + body)
    return length


def main(artifacts, mebibytes="128"):
    artifact = pathlib.Path(artifacts) / "giant-build/giant_lib_all"
    library = artifact / "giant/stage/lib/libgiant.so.1"
    library.parent.mkdir(parents=True)
    (artifact / "artifact_manifest.txt").write_text("giant/stage\n")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        with open(scratch / "bundle", "wb") as file:
            length = compressed(int(mebibytes) << 20, file)
        (scratch / "giant.s").write_text(ASSEMBLY.format(bundle=scratch / "bundle"))
        subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,-soname,libgiant.so.1", "-o", library,
                        scratch / "giant.s"], check=True)
    print(f"{library}: {library.stat().st_size} bytes, {length} of its bundle")


if __name__ == "__main__":
    main(*sys.argv[1:])
