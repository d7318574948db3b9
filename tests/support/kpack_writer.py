#!/usr/bin/python3
"""Writes a kernel archive with only msgpack and zstandard: kpack_writer.py OUT SCHEME [START].

Independent of rockpack. Prints {key: {target: sha256}}. START is the offset of the blob: 64, or
16 as some writers have it.
"""

import hashlib
import json
import sys

# No compiled files beside the sources.
sys.dont_write_bytecode = True
import kpack_layout  # noqa: E402

path, scheme = sys.argv[1:3]
start = int(sys.argv[3]) if len(sys.argv) > 3 else 64
objects = [bytes([n]) * (1000 * n + 1) + b"end of %d" % n for n in range(1, 6)]
table = {
    "lib/libone.so#0": {"gfx90a:xnack+": 0, "gfx90a:xnack-": 1},
    "lib/libone.so#1": {"gfx90a:xnack+": 2, "gfx90a:xnack-": 2},
    "bin/two#0": {"gfx90a:xnack+": 3, "gfx90a:xnack-": 4},
}

head = {
    "format_version": 1,
    "group_name": "one_lib",
    "gfx_arch_family": "gfx90a",
    "gfx_arches": ["gfx90a:xnack+", "gfx90a:xnack-"],
    "compression_scheme": scheme,
}
blob, fields = kpack_layout.stored(objects, scheme, start)
head |= fields
head["toc"] = {
    key: {
        target: {"type": "hsaco", "ordinal": ordinal, "original_size": len(objects[ordinal])}
        for target, ordinal in targets.items()
    }
    for key, targets in table.items()
}
kpack_layout.write(path, start, blob, head)
print(json.dumps({
    key: {target: hashlib.sha256(objects[n]).hexdigest() for target, n in targets.items()}
    for key, targets in table.items()
}))
