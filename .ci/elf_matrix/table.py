"""The results as tables."""

import collections

from .judged import TREATMENTS

HEAD = """# The ELF matrix

Made by `.ci/elf-matrix`.
`cargo test` runs the tools of the machine over the same fixtures (`tests/transform/tools.rs`). All
that stands here was made by one and the same rockpack.

Every fixture (`tests/fixtures/build.sh`, `tests/fixtures/src/cases.S`, and the committed binaries) is built in a
root of Debian 12 and in one of Debian 13 by the compilers and linkers there, and transformed by
{command}. Every tool of either release then treats the original and the transformed file. A
cell is `ok` where the transformed file, after the tool:

- loads (or runs) with a stand-in for the HIP runtime as it did before the tool, in the release that
  the tool comes from: every wrapper is registered and leads to the marker of its file, by its
  position, and the program's own output is that of the original;
- is told nothing by the tool, `eu-elflint --gnu-ld`, `readelf -a`, `ldd` and `gdb` (where the tool
  has to do with debug information) that they do not also tell of the original after the same tool;
- has its program headers where kernels before 5.18 say that they are: in the first load segment, at
  `e_phoff` behind the address that belongs to offset 0; and `PT_PHDR` agrees.

`orig` means that the tool refuses or breaks the original in the same way; the reasons stand below.
"""
MADE_BY = {"archives": "`rockpack split`",
           "any": '`rockpack recombine` for every HIP runtime (`hip_runtime = "any"`), except those that are left fat then'}
COMMANDS = "\nThe tools, `$1` being the file and `LLVM` the version of LLVM that is the release's own:\n\n| name | command |\n|---|---|\n"


def counted(rows):
    """The number of cells of {fixture: {treatment: (state, why)}} in each state."""
    states = collections.Counter(state for cells in rows.values() for state, _ in cells.values())
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def matrix_cells(found):
    """(tools' system, built by, fixture, treatment, state, why) of every cell."""
    for tools, builds in found.get("fixtures", {}).items():
        for built, rows in builds.items():
            for name, cells in rows.items():
                for treatment, (state, why) in cells.items():
                    yield tools, built, name, treatment, state, why


def faults(found):
    """A line for each failure."""
    lines = [f"{name} of {built}, {treatment} of {tools}: {why}"
             for tools, built, name, treatment, state, why in matrix_cells(found) if state == "fails"]
    lines += [f"kernel: {fault}" for fault in found.get("kernel", {}).get("faults", [])]
    for row in found.get("real", []):
        if row["registered"] != row["wrappers"]:
            lines.append(f"{row['library']}: {row['registered']} of {row['wrappers']} wrappers are registered")
        lines += [f"{row['library']}, {treatment} of {tools}: {why}" for tools, cells in row["cells"].items()
                  for treatment, (state, why) in cells.items() if state == "fails"]
    return lines


def table(head, rows):
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def versions(systems):
    own = {name: {"llvm" if tool.startswith("llvm-") else tool: version for tool, version in system.versions()}
           for name, system in systems.items()}
    rows = [[tool, *(of[tool] for of in own.values())] for tool in next(iter(own.values()))]
    return "\n## Versions\n\n" + table(["package", *own], rows)


def totals(found):
    rows = []
    for tools, builds in found["fixtures"].items():
        for built, fixtures in builds.items():
            states = collections.Counter(state for cells in fixtures.values() for state, _ in cells.values())
            total = sum(states.values())
            rows.append([tools, built, len(fixtures), total, states["ok"], states["as original"], states["fails"]])
    sums = [sum(row[column] for row in rows) for column in range(3, 7)]
    rows.append(["**all**", "", "", *sums])
    head = ["tools of", "fixtures built by", "fixtures", "cells", "ok", "as the original", "fail"]
    return "\n## Totals\n\n" + table(head, rows)


def cell(builds, name, treatment):
    """The effect of one tool on a fixture from any compiler."""
    short = {"ok": "ok", "as original": "orig", "fails": "**fails**"}
    states = {built: short[rows[name][treatment][0]] for built, rows in builds.items() if name in rows}
    if len(set(states.values())) == 1:
        return next(iter(states.values()))
    return ", ".join(f"{state} ({built})" for built, state in states.items())


def grids(found):
    text = ""
    for tools, builds in found["fixtures"].items():
        names = sorted({name for rows in builds.values() for name in rows})
        rows = [[f"`{name}`", *(cell(builds, name, treatment) for treatment in TREATMENTS)] for name in names]
        text += f"\n## Tools of {tools}\n\nBuilt by either release, unless a cell names one.\n\n"
        text += table(["fixture", *TREATMENTS], rows)
    return text


def reasons(found):
    """Every other state with its reason; cells with the same reason together."""
    groups = collections.defaultdict(set)
    for tools, _, name, treatment, state, why in matrix_cells(found):
        if state != "ok":
            groups[state, tools, treatment, why.replace(f"{name} ", "")].add(name)
    lines = [f"- {state}, `{treatment}` of {tools}: {', '.join(f'`{name}`' for name in sorted(names))}: {why}\n"
             for (state, tools, treatment, why), names in sorted(groups.items())]
    return "\n## What is not ok, and why\n\n" + ("".join(lines) or "Nothing.\n")


def kernel(found):
    row = found["kernel"]
    started = f"{row['started']} of them start" if row["started"] else "none of them runs"
    return f"""
## Old kernels

Every transformed program that the tools left ok is started with the loader and the C library of the
release that the tool comes from, and has to print what it prints on the machine's own kernel.

- Linux {row["release"]} of Debian 11, emulated by QEMU without the help of the processor:
  {row["passed"][0]} of {row["programs"]} programs pass.
  Kernels before 5.18 tell the loader where the program headers are by the first load segment alone;
  Debian 11's has been mended in that, so this does not show how those fare.
- The user mode of QEMU {row["user_mode"]} of Debian 12, which tells it as those kernels do:
  {row["passed"][1]} of {row["programs"]} programs pass. The check can fail: {row["controls"]} programs
  whose program headers were moved into a load segment behind everything run on the machine's own
  kernel, and {started} there.
"""


def passed(cells, has_device_code):
    """The effects of one system's tools on a real library."""
    ok = sum(state == "ok" for state, _ in cells.values())
    other = ", ".join(f"{treatment} {state}" for treatment, (state, _) in cells.items() if state != "ok")
    if not has_device_code:
        return other or "no device code: every byte is kept"
    return f"{ok} of {len(cells)}" + (f"; {other}" if other else "")


def real(systems, found):
    rows = []
    for row in found["real"]:
        before, after = row["sizes"]
        cells = [passed(row["cells"][name], row["wrappers"]) for name in systems]
        rows.append([row["origin"], row["version"], f"`{row['library']}`", f"{before:,}", f"{after:,}",
                     f"{row['registered']} of {row['wrappers']}", *cells])
    head = ["from", "version", "library", "bytes", "bytes after", "wrappers registered"]
    head += [f"tools of {name} ok" for name in systems]
    return f"""
## Real libraries

Treated by the tools of either release, then loaded and judged in Debian 13 like the fixtures. Libraries
that are not to be had are stood in for by empty ones with the symbols that are asked of them. The
library of onnxruntime-rocm is loaded by the ONNX Runtime of its wheel, as its provider for ROCm.

{table(head, rows)}"""


def markdown(systems, found, hip_runtime):
    text = HEAD.format(command=MADE_BY[hip_runtime]) + COMMANDS + "".join(f"| {name} | `{command}` |\n" for name, command in TREATMENTS.items())
    text += versions(systems) + totals(found) + reasons(found)
    return text + kernel(found) + real(systems, found) + grids(found)
