"""Writes a source distribution, which clients build without a network: sdist.py FILE FOLDER, and PKG-INFO, if there
is one, on standard input."""

import io
import sys
import tarfile
import zipfile

BACKEND = '''
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    metadata = open("PKG-INFO").read()
    fields = dict(line.split(": ", 1) for line in metadata.splitlines() if ": " in line)
    stem = fields["Name"].lower().replace("-", "_") + "-" + fields["Version"]
    files = {"METADATA": metadata, "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"}
    files["RECORD"] = "".join(f"{stem}.dist-info/{name},,\\n" for name in (*files, "RECORD"))
    with zipfile.ZipFile(f"{folder}/{stem}-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(f"{stem}.dist-info/{name}", text)
    return f"{stem}-py3-none-any.whl"
'''

file, folder, info = sys.argv[1], sys.argv[2], sys.stdin.read()
files = {
    "backend.py": BACKEND,
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
}
if info:
    files["PKG-INFO"] = info
if file.endswith(".zip"):
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(f"{folder}/{name}", text)
else:
    with tarfile.open(file, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
