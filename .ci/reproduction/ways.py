"""The ways in which a set is built: each differs from the plain way in the fields that it sets."""

import dataclasses

LONG = "another/place with spaces/and-a-much-longer-name-than-the-first/ä"
NOBODY = 65534


@dataclasses.dataclass(frozen=True)
class Way:
    """A way; the defaults are those of the plain way."""

    name: str
    # Paths below the folder of the file system: the input, the output, and a copy of the program.
    folder: str = "plain"
    program: str = ""
    # The paths on the command line: relative to another working directory, or symbolic links.
    relative: bool = False
    linked: bool = False
    user: int = 0
    variables: tuple = ()
    umask: int = 0o022
    locale: str = "C"
    zone: str = "UTC"
    # The year of the clock, and that of the input files.
    clock: int = 0
    age: int = 0
    host: str = ""
    kernel: bool = False
    # Whether memory is laid out at the same addresses each time.
    addresses: bool = False
    cores: int = 0
    # `threads` follows from these.
    jobs: int = 3
    memory: str = ""
    threads: int = 3
    # The order in which folders list their entries: `reverse` and `shuffle` by disorderfs, `created` by the file
    # system, to which everything was copied in reversed order.
    order: str = ""
    input_on: str = ""
    output_on: str = ""
    holes: bool = False
    # Input files have further hard links elsewhere.
    hard_links: bool = False
    # `empty`, `filled` (by the same build) or `older` (filled by a build of another version).
    cache: str = ""

    def differences(self):
        """The fields that differ from the plain way."""
        fields = [field for field in dataclasses.fields(self) if field.name != "name"]
        return [field.name for field in fields if getattr(self, field.name) != field.default]


PLAIN = Way("plain")

# The user, the place and the environment of the build.
SURROUNDINGS = {
    "folder": LONG, "program": "programs/of ours", "relative": True, "user": NOBODY, "umask": 0o077,
    "variables": (("HOME", "/nowhere"), ("USER", "somebody"), ("HOSTNAME", "elsewhere"), ("COLUMNS", "7")),
    "locale": "tr_TR.ISO-8859-9", "zone": "Pacific/Kiritimati", "jobs": 7, "threads": 7,
}
# The time and the machine.
MACHINE = {
    "clock": 1999, "age": 2031, "host": "another-host.example.org", "kernel": True, "addresses": True,
    "cores": 1, "jobs": 0, "threads": 1,
}
# The form of the input on disk.
DISK = {"folder": "disk", "order": "shuffle", "input_on": "ext4", "output_on": "tmpfs", "holes": True}

SINGLE = [
    Way("another folder", folder=LONG),
    Way("another place of the program", program="programs/of ours"),
    Way("relative paths", relative=True),
    Way("symbolic links", linked=True),
    Way("user nobody", user=NOBODY),
    Way("environment", variables=SURROUNDINGS["variables"]),
    Way("umask 077", umask=0o077),
    Way("umask 000", umask=0),
    Way("locale tr_TR.UTF-8", locale="tr_TR.UTF-8"),
    Way("locale tr_TR.ISO-8859-9", locale="tr_TR.ISO-8859-9"),
    Way("locale de_DE.UTF-8", locale="de_DE.UTF-8"),
    Way("time zone Pacific/Kiritimati", zone="Pacific/Kiritimati"),
    Way("time zone Asia/Kathmandu", zone="Asia/Kathmandu"),
    Way("clock in 1999", clock=1999),
    Way("clock in 2031", clock=2031),
    Way("input of 1985", age=1985),
    Way("input of 2031", age=2031),
    Way("host name", host="another-host.example.org"),
    Way("kernel 2.6", kernel=True),
    Way("fixed addresses", addresses=True),
    Way("one core", cores=1, jobs=0, threads=1),
    Way("1 thread", jobs=1, threads=1),
    Way("2 threads", jobs=2, threads=2),
    Way("7 threads", jobs=7, threads=7),
    Way("1 GiB of memory", jobs=7, memory="1G", threads=2),
    Way("folders reversed", order="reverse"),
    Way("folders shuffled", order="shuffle"),
    Way("folders as created on xfs", folder="created", order="created", input_on="xfs"),
    Way("input on tmpfs", folder="disk", input_on="tmpfs"),
    Way("input on ext4 of 1 KiB blocks", folder="disk", input_on="ext4"),
    Way("output on tmpfs", output_on="tmpfs"),
    Way("output on xfs", output_on="xfs"),
    Way("input with holes on ext4 of 1 KiB blocks", folder="holes", input_on="ext4", holes=True),
    Way("input of hard links", folder="links", hard_links=True),
    Way("empty cache", cache="empty"),
    Way("filled cache", cache="filled"),
    Way("cache of another version", cache="older"),
]

ALL = Way("all of it", **{**SURROUNDINGS, **MACHINE, **DISK, "folder": LONG})

# Several ways in each build, for slow sets.
TOGETHER = [
    Way("who and where", **SURROUNDINGS),
    Way("when and on what machine", **MACHINE),
    Way("how the files lie", **DISK, jobs=7, memory="1G", threads=2),
    dataclasses.replace(ALL, name="all of it with an empty cache", cache="empty", clock=2031),
    dataclasses.replace(ALL, name="all of it with the filled cache", cache="filled", order="reverse"),
]
