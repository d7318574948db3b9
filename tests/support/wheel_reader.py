#!/usr/bin/python3
"""Prints wheels as read by Python's zipfile and from the bytes of their headers: JSON by file name."""

import hashlib
import json
import os
import struct
import sys
import zipfile


def local(data, entry):
    """The local header, and the offset of the member's bytes."""
    fields = struct.unpack_from("<IHHHIIIIHH", data, entry.header_offset)
    start = entry.header_offset + 30 + fields[8] + fields[9]
    return {"flags": fields[2], "extra": fields[9], "crc": fields[5], "compressed": fields[6],
            "size": fields[7]}, start


def member(archive, data, entry):
    header, start = local(data, entry)
    stored = data[start:start + entry.compress_size]
    return {
        "name": entry.filename, "size": entry.file_size, "crc": entry.CRC,
        "sha256": hashlib.sha256(archive.read(entry)).hexdigest(),
        "stored": hashlib.sha256(stored).hexdigest(), "compressed": len(stored),
        "method": entry.compress_type, "flags": entry.flag_bits, "extra": len(entry.extra),
        "comment": entry.comment.decode(), "mode": entry.external_attr >> 16,
        "system": entry.create_system, "time": list(entry.date_time), "local": header,
        "start": entry.header_offset, "end": start + len(stored),
    }


def wheel(path):
    with open(path, "rb") as file:
        data = file.read()
    with zipfile.ZipFile(path) as archive:
        members = [member(archive, data, entry) for entry in archive.infolist()]
        texts = {name: archive.read(name).decode() for name in archive.namelist()
                 if ".dist-info/" in name}
        # Every byte belongs to a member, to its header or to the directory.
        end = struct.unpack_from("<HHII", data, len(data) - 22 + 8)
        whole = data[-22:-18] == b"PK\5\6" and end[2] + end[3] == len(data) - 22
        return {"members": members, "texts": texts, "comment": archive.comment.decode(),
                "directory": archive.start_dir, "whole": whole}


print(json.dumps({os.path.basename(path): wheel(path) for path in sys.argv[1:]}))
