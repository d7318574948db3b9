#!/usr/bin/python3
"""Lays a split shard out as the existing Python tool does: existing_split.py FAT SPLIT OUT SCHEME.

FAT is the fat shard, SPLIT what `rockpack split` made of it: the code objects are taken from there,
the binaries from FAT. Needs msgpack and zstandard. What differs from rockpack's layout:

- one archive per component and arch, in `.kpack/` of the alphabetically first stage prefix;
- keys and kernel names have the stage prefix in front;
- binaries get a marker in a load segment of its own at the end of the file, and the program headers
  move behind it; `.hip_fatbin` becomes NOBITS.
"""

import pathlib
import shutil
import struct
import sys

import msgpack
import zstandard

fat_shard, split_shard, out_shard = map(pathlib.Path, sys.argv[1:4])
scheme = sys.argv[4]
PAGE = 0x1000


def read_archive(path):
    """{(key, target): bytes}"""
    data = path.read_bytes()
    toc = msgpack.unpackb(data[struct.unpack_from("<Q", data, 8)[0]:])
    position, frames = toc["zstd_offset"] + 4, []
    while position < toc["zstd_offset"] + toc["zstd_size"]:
        (size,) = struct.unpack_from("<I", data, position)
        frames.append(zstandard.ZstdDecompressor().decompress(data[position + 4:position + 4 + size]))
        position += 4 + size
    rows = toc["toc"].items()
    return {(key, target): frames[row["ordinal"]] for key, targets in rows for target, row in targets.items()}


def write_archive(path, component, arch, rows):
    head = {"format_version": 1, "group_name": component, "gfx_arch_family": arch, "gfx_arches": [arch]}
    head["compression_scheme"] = scheme
    toc, blob, blobs = {}, b"", []
    if scheme != "none":
        blob = struct.pack("<I", len(rows))
    for ordinal, ((key, target), code) in enumerate(rows.items()):
        toc.setdefault(key, {})[target] = {"type": "hsaco", "ordinal": ordinal, "original_size": len(code),
                                           "metadata": {"target": target}}
        if scheme == "none":
            blob += b"\0" * (-len(blob) % 64)
            blobs.append({"offset": 64 + len(blob), "size": len(code)})
            blob += code
        else:
            frame = zstandard.ZstdCompressor(level=3).compress(code)
            blob += struct.pack("<I", len(frame)) + frame
    head |= {"blobs": blobs} if scheme == "none" else {"zstd_offset": 64, "zstd_size": len(blob)}
    header = struct.pack("<4sIQ", b"KPAK", 1, 64 + len(blob)).ljust(64, b"\0")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header + blob + msgpack.packb(head | {"toc": toc}))


def pad(data):
    data.extend(b"\0" * (-len(data) % PAGE))


def transform(binary, kernel_name, search):
    """An x86-64 ELF file with `.hip_fatbin`, as the existing tool leaves it."""
    data = bytearray(binary)
    phoff, shoff = struct.unpack_from("<QQ", data, 32)
    phnum, = struct.unpack_from("<H", data, 56)
    shnum, shstrndx = struct.unpack_from("<HH", data, 60)
    headers = [list(struct.unpack_from("<IIQQQQQQ", data, phoff + 56 * i)) for i in range(phnum)]
    sections = [list(struct.unpack_from("<IIQQQQIIQQ", data, shoff + 64 * i)) for i in range(shnum)]
    names = bytes(data[sections[shstrndx][4]:sections[shstrndx][4] + sections[shstrndx][5]])
    named = {names[s[0]:names.index(b"\0", s[0])].decode(): s for s in sections}
    fatbin, wrappers = named[".hip_fatbin"], named[".hipFatBinSegment"]
    end = max(h[3] + h[6] for h in headers if h[0] == 1)
    marker = msgpack.packb({"kpack_search_paths": [search], "kernel_name": kernel_name})

    pad(data)
    marker_at, marker_address = len(data), -(-end // PAGE) * PAGE
    data += marker
    headers.append([1, 4, marker_at, marker_address, marker_address, len(marker), len(marker), PAGE])

    for number in range(wrappers[5] // 24):
        address = wrappers[3] + 24 * number
        at = wrappers[4] + 24 * number
        struct.pack_into("<IIQI", data, at, 0x4B504948, 1, marker_address, number)
        for rela in (s for s in sections if s[1] == 4):
            for entry in range(rela[4], rela[4] + rela[5], 24):
                if struct.unpack_from("<Q", data, entry)[0] == address + 8:
                    struct.pack_into("<QQ", data, entry + 8, 8, marker_address)
    data[fatbin[4]:fatbin[4] + fatbin[5]] = b"\0" * fatbin[5]
    fatbin[1] = 8

    pad(data)
    table, table_address = len(data), marker_address + PAGE * (1 + len(marker) // PAGE)
    size = 56 * (len(headers) + 1)
    headers.append([1, 4, table, table_address, table_address, size, size, PAGE])
    for header in headers:
        if header[0] == 6:
            header[2:7] = [table, table_address, table_address, size, size]
    for header in headers:
        data += struct.pack("<IIQQQQQQ", *header)
    named_at = len(data)
    data += names + b".rocm_kpack_ref\0"
    sections[shstrndx][4:6] = [named_at, len(names) + 16]
    sections.append([len(names), 1, 2, marker_address, marker_at, len(marker), 0, 0, 1, 0])
    data.extend(b"\0" * (-len(data) % 8))
    section_table = len(data)
    for section in sections:
        data += struct.pack("<IIQQQQIIQQ", *section)
    struct.pack_into("<QQ", data, 32, table, section_table)
    struct.pack_into("<H", data, 56, len(headers))
    struct.pack_into("<H", data, 60, len(sections))
    return bytes(data)


def copy_without_archives(source, target):
    shutil.copytree(source, target, symlinks=True, ignore=lambda folder, entries: [".kpack"])


for artifact in sorted(split_shard.iterdir()):
    component, family = artifact.name.rsplit("_", 1)
    out = out_shard / artifact.name
    copy_without_archives(artifact, out)
    prefixes = (artifact / "artifact_manifest.txt").read_text().split()
    if family != "generic":
        rows = {}
        for prefix in prefixes:
            for archive in sorted((artifact / prefix).rglob("*.kpack")):
                if archive.is_file():
                    rows |= {(f"{prefix}/{key}", target): code
                             for (key, target), code in read_archive(archive).items()}
        if rows:
            first = sorted({key.split("/stage/")[0] + "/stage" for key, _ in rows})[0]
            write_archive(out / first / ".kpack" / f"{component}_{family}.kpack", component, family, rows)
        continue
    for prefix in prefixes:
        for path in sorted((out / prefix).rglob("*")):
            if path.is_symlink() or not path.is_file() or b".rocm_kpack_ref\0" not in path.read_bytes():
                continue
            inside = path.relative_to(out / prefix)
            (original,) = fat_shard.glob(f"{component}_*/{prefix}/{inside}")
            up = "../" * (len(inside.parts) - 1)
            search = f"{up}.kpack/{component}_@GFXARCH@.kpack"
            path.write_bytes(transform(original.read_bytes(), f"{prefix}/{inside}", search))
