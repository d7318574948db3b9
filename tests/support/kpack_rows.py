#!/usr/bin/python3
"""Writes a kernel archive as a component ships one, with only msgpack and zstandard.

kpack_rows.py OUT SCHEME < {"arches": [...], "rows": [[key, target, code in hex], ...]}

Independent of rockpack. Equal code objects are stored once.
"""

import json
import sys

# No compiled files beside the sources.
sys.dont_write_bytecode = True
import kpack_layout  # noqa: E402

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
blob, fields = kpack_layout.stored(objects, scheme, 64)
kpack_layout.write(path, 64, blob, head | fields | {"toc": table})
