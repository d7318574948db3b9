"""Real libraries: Debian's ROCm, and the libraries of published Python wheels."""

import collections
import filecmp
import re
import shutil
import subprocess
import sys

from . import fixtures, judged

# Debian builds rocALUTION without device code: it must not change.
DEBIAN = ["librocrand1", "librocblas0", "librocfft0", "librocalution0", "librccl1"]
# Name, version, Python and platform. ONNX Runtime is for ROCm 7.2, bitsandbytes has one library for each
# ROCm from 6.4 on, CuPy is for ROCm 5.0 and was edited by patchelf when the wheel was made.
WHEELS = [
    ("onnxruntime-rocm", "1.22.2.post3", "3.11", "manylinux_2_34_x86_64"),
    ("bitsandbytes", "0.50.2", "3.11", "manylinux_2_24_x86_64"),
    ("cupy-rocm-5-0", "13.3.0", "3.10", "manylinux2014_x86_64"),
]
# Libraries that load ONNX Runtime's library and have to lie beside it, by the names that the loader seeks.
HOST = {"libonnxruntime.so.1": "libonnxruntime.so.1.22.2", "libonnxruntime_providers_shared.so": "libonnxruntime_providers_shared.so"}
FETCH = """
set -e
cd /matrix/real && mkdir -p debs root
apt-get install -y -qq --no-install-recommends --download-only -o Dir::Cache::archives=/matrix/real/debs "$@"
for deb in debs/*.deb; do dpkg-deb -x "$deb" root; done
for package in "$@"; do
  dpkg-deb -f debs/"$package"_*.deb Package Version
  dpkg-deb -c debs/"$package"_*.deb | sed -n 's/^-.* \\.\\/\\(.*\\.so[.0-9]*\\)$/File: \\1/p'
done
rm -r debs
"""
LIBRARIES = "usr/lib/x86_64-linux-gnu"
PROVIDER = "libonnxruntime_providers_rocm.so"
SYSTEM = re.compile(r"(GLIBC|GCC|CXXABI|GLIBCXX)_")


def fetch(system):
    """Unpacks packages and wheels below the work folder's `real`; [(origin, version, library)]"""
    folder = system.work / "real"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "fat").mkdir()
    (folder / "homes").mkdir()
    found = []
    for line in system.succeed(FETCH, *DEBIAN).splitlines():
        label, _, value = line.partition(": ")
        if label == "Package":
            package = value
        elif label == "Version":
            version = value
        elif label == "File":
            path = folder / "root" / value
            shutil.copy(path, folder / "fat")
            found.append(("Debian's " + package, version, path.name))
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    return found + [library for wheel in WHEELS for library in libraries(folder, *wheel)]


def is_fat(path):
    listed = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout
    return ".hip_fatbin" in listed


def libraries(folder, name, version, python, platform):
    """Every library of a wheel that has device code."""
    place = folder / "wheels" / name
    command = [folder / "venv/bin/pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    given = ["--python-version", python, "--platform", platform, "-d", place, f"{name}=={version}"]
    subprocess.run([*command, *given], check=True)
    (archive,) = place.iterdir()
    shutil.unpack_archive(archive, place, "zip")
    archive.unlink()
    found = []
    for path in sorted(place.rglob("*.so*")):
        if is_fat(path):
            # A program that loads a library from its place in the wheel must find the one under test.
            (folder / "homes" / path.name).symlink_to(path.parent)
            path.rename(folder / "fat" / path.name)
            found.append((name, version, path.name))
    return found


def symbols(path):
    """(name, version, whether it is defined, whether it is weak) of the dynamic symbols of a library."""
    listed = subprocess.run(["readelf", "--dyn-syms", "-W", path], capture_output=True, text=True).stdout
    for line in listed.splitlines():
        words = line.split()
        if len(words) > 7 and words[0].rstrip(":").isdigit() and words[4] != "LOCAL":
            symbol, _, version = words[7].partition("@")
            yield symbol, version.lstrip("@"), words[6] != "UND", words[4] == "WEAK"


def needs(path):
    """(sonames that a library needs, {version: soname})"""
    listed = subprocess.run(["readelf", "-dVW", path], capture_output=True, text=True).stdout
    versions, library = {}, None
    for line in listed.splitlines():
        library = re.sub(r".*File: (\S+).*", r"\1", line) if "File: " in line else library
        if library and "  Name: " in line:
            versions[line.split("Name: ")[1].split()[0]] = library
    return re.findall(r"\(NEEDED\).*\[(.*)\]", listed), versions


def home(folder, name):
    """The folders of the libraries that were published with a library."""
    of_wheel = folder / "homes" / name
    return of_wheel.readlink() if of_wheel.is_symlink() else folder / "root" / LIBRARIES


def host_of(folder, name):
    """{name: path} of the loaders of a library, if it needs special ones."""
    return {soname: home(folder, name) / file for soname, file in HOST.items() if name == PROVIDER}


def stand_ins(system, name):
    """Builds in the library's folder `stub` the stub runtime with every symbol that the library and its
    dependencies need from it, and an empty library for every other missing one."""
    folder = system.work / "real"
    stub = folder / "stub" / name
    stub.mkdir(parents=True)
    present = {path.name: path for path in home(folder, name).glob("*.so*")}
    present = {soname: path for soname, path in present.items() if not soname.startswith("libamdhip64")}
    host = host_of(folder, name)
    queue, seen, asked, defined = [folder / "fat" / name, *host.values()], set(), {}, set()
    while queue:
        path = queue.pop()
        sonames, versions = needs(path)
        for symbol, version, is_defined, weak in symbols(path):
            if is_defined:
                defined.add(symbol)
            elif not weak and not SYSTEM.match(version):
                asked[symbol] = (version, versions.get(version, ""))
        for soname in set(sonames) - seen:
            seen.add(soname)
            if soname in present:
                queue.append(present[soname])
    absent = [soname for soname in sorted(seen - present.keys()) if not (system.root / LIBRARIES / soname).exists()]
    # Some need the runtime only through another library.
    hip = next((soname for soname in absent if soname.startswith("libamdhip64")), absent[0])
    for soname in absent:
        wanted = {symbol: version for symbol, (version, library) in asked.items()
                  if symbol not in defined and (library or hip) == soname}
        compile_stub(system, stub, soname, wanted, soname == hip)
    if host:
        shutil.copy(fixtures.REPOSITORY / ".ci/elf_matrix/load_provider.c", system.work)
        # The runtime of the wheel requires an executable stack, which glibc gives only to programs.
        system.succeed('gcc -O1 -z execstack -o "$1" /matrix/load_provider.c', system.inside(stub / "load"))
    else:
        shutil.copy(system.work / "stub/load", stub)
    shutil.copy(system.work / "stub" / fixtures.SHIM, stub)
    return system.inside(stub)


def lay_beside(system, name, results):
    """Links the loaders of a library into the folders for its copies by judge.sh."""
    for form in ("fat", "host"):
        (results / form).mkdir(parents=True)
        for soname, path in host_of(system.work / "real", name).items():
            (results / form / soname).symlink_to(system.inside(path))


def compile_stub(system, folder, soname, wanted, is_runtime):
    """Builds a library `soname` that defines the wanted symbols, by version."""
    source = (fixtures.REPOSITORY / "tests/support/stub_hip.c").read_text() if is_runtime else ""
    versions = {}
    for symbol, version in sorted(wanted.items()):
        versions.setdefault(version, []).append(symbol)
        if f"{symbol}(" not in source:
            source += f"long {symbol}() {{ return 0; }}\n"
    script = "".join(f"{version or 'NONE'} {{ {'; '.join(names)}; }};\n" for version, names in versions.items() if version)
    (folder / "stub.c").write_text(source)
    (folder / "versions").write_text(script)
    given = "-Wl,--version-script=versions" if script else ""
    system.succeed('cd "$1" && gcc -w -fno-builtin -shared -fPIC -Wl,-soname,"$2" $3 -o "$2" stub.c',
                   system.inside(folder), soname, given)


def judge(system, tools, stub, name):
    """{treatment: (state, why)} by the tools of a system, and the number of registered wrappers."""
    folder = system.work / "real"
    inside = system.inside
    cells, found = {}, {}
    other = None if tools is system else tools
    # One after the other: a copy of a large library takes half a gigabyte.
    for treatment, command in judged.TREATMENTS.items():
        treatments = folder / "treatments"
        treatments.write_text(f"{treatment}\t{command.replace('LLVM', str(tools.llvm))}\n")
        lay_beside(system, name, folder / "results" / treatment)
        arguments = [name, inside(folder / "results"), inside(treatments), inside(folder / "fat"), inside(folder / "host")]
        script = 'STUB=$1 LIBRARIES=$2 TOOLS=$3; export STUB LIBRARIES TOOLS; shift 3; exec sh /matrix/judge.sh "$@"'
        places = [stub, inside(home(folder, name)), "/tools" if other else ""]
        found |= judged.blocks(system.told(script, *places, *arguments, tools=other))
        cells[treatment] = judged.cell(found, treatment, folder / "fat" / name, folder / "results")
        shutil.rmtree(folder / "results")
    return cells, len(judged.registrations(found["none", "host", "load"], name))


def passed_on(fat, host):
    """The same for a library without device code, which must not change."""
    return {} if filecmp.cmp(fat, host, shallow=False) else {"none": ("fails", "has no device code, and is changed")}


def run(system, toolsets, rockpack, wanted, rows, save):
    """[{origin, version, library, sizes, wrappers, registered, cells}], saved after every library; `rows`
    of libraries that are not wanted stay. The libraries are loaded in `system`, after the tools of each
    system of `toolsets` treated them: {tools' system: {treatment: (state, why)}}"""
    folder = system.work / "real"
    everything = fetch(system)
    found = [entry for entry in everything if wanted(entry[2])]
    # The table has this order, regardless of the order of the results.
    place = {name: at for at, (_, _, name) in enumerate(everything)}
    rows = [row for row in rows if not wanted(row["library"])]
    for path in (folder / "fat").iterdir():
        if not wanted(path.name):
            path.unlink()
    fixtures.transform(rockpack, system.hip_runtime, folder / "fat", folder / "host")
    for origin, version, name in found:
        fat, host = (folder / form / name for form in ("fat", "host"))
        cells, registered = {}, 0
        stub = stand_ins(system, name) if is_fat(fat) else None
        for tools in toolsets:
            cells[tools.name], registered = judge(system, tools, stub, name) if stub else (passed_on(fat, host), 0)
        sizes = [path.stat().st_size for path in (fat, host)]
        wrappers = len(judged.wrapper_addresses(fat))
        states = {tools: collections.Counter(state for state, _ in own.values()) for tools, own in cells.items()}
        print(f"{name}: {sizes}, {registered} of {wrappers} wrappers, {states}", flush=True)
        rows.append({"origin": origin, "version": version, "library": name, "sizes": sizes,
                     "wrappers": wrappers, "registered": registered, "cells": cells})
        save("real", sorted(rows, key=lambda row: place.get(row["library"], len(place))))
    shutil.rmtree(folder)
