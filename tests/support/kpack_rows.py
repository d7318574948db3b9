#!/usr/bin/python3
"""Writes a kernel archive as a component ships one, with msgpack and zstandard alone.

kpack_rows.py OUT SCHEME < {"arches": [...], "rows": [[key, target, code in hex], ...]}

Independent of rockpack. Equal code objects are stored once.
"""

import json
import struct
import sys

import msgpack
import zstandard

path, scheme = sys.argv[1:]
given = json.load(sys.stdin)
objects, table = [], {}
for key, target, code in given["rows"]:
    content = bytes.fromhex(code)
    if content not in objects:
        objects.append(content)
    table.setdefault(key, {})[target] = {
        "type": "hsaco", "ordinal": objects.index(content), "original_size": len(content)}

head = {
    "format_version": 1,
    "group_name": "provider",
    "gfx_arch_family": given["arches"][0] if given["arches"] else "",
    "gfx_arches": given["arches"],
    "compression_scheme": scheme,
}
blob, blobs = b"", []
if scheme == "none":
    for content in objects:
        blob += b"\0" * (-len(blob) % 64)
        blobs.append({"offset": 64 + len(blob), "size": len(content)})
        blob += content
    head["blobs"] = blobs
else:
    blob = struct.pack("<I", len(objects))
    for content in objects:
        frame = zstandard.ZstdCompressor(level=3).compress(content)
        blob += struct.pack("<I", len(frame)) + frame
    head |= {"zstd_offset": 64, "zstd_size": len(blob)}
head["toc"] = table
with open(path, "wb") as file:
    header = struct.pack("<4sIQ", b"KPAK", 1, 64 + len(blob))
    file.write(header.ljust(64, b"\0") + blob + msgpack.packb(head))
