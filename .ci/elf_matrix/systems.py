"""Debian systems whose tools take part, each in a root of its own."""

import pathlib
import subprocess
import tempfile

from debian import mirror

# What is common to both: the tools that packaging runs over binaries, judges, and what
# tests/fixtures/build.sh needs.
TOOLS = """
    binutils elfutils patchelf chrpath debugedit gdb gcc g++ libc6-dev clang-19 clang-tools-19 lld-19 llvm-19
""".split()
# Release, the version of LLVM that is its own, and what only one of the systems needs to have.
SYSTEMS = {"debian-12": ("bookworm", 14, ["busybox-static", "qemu-user"]), "debian-13": ("trixie", 19, ["qemu-system-x86"])}
TOLD = ["binutils", "elfutils", "patchelf", "chrpath", "debugedit", "gdb", "gcc", "lld-19", "libc6"]
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class System:
    """One release of Debian."""

    def __init__(self, name, roots):
        self.name = name
        self.suite, self.llvm, self.more = SYSTEMS[name]
        self.root = roots / name
        self.work = self.root / "matrix"

    def make(self):
        """Makes the root, unless an earlier run has."""
        if self.root.is_dir():
            return
        partial = self.root.with_suffix(".partial")
        subprocess.run(["rm", "-rf", "--one-file-system", str(partial)], check=True)
        partial.mkdir(parents=True)
        log = self.root.with_suffix(".log")
        with log.open("w") as out:
            command = ["debootstrap", "--variant=minbase", self.suite, str(partial), mirror()]
            subprocess.run(command, check=True, stdout=out, stderr=out)
            made = System(self.name, partial.parent)
            made.root = partial
            packages = " ".join([*TOOLS, f"llvm-{self.llvm}", *self.more])
            script = f"apt-get install -y -qq --no-install-recommends {packages} && apt-get clean"
            said = made.told(script)
            out.write(said)
        # Of the original, a tool that is not there says the same as of the transformed file.
        assert said.endswith("status 0\n"), f"see {log}"
        partial.rename(self.root)

    def told(self, script, *arguments, tools=None):
        """What a shell script run as root of the system says, and its exit status. Another system
        `tools` is at /tools, and has this one's work folder in the place of its own."""
        # The mounts are seen by this process and its children alone, and end with them.
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
        """Runs a shell script that has to succeed."""
        said = self.told(script, *arguments)
        assert said.endswith("status 0\n"), f"{self.name}: {script}: {said}"
        return said.removesuffix("status 0\n")

    def versions(self):
        """Package and version of every tool."""
        packages = [*TOLD, f"llvm-{self.llvm}"]
        query = "dpkg-query -W -f '${Package} ${Version}\\n' \"$@\""
        return [line.split(" ", 1) for line in self.succeed(query, *packages).splitlines()]

    def inside(self, path):
        """How a path is called inside of the root."""
        return "/" + str(pathlib.Path(path).relative_to(self.root))
