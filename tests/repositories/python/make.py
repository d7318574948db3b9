"""Writes a wheel: make.py FOLDER, and on standard input as JSON its name, version, tags, fields of METADATA and
files."""

import base64
import hashlib
import json
import sys
import zipfile


def row(name, text):
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
    return f"{name},sha256={digest.decode()},{len(text.encode())}\n"


folder, wheel = sys.argv[1], json.load(sys.stdin)
stem = wheel["stem"]
info = f"{stem}.dist-info"
files = dict(wheel["files"])
files[f"{info}/METADATA"] = wheel["metadata"]
tags = wheel["tags"].split("-")
lines = [f"Tag: {python}-{abi}-{platform}\n" for python in tags[-3].split(".")
         for abi in tags[-2].split(".") for platform in tags[-1].split(".")]
files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\n" + "".join(lines)
files[f"{info}/RECORD"] = "".join(row(*file) for file in files.items()) + f"{info}/RECORD,,\n"
with zipfile.ZipFile(f"{folder}/{stem}-{wheel['tags']}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
    for name, text in files.items():
        archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), text)
