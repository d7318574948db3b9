#!/usr/bin/python3
"""Writes a wheel with Python's own zipfile. Standard input has its specification as JSON.

`path`, `members` (`name`; `text` or `file`; `mode`, `method`, `hash`), `record` (its name, or null), `edits` of
RECORD (pairs of texts) and `patches` of headers (member, field, value), which zipfile would not write.
"""

import base64
import csv
import hashlib
import io
import json
import struct
import sys
import warnings
import zipfile

# Offset of each field in a local and in a central header.
FIELDS = {"flags": (6, 8), "method": (8, 10), "size": (22, 24), "crc": (14, 16)}


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def content(member):
    if "file" in member:
        with open(member["file"], "rb") as file:
            return file.read()
    return member["text"].encode()


def info(name, member):
    entry = zipfile.ZipInfo(name, (2024, 1, 2, 3, 4, 6))
    entry.create_system = 3
    entry.external_attr = member.get("mode", 0o100644) << 16
    entry.compress_type = member.get("method", zipfile.ZIP_DEFLATED)
    return entry


def record(wheel, contents):
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for member, data in contents:
        if not member["name"].endswith("/"):
            rows.writerow([member["name"], digest(data), len(data)] if member.get("hash", True)
                          else [member["name"], "", ""])
    rows.writerow([wheel["record"], "", ""])
    text = text.getvalue()
    for old, new in wheel["edits"]:
        assert old in text, f"{old} is not in RECORD"
        text = text.replace(old, new)
    return text


def patch(path, patches):
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry.header_offset for entry in archive.infolist()}
        at, central = archive.start_dir, {}
    with open(path, "rb") as file:
        data = bytearray(file.read())
    while data[at:at + 4] == b"PK\1\2":
        lengths = struct.unpack_from("<HHH", data, at + 28)
        central[data[at + 46:at + 46 + lengths[0]].decode()] = at
        at += 46 + sum(lengths)
    for name, field, value in patches:
        form = "<H" if field in ("flags", "method") else "<I"
        for start, offset in zip((entries[name], central[name]), FIELDS[field]):
            struct.pack_into(form, data, start + offset, value)
    with open(path, "wb") as file:
        file.write(data)


def main(wheel):
    warnings.simplefilter("ignore")
    contents = [(member, content(member)) for member in wheel["members"]]
    with zipfile.ZipFile(wheel["path"], "w", compresslevel=9) as archive:
        for member, data in contents:
            archive.writestr(info(member["name"], member), data)
        if wheel["record"]:
            archive.writestr(info(wheel["record"], {}), record(wheel, contents))
    patch(wheel["path"], wheel["patches"])


main(json.load(sys.stdin))
