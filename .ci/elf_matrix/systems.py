"""The Debian systems whose tools are tried, each in its own root."""

import pathlib
import subprocess
import tempfile

from debian import mirror

# Common to both: the tools that packaging runs on binaries, the judges, and the needs of
# tests/fixtures/build.sh.
TOOLS = """
    binutils elfutils patchelf chrpath debugedit gdb gcc g++ libc6-dev clang-19 clang-tools-19 lld-19 llvm-19
""".split()
# Release, its own version of LLVM, and the packages that only this system needs.
SYSTEMS = {"debian-12": ("bookworm", 14, ["busybox-static", "qemu-user"]), "debian-13": ("trixie", 19, ["qemu-system-x86"])}
TOLD = ["binutils", "elfutils", "patchelf", "chrpath", "debugedit", "gdb", "gcc", "lld-19", "libc6"]
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class System:
    """One release of Debian."""

    def __init__(self, name, roots, hip_runtime):
        self.name, self.hip_runtime = name, hip_runtime
        self.suite, self.llvm, self.more = SYSTEMS[name]
        self.root = roots / name
        self.work = self.root / "matrix"
        # The fixtures that its tools treat, by the system that built them.
        self.treated = self.work / f"from-{hip_runtime}"

    def make(self):
        """Creates the root, unless an earlier run did."""
        if self.root.is_dir():
            return
        partial = self.root.with_suffix(".partial")
        subprocess.run(["rm", "-rf", "--one-file-system", str(partial)], check=True)
        partial.mkdir(parents=True)
        log = self.root.with_suffix(".log")
        with log.open("w") as out:
            command = ["debootstrap", "--variant=minbase", self.suite, str(partial), mirror()]
            subprocess.run(command, check=True, stdout=out, stderr=out)
            made = System(self.name, partial.parent, self.hip_runtime)
            made.root = partial
            packages = " ".join([*TOOLS, f"llvm-{self.llvm}", *self.more])
            script = f"apt-get install -y -qq --no-install-recommends {packages} && apt-get clean"
            said = made.told(script)
            out.write(said)
        # A missing tool would print the same for the original and the transformed file.
        assert said.endswith("status 0\n"), f"see {log}"
        partial.rename(self.root)

    def told(self, script, *arguments, tools=None):
        """The output and exit status of a shell script that runs as root of the system. Another system
        `tools` is at /tools, with this one's work folder in place of its own."""
        # Only this process and its children see the mounts, which end with them.
        outer = 'set -e; root=$1 tools=$2; shift 2; mount -t proc proc "$root/proc"; '
        if tools:
            outer += 'mkdir -p "$root/tools"; mount --bind "$tools" "$root/tools"; '
            outer += 'mount -t proc proc "$root/tools/proc"; mount --bind "$root/matrix" "$root/tools/matrix"; '
        outer += 'exec chroot "$root" "$@"'
        inner = ["/bin/sh", "-c", script, "sh", *map(str, arguments)]
        roots = [str(self.root), str(tools.root if tools else "")]
        command = ["unshare", "--mount", "sh", "-c", outer, "sh", *roots, *inner]
        environment = {"PATH": PATH, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        with tempfile.TemporaryFile() as said:
            status = subprocess.run(command, stdout=said, stderr=said, stdin=subprocess.DEVNULL,
                                    env=environment).returncode
            said.seek(0)
            return f"{said.read().decode(errors='replace')}status {status}\n"

    def succeed(self, script, *arguments):
        """Runs a shell script that must succeed."""
        said = self.told(script, *arguments)
        assert said.endswith("status 0\n"), f"{self.name}: {script}: {said}"
        return said.removesuffix("status 0\n")

    def versions(self):
        """Package and version of every tool."""
        packages = [*TOLD, f"llvm-{self.llvm}"]
        query = "dpkg-query -W -f '${Package} ${Version}\\n' \"$@\""
        return [line.split(" ", 1) for line in self.succeed(query, *packages).splitlines()]

    def inside(self, path):
        """The name of a path inside of the root."""
        return "/" + str(pathlib.Path(path).relative_to(self.root))
