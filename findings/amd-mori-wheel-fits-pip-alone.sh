#!/usr/bin/env bash
# amd-mori 1.2.4 (cp312), which AMD published on PyPI, in pip 26.3, uv 0.13.9, wheel 0.48.0 and installer 1.1.0.
#
# A tool that PyPI took a wheel from can be expected to read it again, and so can the tools of Python's packaging.
# RECORD of this wheel has the digest and the size of another WHEEL, of 104 bytes; the one in the wheel has 113.
# PyPI took it, pip and uv install it without a word. Both keep the stale row in site-packages, so the installed files
# are not those that their RECORD lists. `wheel unpack`, and so any change of the tags or the version that begins
# with it, and `installer` with validation refuse the wheel.
#
# Needs python3 with venv and a network. Exits with 1 if one of them behaves otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install -q --disable-pip-version-check pip==26.3 uv==0.13.9 wheel==0.48.0 installer==1.1.0
tools/bin/pip download -q --no-deps --only-binary :all: --python-version 3.12 --platform manylinux_2_39_x86_64 amd-mori==1.2.4
wheel=$(echo amd_mori-1.2.4-cp312-*.whl)

cat >judge.py <<'PYTHON'
import base64, csv, glob, hashlib, os, sys
from installer.sources import WheelFile

def stale(site):
    """Rows of the installed RECORD that do not fit their files in site-packages."""
    record = glob.glob(os.path.join(site, "amd_mori-*.dist-info", "RECORD"))[0]
    for path, digest, size in csv.reader(open(record, newline="")):
        if digest and not path.startswith(".."):
            bytes = open(os.path.join(site, path), "rb").read()
            own = base64.urlsafe_b64encode(hashlib.sha256(bytes).digest()).rstrip(b"=").decode()
            if digest != "sha256=" + own:
                yield f"{os.path.basename(path)} has {len(bytes)} bytes, and RECORD says {size}"

for site in sys.argv[2:]:
    print(f"installed by {site}:", *stale(site))
with WheelFile.open(sys.argv[1]) as wheel:
    try:
        wheel.validate_record(validate_contents=True)
        print("installer: taken")
    except Exception as error:
        print("installer:", type(error).__name__)
PYTHON

for_wheel=(--no-deps --only-binary :all: --python-version 3.12)
installed=0; tools/bin/pip install -q "${for_wheel[@]}" --platform manylinux_2_39_x86_64 --target pip "$wheel" || installed=$?
echo "pip: $installed" >result
installed=0
tools/bin/uv pip install -q --no-deps --python-version 3.12 --python-platform x86_64-manylinux_2_39 --target uv "$wheel" || installed=$?
echo "uv: $installed" >>result
unpacked=0; tools/bin/wheel unpack "$wheel" >words 2>&1 || unpacked=$?
echo "wheel unpack: $unpacked $(grep -o 'Hash mismatch for file .*' words | cut -d/ -f2 | tr -d "'\"")" >>result
tools/bin/python judge.py "$wheel" pip uv >>result
diff - result <<'RESULT'
pip: 0
uv: 0
wheel unpack: 1 WHEEL
installed by pip: WHEEL has 113 bytes, and RECORD says 104
installed by uv: WHEEL has 113 bytes, and RECORD says 104
installer: _WheelFileValidationError
RESULT
