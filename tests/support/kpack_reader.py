#!/usr/bin/python3
"""Reads a kernel archive with only msgpack and zstandard; prints its TOC as JSON.

Independent of rockpack: written from the description of the format. Exits with a message where
the archive breaks it.
"""

import hashlib
import json
import mmap
import struct
import sys

import msgpack
import zstandard


def check(condition, message):
    if not condition:
        sys.exit(f"kpack_reader: {message}")


def frames_of(data, toc, toc_offset):
    """Size and SHA-256 of the decoded code objects by ordinal. Only one is in memory at a time."""
    used = [(0, 16)]
    objects = []

    def take(start, size):
        check(16 <= start and start + size <= toc_offset, "code object outside of the blob")
        used.append((start, start + size))
        return data[start:start + size]

    if toc["compression_scheme"] == "zstd-per-kernel":
        start, size = toc["zstd_offset"], toc["zstd_size"]
        check(start == 64, f"blob starts at {start}")
        check(start + size == toc_offset, "blob does not end where the TOC begins")
        check(size <= 4 << 30, "blob over 4 GiB")
        (count,) = struct.unpack("<I", take(start, 4))
        check(count <= 1 << 20, "too many frames")
        position = start + 4
        for _ in range(count):
            (length,) = struct.unpack("<I", take(position, 4))
            frame = take(position + 4, length)
            position += 4 + length
            parameters = zstandard.get_frame_parameters(frame)
            decoder = zstandard.ZstdDecompressor().decompressobj()
            content = decoder.decompress(frame)
            check(decoder.eof and not decoder.unused_data, "a frame does not fill its place")
            check(parameters.content_size == len(content), "wrong content size in a frame")
            check(parameters.window_size <= 1 << 27, "window over 128 MiB")
            objects.append((len(content), hashlib.sha256(content).hexdigest()))
        check(position == start + size, "bytes behind the last frame")
    else:
        check(toc["compression_scheme"] == "none", "unknown scheme")
        for blob in toc["blobs"]:
            content = take(blob["offset"], blob["size"])
            objects.append((len(content), hashlib.sha256(content).hexdigest()))
    check_gaps(data, sorted(used), toc_offset)
    return objects


def check_gaps(data, used, end):
    """Checks that every byte belongs to at most one part, and that all others are zero."""
    position = 0
    for first, last in [*used, (end, end)]:
        check(first >= position, "code objects overlap")
        check(not data[position:first].strip(b"\0"), "padding is not zero")
        position = last


def main(path):
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    check(data[:4] == b"KPAK", "bad magic")
    version, toc_offset = struct.unpack("<IQ", data[4:16])
    check(version == 1, "bad version")
    check(64 <= toc_offset < len(data), "TOC outside of the file")
    toc = msgpack.unpackb(data[toc_offset:], raw=False, strict_map_key=True)
    check(toc["format_version"] == 1, "bad format_version")
    objects = frames_of(data, toc, toc_offset)
    rows = {}
    named = set()
    for key, targets in toc["toc"].items():
        for target, row in targets.items():
            check(target in toc["gfx_arches"], f"{target} is not in gfx_arches")
            size, digest = objects[row["ordinal"]]
            check(row["original_size"] == size, f"wrong original_size of {key}")
            check(row["type"] == "hsaco", f"{key} is a {row['type']}")
            named.add(row["ordinal"])
            rows.setdefault(key, {})[target] = {
                "ordinal": row["ordinal"], "size": size, "sha256": digest}
    answered = {target for targets in rows.values() for target in targets}
    check(answered == set(toc["gfx_arches"]), "a listed target has no row")
    check(named == set(range(len(objects))), "a code object is in no row")
    head = {name: toc[name] for name in
            ("group_name", "gfx_arch_family", "gfx_arches", "compression_scheme")}
    print(json.dumps({**head, "keys": list(toc["toc"]), "objects": len(objects), "rows": rows}))


main(sys.argv[1])
