#!/usr/bin/python3
"""Compares the code objects in kernel archives with those of the original libraries.

    code_objects.py cut ARTIFACTS FOLDER    writes every distinct code object of ARTIFACTS to FOLDER
    code_objects.py compare ARTIFACTS ROOT  compares them with the archives (*.kpack) below ROOT
    code_objects.py absent ARTIFACTS REPORT fails for a kernel that REPORT, of the stand-in runtime, says
                                            is absent, and that ARTIFACTS have

Independent of rockpack: fat binaries are taken apart here, from the descriptions of ELF and of
clang's offload bundles, and archives by tests/support/kpack_reader.py. Covers what Debian's ROCm
libraries and the input of .ci/loader have: 64-bit ELF whose wrappers are relocated by
R_X86_64_RELATIVE or not at all, and bundles that are uncompressed or compressed by zstd. Anything
else is an error.
"""

import hashlib
import json
import mmap
import pathlib
import struct
import subprocess
import sys

import zstandard

READER = pathlib.Path(__file__).resolve().parent.parent / "tests/support/kpack_reader.py"
BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED_MAGIC, ZSTD_MAGIC = b"CCOB", b"\x28\xb5\x2f\xfd"
WRAPPER_MAGIC = 0x48495046  # "FPIH"
RELATIVE = 8
RELA = 4


def sections_of(elf):
    """(name, type, address, offset, size) of every section."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    entry_size, count, names_index = struct.unpack_from("<HHH", elf, 58)
    raw = [struct.unpack_from("<IIQQQQ", elf, table + index * entry_size) for index in range(count)]
    names = raw[names_index][4]
    for name, kind, _, address, offset, size in raw:
        start = names + name
        yield elf[start:elf.find(b"\0", start)].decode(), kind, address, offset, size


def pointers_of(elf, sections):
    """Relocated address → the address that it points to."""
    pointers = {}
    for _, kind, _, offset, size in sections:
        if kind != RELA:
            continue
        for place, info, addend in struct.iter_unpack("<QQq", elf[offset:offset + size]):
            if info & 0xffffffff == RELATIVE:
                pointers[place] = addend
    return pointers


def bundle(elf, at):
    """(target, code object) of every device entry of the bundle at a file offset."""
    if elf[at:at + len(COMPRESSED_MAGIC)] == COMPRESSED_MAGIC:
        version, method = struct.unpack_from("<HH", elf, at + 4)
        if method != 1:
            sys.exit(f"a compressed bundle of version {version} and method {method} at {at}")
        frame = elf.find(ZSTD_MAGIC, at, at + 64)
        if frame < 0:
            sys.exit(f"no zstd frame in the compressed bundle at {at}")
        elf = zstandard.ZstdDecompressor().decompressobj().decompress(elf[frame:])
        at = 0
    if elf[at:at + len(BUNDLE_MAGIC)] != BUNDLE_MAGIC:
        sys.exit(f"no bundle at {at}")
    (count,) = struct.unpack_from("<Q", elf, at + 24)
    position = at + 32
    for _ in range(count):
        offset, size, length = struct.unpack_from("<QQQ", elf, position)
        name = elf[position + 24:position + 24 + length].decode()
        position += 24 + length
        if not name.startswith("host"):
            yield name.rsplit("--", 1)[1], elf[at + offset:at + offset + size]


def code_objects(elf):
    """(wrapper number, target, code object) of a fat binary."""
    sections = list(sections_of(elf))
    by_name = {section[0]: section for section in sections}
    if ".hipFatBinSegment" not in by_name:
        return
    _, _, bundles, bundles_offset, _ = by_name[".hip_fatbin"]
    _, _, wrappers, wrappers_offset, size = by_name[".hipFatBinSegment"]
    pointers = pointers_of(elf, sections)
    for index in range(size // 24):
        magic, version, pointer = struct.unpack_from("<IIQ", elf, wrappers_offset + index * 24)
        if (magic, version) != (WRAPPER_MAGIC, 1):
            sys.exit(f"wrapper {index} has magic {magic:x} and version {version}")
        # Programs at a fixed address have it in the file.
        at = pointers.get(wrappers + index * 24 + 8, pointer) - bundles + bundles_offset
        for target, content in bundle(elf, at):
            yield index, target, content


def originals(artifacts):
    """(key, target, code object) of every fat binary, named by its path behind the stage."""
    for path in sorted(pathlib.Path(artifacts).rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        with open(path, "rb") as file:
            if file.read(7) != b"\x7fELF\x02\x01\x01":
                continue
            elf = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if elf[18:20] != b"\x3e\0":  # x86-64: databases are ELF files for GPUs
                continue
            inside = str(path).rsplit("/stage/", 1)[1]
            for index, target, content in code_objects(elf):
                yield f"{inside}#{index}", target, content


def cut(artifacts, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    for _, _, content in originals(artifacts):
        file = folder / hashlib.sha256(content).hexdigest()
        if not file.exists():
            file.write_bytes(content)


def compare(artifacts, root):
    expected = {}
    for key, target, content in originals(artifacts):
        if (key, target) in expected:
            sys.exit(f"{key} has two code objects for {target}")
        expected[key, target] = hashlib.sha256(content).hexdigest()
    found = {}
    archives = sorted(path for path in pathlib.Path(root).rglob("*.kpack") if path.is_file())
    for archive in archives:
        output = subprocess.run([sys.executable, READER, archive], stdout=subprocess.PIPE, check=True).stdout
        for key, targets in json.loads(output)["rows"].items():
            for target, row in targets.items():
                if (key, target) in found:
                    sys.exit(f"{key} is in two archives for {target}")
                found[key, target] = row["sha256"]
    equal = sum(found.get(name) == digest for name, digest in expected.items())
    print(f"{equal} of {len(expected)} code objects equal, {len(found)} rows in {len(archives)} archives")
    if found != expected or not expected:
        sys.exit(1)


def absent(artifacts, report):
    """Sources may leave kernels out for an architecture, by the preprocessor, and register them for all."""
    lines = (line.split() for line in open(report))
    absent = [words[1:] for words in lines if words and words[0] == "absent"]
    wanted = {key for key, _, _ in absent}
    code = [original for original in originals(artifacts) if original[0] in wanted]

    def is_lost(key, device, kernel):
        arch, *features = device.split(":")
        fitting = [content for name, target, content in code
                   if name == key and target.split(":")[0] == arch and set(target.split(":")[1:]) <= set(features)]
        return not fitting or any(f"\0{kernel}.kd\0".encode() in content for content in fitting)

    lost = [words for words in absent if is_lost(*words)]
    for words in lost:
        print("lost:", *words, file=sys.stderr)
    if lost:
        sys.exit(1)


if __name__ == "__main__":
    {"cut": cut, "compare": compare, "absent": absent}[sys.argv[1]](*sys.argv[2:])
