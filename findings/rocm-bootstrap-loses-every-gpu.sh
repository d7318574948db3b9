#!/usr/bin/env bash
# rocm-bootstrap 0.3.0 (AMD's detection for Python wheels per GPU) on a machine with two GPUs.
#
# Its reader of `clinfo` skips GPUs with unknown names, so the same can be expected of its reader of the compute
# driver's nodes. That one raises: beside a Radeon RX 7900 XTX, an old Radeon RX 580 (gfx_target_version 80003),
# which the driver lists as well, ends the detection, and no GPU is found. So does a node that cannot be read, as that
# of a GPU that a container was not given. An installer that asks it gets no wheel for the GPU that works.
#
# The folder of nodes is the module's own constant, which its tests replace, too.
#
# Needs python3 with venv and a network. Exits with 1 if it behaves otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install -q --disable-pip-version-check rocm-bootstrap==0.3.0

cat >detect.py <<'PYTHON'
import pathlib, sys
from rocm_bootstrap import _platform, detect

def nodes(name, *versions):
    folder = pathlib.Path(name)
    for number, version in enumerate(versions):
        (folder / str(number)).mkdir(parents=True)
        text = f"simd_count {96 if version else 0}\ngfx_target_version {version}\n"
        (folder / str(number) / "properties").write_text(text)
    return folder

def detected(folder, read=_platform.read_kfd_properties):
    _platform.KFD_TOPOLOGY, _platform.read_kfd_properties = folder, read
    try:
        return [gpu.target.name for gpu in detect.detect_gpus()]
    except Exception as error:
        return type(error).__name__

whole = _platform.read_kfd_properties

def without_second(node):
    if node.name == "2":
        raise PermissionError(1, "Operation not permitted")  # what the kernel answers
    return whole(node)

print("RX 7900 XTX:", detected(nodes("one", 0, 110000)))
print("RX 7900 XTX and RX 580:", detected(nodes("old", 0, 110000, 80003)))
print("RX 7900 XTX and RX 9070 of another container:",
      detected(nodes("hidden", 0, 110000, 120001), without_second))
PYTHON
tools/bin/python detect.py | tee seen
cat >expected <<'END'
RX 7900 XTX: ['gfx1100']
RX 7900 XTX and RX 580: ValueError
RX 7900 XTX and RX 9070 of another container: PermissionError
END
cmp seen expected
