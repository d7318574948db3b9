"""Programs under an old kernel. Kernels before 5.18 work out from the first load segment alone where
the program headers are, and tell the dynamic loader that (AT_PHDR). Debian 11's has been mended since
(its changelog: "fs/binfmt_elf: Fix AT_PHDR for unusual ELF files"); the user mode of QEMU before
version 8 works it out as those kernels did."""

import concurrent.futures
import hashlib
import http.client
import os
import pathlib
import shutil
import struct
import subprocess
import urllib.request

from .judged import PT_LOAD, PT_PHDR, blocks
from debian import mirror

PACKAGE = "pool/main/l/linux-signed-amd64/linux-image-5.10.0-32-amd64_5.10.223-1_amd64.deb"
SHA256 = "86a6792f3a03ab15a643f385830cdaa921f15e3e9c8bf63aa55a9243c62fc797"
# A server with unsupported releases, for the time when apt's mirror has dropped this one.
ARCHIVE = os.environ.get("ROCKPACK_DEBIAN_ARCHIVE")
INIT = """#!/bin/busybox sh
/bin/busybox mkdir /proc
/bin/busybox mount -t proc proc /proc
echo "@@ kernel: release"
/bin/busybox uname -r
export LD_LIBRARY_PATH=/stub
for system in /debian-*; do
  for program in $system/programs/*/*/*; do
    echo "@@ $program"
    /bin/busybox chroot $system ${program#$system} 2>&1
    echo "status $?"
  done
done
echo "@@ end: all"
/bin/busybox poweroff -f
"""
QEMU = """cd /matrix/kernel && exec timeout 3600 qemu-system-x86_64 -accel tcg -m 3072 -smp 1 -nodefaults \\
  -no-reboot -display none -serial stdio -kernel vmlinuz -initrd initramfs \\
  -append 'console=ttyS0 loglevel=1 panic=-1'"""
# The version of Debian 12: 7.2.
USER_MODE = """cd "$1" && for system in debian-*; do
  for program in $system/programs/*/*/*; do
    echo "@@ /$program"
    qemu-x86_64 -L "$1/$system" -E LD_LIBRARY_PATH="$1/$system/stub:$1/$system/lib/x86_64-linux-gnu" "$program" 2>&1
    echo "status $?"
  done
done
echo "@@ end: all"
"""
CONTROLS = ["lld_nopie", "bfd_nopie", "lld_pie", "bfd_pie"]
LOAD, PAGE = "<IIQQQQQQ", 0x1000


def check(file):
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert digest == SHA256, f"{file} has the digest {digest}, and not {SHA256}"


def download(address, package):
    """Downloads a package, and renames it into place when it is complete; returns the reason if that fails."""
    part = package.with_name(f"{package.name}.part")
    try:
        with urllib.request.urlopen(address, timeout=60) as answer, part.open("wb") as file:
            shutil.copyfileobj(answer, file)
        check(part)
        part.rename(package)
    except (OSError, http.client.HTTPException, AssertionError) as error:
        print(f"{address}: {error}")
        part.unlink(missing_ok=True)


def fetch(folder):
    """Debian 11's kernel."""
    package = folder / pathlib.PurePath(PACKAGE).name
    for server in filter(None, [mirror(), ARCHIVE]):
        if package.exists():
            break
        download(f"{server.rstrip('/')}/{PACKAGE}", package)
    assert package.exists(), f"no server has {PACKAGE}: put Debian 11's kernel at {package}, or set ROCKPACK_DEBIAN_ARCHIVE to a server's folder that has pool/"
    check(package)
    subprocess.run(["dpkg-deb", "-x", package, folder / "linux"], check=True)
    return next((folder / "linux/boot").glob("vmlinuz-*"))


def headers_at_end(data):
    """The program with its program headers in a separate load segment at the end, as some tools write it.
    Kernels before 5.18 cannot start it."""
    (count,) = struct.unpack_from("<H", data, 56)
    headers = [list(struct.unpack_from(LOAD, data, 64 + 56 * index)) for index in range(count)]
    loads = [index for index, header in enumerate(headers) if header[0] == PT_LOAD]
    end = max(headers[index][3] + headers[index][6] for index in loads)
    offset, address, size = -(-len(data) // PAGE) * PAGE, -(-end // PAGE) * PAGE, 56 * (count + 1)
    headers.insert(loads[-1] + 1, [PT_LOAD, 4, offset, address, address, size, size, PAGE])
    for header in headers:
        if header[0] == PT_PHDR:
            header[2:7] = [offset, address, address, size, size]
    data = bytearray(data.ljust(offset, b"\0"))
    struct.pack_into("<Q", data, 32, offset)
    struct.pack_into("<H", data, 56, count + 1)
    return bytes(data) + b"".join(struct.pack(LOAD, *header) for header in headers)


def control(system, place, programs):
    """Adds programs that this kernel starts and the old one cannot."""
    folder = programs / "moved-headers" / place.name
    folder.mkdir(parents=True)
    expected = {}
    for name in CONTROLS:
        path = folder / name
        path.write_bytes(headers_at_end((place / "fat" / name).read_bytes()))
        path.chmod(0o755)
        said = system.told('LD_LIBRARY_PATH=/matrix/stub exec "$1"', system.inside(path))
        assert said.endswith("status 0\n") and "program_headers=found" in said, f"{path}: {said}"
        expected[f"/{system.name}/programs/moved-headers/{place.name}/{name}"] = said.strip()
    return expected


def libraries(system, tree):
    """The dynamic loader and libraries of a system, and the stub runtime."""
    listed = system.succeed("LD_LIBRARY_PATH=/matrix/stub ldd /matrix/stub/* /matrix/fat/*_pie | grep -o '/[^ ]*'")
    for name in sorted({line.rstrip(":") for line in listed.splitlines()}):
        if "/matrix/" in name:
            continue
        for place in [name, "/lib64/ld-linux-x86-64.so.2"]:
            target = tree / place.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(system.root / place.lstrip("/"), target)
    shutil.copytree(system.work / "stub", tree / "stub")


def programs(system, tree, cells):
    """Copies the programs that the tools of `system` left; {path: output on this machine}."""
    expected = {}
    for place in sorted(system.treated.iterdir()):
        for path in sorted((place / "results").glob("*pie/*/host/*")):
            treatment = path.parent.parent.name
            if cells[place.name][path.name][treatment][0] != "ok":
                continue
            copy = tree / "programs" / f"{place.name}" / treatment / path.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
            inside = f"/{system.name}/programs/{place.name}/{treatment}/{path.name}"
            expected[inside] = (place / "results" / path.name / "says").read_text().strip()
    return expected


def tree(systems, folder, cells):
    """Gathers all programs with their dependencies; ({path: expected}, controls likewise)."""
    shutil.rmtree(folder, ignore_errors=True)
    for place in ("bin", "dev"):
        (folder / place).mkdir(parents=True)
    subprocess.run(["mknod", str(folder / "dev/console"), "c", "5", "1"], check=True)
    shutil.copy(systems["debian-12"].root / "usr/bin/busybox", folder / "bin")
    (folder / "init").write_text(INIT)
    (folder / "init").chmod(0o755)
    expected, controls = {}, {}
    for system in systems.values():
        libraries(system, folder / system.name)
        expected |= programs(system, folder / system.name, cells[system.name])
        for place in sorted(system.treated.iterdir()):
            made = system.work / "controls"
            shutil.rmtree(made, ignore_errors=True)
            controls |= control(system, place, made)
            shutil.copytree(made, folder / system.name / "programs", dirs_exist_ok=True)
    return expected, controls


def answers(said):
    """{path: output of the program}, with the release of a kernel as `kernel:`."""
    found = {path[0]: text.strip() for path, text in blocks(said.replace("\r", "")).items()}
    assert "end:" in found, f"it stopped: {said[-2000:]}"
    return found


def boot(system, folder, image):
    """The output of the programs of `folder` under a kernel."""
    work = system.work / "kernel"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    shutil.copy(image, work / "vmlinuz")
    pack = "cd \"$1\" && find . | sort | cpio -o -H newc --quiet | gzip -1 > \"$2\""
    subprocess.run(["sh", "-ec", pack, "sh", folder, work / "initramfs"], check=True)
    found = answers(system.told(QEMU))
    shutil.rmtree(work)
    return found


def run(systems, cells, roots):
    """Runs all programs that the cells of the matrix left ok under either emulator: {"release", "user_mode" (version), "programs" and
    "controls" (counts), how many of these "started", "passed" of either, "faults"}"""
    emulator, user_mode = systems["debian-13"], systems["debian-12"]
    folder = user_mode.work / "programs"
    expected, controls = tree(systems, folder, cells)
    image = fetch(roots)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        system_mode = pool.submit(boot, emulator, folder, image)
        emulated = answers(user_mode.told(USER_MODE, user_mode.inside(folder)))
        booted = system_mode.result()
    shutil.rmtree(folder)
    faults, passed = [], []
    for found in (booted, emulated):
        wrong = [path for path, text in expected.items() if found.get(path) != text]
        faults += [f"{path}: {found.get(path)}" for path in wrong]
        passed.append(len(expected) - len(wrong))
    lost = [path for path, text in controls.items() if emulated.get(path) == text]
    faults += [f"{path}: starts, so this check cannot fail" for path in lost]
    version = user_mode.succeed("dpkg-query -W -f '${Version}' qemu-user")
    print(f"{booted['kernel:']}, {version}: {passed} of {len(expected)} programs, {len(controls)} controls, {len(faults)} faults")
    return {"release": booted["kernel:"], "user_mode": version, "programs": len(expected),
            "controls": len(controls), "started": len(lost), "passed": passed, "faults": faults}
