"""Compares the output of judges: the transformed file must do as well as the original."""

import re
import struct

LONG = "/opt/rocm/lib:/a/run/path/that/is/far/too/long/for/the/room/of/the/old/one"
DH_STRIP = "--remove-section=.comment --remove-section=.note --strip-unneeded"
TREATMENTS = {
    "none": "true",
    "strip": 'strip "$1"',
    "strip-g": 'strip -g "$1"',
    "dh_strip": f'strip {DH_STRIP} "$1"',
    "objcopy": 'objcopy "$1"',
    "debuglink": 'objcopy --only-keep-debug "$1" "$1.debug"; strip -g "$1"; objcopy --add-gnu-debuglink="$1.debug" "$1"',
    "eu-strip": 'eu-strip "$1"',
    "eu-strip-f": 'eu-strip -f "$1.debug" "$1"',
    "llvm-strip": 'llvm-strip-LLVM "$1"',
    "debugedit": 'debugedit -b /build -d /usr/src/debug -i -s 0123456789abcdef "$1"',
    "patchelf": f'patchelf --set-rpath {LONG} "$1"',
    "patchelf-strip": f'patchelf --set-rpath {LONG} "$1"; strip "$1"',
    "chrpath": 'chrpath -r /opt "$1"',
}
WRAPPER = b"FPIH\x01\0\0\0"
PT_LOAD, PT_PHDR = 1, 6


def treatments(system):
    """The file of treatments that judge.sh reads."""
    lines = (f"{name}\t{command}\n" for name, command in TREATMENTS.items())
    return "".join(lines).replace("LLVM", str(system.llvm))


def blocks(said):
    """{(treatment, form, judge): output}"""
    found, lines = {}, None
    for line in said.splitlines():
        if line.startswith("@@ "):
            lines = found.setdefault(tuple(line.split()[1:]), [])
        elif lines is not None:
            lines.append(line)
    return {key: "\n".join(lines) for key, lines in found.items()}


def registrations(said, name):
    """{address of a wrapper: {field: value}} of the lines that the stub runtime prints of the program
    or of a library. Libraries that this one loads have wrappers too."""
    lines = [line for line in said.splitlines() if line.startswith("register ")]
    fields = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]
    return {int(line["wrapper"], 16): line for line in fields if line["object"] in ("-", name)}


def wrapper_addresses(path):
    """Addresses of the wrappers of a fat file, by position."""
    data = path.read_bytes()
    (table,), (size, count, names) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQ", data, table + size * index) for index in range(count)]
    strings = headers[names][4]
    for name, _, _, address, offset, length in headers:
        start = strings + name
        if data[start:data.index(b"\0", start)] == b".hipFatBinSegment":
            places = range(offset, offset + length, 8)
            return [address + at - offset for at in places if data[at:at + 8] == WRAPPER]
    return []


def resolution_faults(fat, before, after):
    """Checks that every registered wrapper refers to the marker of its file, with its position."""
    old, new = registrations(before, fat.name), registrations(after, fat.name)
    addresses = wrapper_addresses(fat)
    marker = f" kernel_name =lib/{fat.name} kpack_search_paths ="
    faults = []
    if not old or old.keys() != new.keys() or after.count(marker) != len(new):
        faults.append(f"{len(old)} wrappers were registered, {len(new)} are, {after.count(marker)} with a marker")
    for address, fields in new.items():
        if fields["magic"] != "4b504948" or addresses.index(address) != int(fields["reserved"], 16):
            faults.append(f"wrapper at {address:#x}: {fields}")
    rest = [[line for line in said.splitlines() if not line.startswith("register ")] for said in (before, after)]
    if rest[0] != rest[1] or not after.endswith("status 0"):
        faults.append(f"{rest[1]} instead of {rest[0]}")
    return faults


def header_faults(path):
    """Kernels before 5.18 report the program headers at the address of file offset 0 in the first load
    segment, plus e_phoff."""
    data = path.read_bytes()
    (at,), (size, count) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", data, at + size * index) for index in range(count)]
    loads = [header for header in headers if header[0] == PT_LOAD]
    address = loads[0][3] - loads[0][2] + at
    end = at + size * count
    mapped = [load for load in loads if load[2] <= at and end <= load[2] + load[5] and load[3] + at - load[2] == address]
    faults = [] if mapped else [f"program headers are not loaded at {address:#x}"]
    own = [header for header in headers if header[0] == PT_PHDR]
    if own and (own[0][3] != address or own[0][2] != at):
        faults.append(f"PT_PHDR does not name {address:#x}")
    return faults


def lines_of(said):
    """The output without names of folders, build IDs and numbers that a tool may change."""
    said = re.sub(r"/matrix/\S*/(fat|host)/", "", said)
    said = re.sub(r"\b[0-9a-f]{40}\b", "", said)
    return said.splitlines()


def without_numbers(line):
    return re.sub(r"0x[0-9a-f]+|[0-9 ]", "", line)


def new_lines(fat, host):
    known = set(map(without_numbers, lines_of(fat)))
    return [line for line in lines_of(host) if without_numbers(line) not in known and line != "No errors"]


def symbols_of(said):
    """gdb's output on functions: their names, places in the source and addresses. In the rest only the
    addresses of moved sections may change."""
    return [line for line in said.splitlines() if not re.match(r"\s+0x\S+ - 0x\S+ is ", line)]


def differences(judge, fat, host):
    """The complaints of one judge about the transformed file that it does not have about the original."""
    if judge == "ldd":
        # The one library that the transform adds.
        host = re.sub(r"^\tlibrocm_kpack_shim\.so\.0 => /.*\n", "", host, flags=re.M)
    if judge in ("treat", "ldd"):
        return [] if lines_of(fat) == lines_of(host) else new_lines(fat, host) or ["says less than of the original"]
    if judge == "gdb":
        pair = [lines_of("\n".join(symbols_of(said))) for said in (fat, host)]
        return [] if pair[0] == pair[1] else new_lines(fat, host) or ["knows less than of the original"]
    return new_lines(fat, host)


def loads_as_badly(fat, host):
    """Tells whether the tool broke the original, and the transformed file in the same way."""
    return not fat.endswith("status 0") and lines_of(fat) == lines_of(host)


def kind(fault):
    """A fault of program headers, without its address."""
    return fault.split(" 0x")[0]


def sources_faults(fat, results):
    """debugedit rewrites debug information with /build; it must have done so in both files."""
    had = [form for form in ("fat", "host") if b"/build/src" in (fat.parent.parent / form / fat.name).read_bytes()]
    has = lambda form: b"/usr/src/debug/src" in (results / "debugedit" / form / fat.name).read_bytes()
    return [f"names the old sources as {form}" for form in had if not has(form)]


def cell(found, treatment, fat, results):
    """("ok" | "as original" | "fails", why)"""
    # Only gdb may have no output: if a judge has none for both files, it did not run.
    get = lambda form, judge: found.get((treatment, form, judge), "") if judge == "gdb" else found[treatment, form, judge]
    faults, excused = [], []
    if treatment == "none":
        faults += resolution_faults(fat, get("fat", "load"), get("host", "load"))
    elif get("host", "load") != found["none", "host", "load"]:
        badly = loads_as_badly(get("fat", "load"), get("host", "load"))
        (excused if badly else faults).append("loads otherwise: " + " ".join(get("host", "load").split()[:12]))
    for judge in ("treat", "lint", "readelf", "ldd", "gdb"):
        faults += [f"{judge}: {line}" for line in differences(judge, get("fat", judge), get("host", judge))]
    if treatment == "debugedit":
        faults += sources_faults(fat, results)
    original, transformed = (header_faults(results / treatment / form / fat.name) for form in ("fat", "host"))
    for fault in transformed:
        (excused if kind(fault) in map(kind, original) else faults).append(fault)
    if not get("fat", "treat").endswith("status 0"):
        excused.append(" ".join(get("fat", "treat").split()))
    state = "fails" if faults else "as original" if excused else "ok"
    return state, "; ".join(faults or excused)
