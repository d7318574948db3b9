"""Compares the output of builds, byte for byte."""

import hashlib
import json
import os
import struct

from .build import Fault

# The state of a repository has the timestamps of its files, so that the next run need not read unchanged
# ones again. Nothing else may depend on the time.
PRIVATE = ".rockpack/"
LEAD = 96
MAGIC = b"\x8e\xad\xe8\x01"


def contents(folder, prefix=""):
    """Path and bytes of every file below a folder; of links, their target."""
    found = {}
    for path, folders, names in os.walk(folder):
        for name in names + [name for name in folders if os.path.islink(os.path.join(path, name))]:
            place = os.path.join(path, name)
            relative = os.path.relpath(place, folder)
            found[prefix + relative] = f"-> {os.readlink(place)}" if os.path.islink(place) else content(place, relative)
    return found


def content(place, relative):
    with open(place, "rb") as file:
        if relative.startswith(PRIVATE) and relative.endswith(".json"):
            return without_times(json.load(file))
        return hashlib.file_digest(file, "sha256").hexdigest()


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key != "modified"}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def of(built):
    """Everything that a build wrote."""
    found = contents(built.out)
    return found | (contents(built.repository, "repository/") if built.repository else {})


def differing(one, other):
    """The names that only one of them has, and those whose bytes differ."""
    return sorted(one.keys() ^ other.keys()), sorted(name for name in one.keys() & other if one[name] != other[name])


def same(one, other):
    """Fails unless both have the same files with the same bytes; returns how many there are."""
    if not one:
        raise Fault("there is nothing to compare")
    lonely, changed = differing(one, other)
    if lonely or changed:
        raise Fault(f"{len(lonely)} names in one of them only {lonely[:3]}, {len(changed)} files differ {changed[:5]}")
    return len(one)


def signature(package):
    """Where the signature header of an .rpm lies: (start, end), of which the end is padded to 8. After the
    magic come 4 bytes, the number of entries of 16 bytes each, and the size of what they refer to."""
    assert package[LEAD:LEAD + 4] == MAGIC
    entries, size = struct.unpack(">II", package[LEAD + 8:LEAD + 16])
    end = LEAD + 16 + 16 * entries + size
    end += -end % 8
    assert package[end:end + 4] == MAGIC
    return LEAD, end


def without_signature(path):
    """Everything of an .rpm but its signature header."""
    package = path.read_bytes()
    start, end = signature(package)
    return package[:start], package[end:]
