"""The slices of `.ci/nightly`.

The minutes are those of a slice on two cores, beyond what its `needs` build or fetch. A slice that takes
more than ten is cut into more of them.
"""

import dataclasses

from sliced import REPOSITORY


@dataclasses.dataclass(frozen=True)
class Slice:
    name: str
    minutes: int
    command: tuple
    # (name, command) of builds and downloads that are needed before, once in a run.
    needs: tuple
    variables: dict = dataclasses.field(default_factory=dict)
    # Slices whose results this one combines.
    after: tuple = ()

    def is_called(self, word):
        return self.name == word or self.name.startswith(f"{word}/")

    def follows(self):
        """The names of slices that have to have passed."""
        return [each.name for each in SLICES if any(each.is_called(word) for word in self.after)]


TOOLS = ("tools", (".ci/tools",))
SBOM_TOOLS = ("sbom-tools", (".ci/tools", "sbom"))
TESTS = ("build-tests", ("cargo", "test", "--locked", "--release", "--no-run"))
# For sweeps that take a few minutes in a debug build: that exists after every change, and a release build
# of all tests takes longer than the sweeps.
VERIFY_TESTS = ("build-verify-tests", ("cargo", "test", "--locked", "--test", "verify", "--no-run"))
PROGRAM = ("build-program", ("cargo", "build", "--locked", "--release"))
LIBRARIES = ("fetch-libraries", ("examples/debian-rocm/fetch.sh", "target/acceptance", "all"))
SYSTEMS = ("make-systems", (".ci/elf-matrix", "systems"))

# Whole sweeps; the slow tests that a plain run skips have their own slices.
SWEEPS = {"ROCKPACK_SWEEPS": "all"}
EVERY_FAULT = {"ROCKPACK_FAULTS": "all"}


def test(name, minutes, program, *words, variables=SWEEPS, needs=()):
    command = ("cargo", "test", "--locked", "--release", "--test", program, "--", *words)
    return Slice(name, minutes, command, (TOOLS, *needs, TESTS), variables)


def debug_test(name, minutes, program, *words, variables, needs):
    command = ("cargo", "test", "--locked", "--test", program, "--", *words)
    return Slice(name, minutes, command, (TOOLS, *needs), variables)


def sliced(of, make):
    """Slices 1 to `of`, by what makes one."""
    return [make(f"{index}-of-{of}", f"{index}/{of}") for index in range(1, of + 1)]


def script(name, minutes, *command, needs=(PROGRAM,), after=()):
    return Slice(name, minutes, command, (TOOLS, *needs), {}, after)


def elf_matrix(name, *options):
    """Tools of two releases, and an old kernel, on fixtures and real libraries."""
    def step(place, minutes, *words, after=()):
        return script(f"{name}/{place}", minutes, ".ci/elf-matrix", *options, *words, needs=(PROGRAM, SYSTEMS),
                      after=tuple(f"{name}/{other}" for other in after))
    return [*sliced(2, lambda place, part: step(f"fixtures/{place}", 7, "--slice", part, "fixtures")),
            step("kernel", 5, "kernel", after=["fixtures"]),
            *sliced(2, lambda place, part: step(f"real/{place}", 7, "--slice", part, "real")),
            step("table", 1, "table", after=["fixtures", "kernel", "real"])]


SLICES = [
    # --- tests: whole sweeps, and those that a plain run ignores ---
    *(test(f"tests/{program}", minutes, program) for program, minutes in [
        ("pipeline", 2), ("formats", 2), ("transform", 3), ("verify", 1), ("repositories", 3)]),
    test("tests/interop", 4, "interop", "--include-ignored"),
    test("tests/limits", 8, "limits"),
    Slice("tests/runtime", 2, ("cargo", "test", "--locked", "--release", "-p", "rocm-kpack"), (TOOLS,), SWEEPS),
    *(script(f"sanitize/{sanitizer}", 4, ".ci/sanitize", sanitizer, needs=()) for sanitizer in ["thread", "address"]),
    *sliced(4, lambda name, part: debug_test(
        f"tests/tampering/{name}", 4, "verify", "--ignored", "tampering::", variables={"ROCKPACK_SLICE": part},
        needs=(VERIFY_TESTS,))),
    test("tests/large", 8, "formats", "--ignored"),
    test("tests/flips", 8, "repositories", "--ignored", "flips::"),
    test("tests/sbom", 1, "tree", "--ignored", "the_sbom_of_the_program", needs=(SBOM_TOOLS,)),
    test("tests/pins-of-libraries", 3, "pipeline", "--ignored", "--exact", "pins::debian_sets_have_the_bytes_that_are_pinned",
         variables={"ROCKPACK_DEBIAN_ROCM": str(REPOSITORY / "target/acceptance")}, needs=(LIBRARIES,)),
    # --- disturbed: every call is struck ---
    test("disturbed/others", 8, "disturbed", "beside::", "ceilings::", "changed::", "clock::", "complete::", "terminal::", "waiting::",
         variables=EVERY_FAULT),
    test("disturbed/disk", 8, "disturbed", "disk::", variables=EVERY_FAULT),
    *sliced(16, lambda name, part: test(
        f"disturbed/calls/{name}", 7, "disturbed", "injected::", "signals::", "reading::", "threads::",
        variables={**EVERY_FAULT, "ROCKPACK_SLICE": part})),
    *sliced(24, lambda name, part: test(
        f"disturbed/recovered/{name}", 7, "disturbed", "recovered::", variables={**EVERY_FAULT, "ROCKPACK_SLICE": part})),
    # --- fuzz: the programs of libFuzzer, and without it other inputs in each slice ---
    script("fuzz/compiles", 3, "cargo", "check", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target", "--locked", needs=()),
    *sliced(4, lambda name, part: test(
        f"fuzz/{name}", 8, "limits", "fuzz_smoke::", variables={"ROCKPACK_FUZZ_SECONDS": "450", "ROCKPACK_SLICE": part})),
    # --- rockpack's own packages, for older systems than this one ---
    script("release", 9, ".ci/release", needs=()),
    # --- the same bytes in any environment ---
    *sliced(2, lambda name, part: script(f"reproduce/example/{name}", 5, ".ci/reproduce", "--set", "example", "--slice", part)),
    *sliced(2, lambda name, part: script(f"reproduce/debian/{name}", 8, ".ci/reproduce", "--set", "debian", "--slice", part)),
    # --- Debian's ROCm libraries ---
    *(script(f"acceptance/{group}", minutes, ".ci/acceptance", "--only", group) for group, minutes in [
        ("content", 5), ("installed", 4), ("clone", 9), ("equal", 6), ("shlibdeps", 8), ("cost", 8)]),
    # --- reports and pages of repositories, in Chromium ---
    script("pages", 6, ".ci/pages"),
    # --- AMD's kernel loader and HIP runtime ---
    script("loader", 2, ".ci/loader"),
    # --- HIP runtimes without kernel archives ---
    script("any-runtime", 6, ".ci/any-runtime"),
    # --- tools of two releases, an old kernel ---
    *elf_matrix("elf-matrix"),
    *elf_matrix("elf-matrix-any", "--hip-runtime", "any"),
    # --- small faults in the program, which tests must notice ---
    *sliced(50, lambda name, part: script(f"mutants/{name}", 8, ".ci/mutants", "--slice", part, needs=())),
]
