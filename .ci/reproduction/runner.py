"""Builds one set in one way after the other."""

import contextlib
import json
import os
import shutil

from . import build, places
from .build import Built, Fault
from .ways import PLAIN

# The fields that need another copy of the input.
LAID_OUT = {"folder", "age", "order", "input_on", "holes", "hard_links"}


class Set:
    """Artifacts, how they are packaged, and the times that builds are stamped with: a time also means
    that the set is published."""

    def __init__(self, name, source, config, version, another, epochs):
        self.name, self.source, self.config, self.epochs = name, source, config, epochs
        # A version of the same series: packages of another one have another prefix.
        self.version, self.another = version, another


class Runner:
    def __init__(self, root, program):
        self.places = places.Places(root)
        self.root, self.count = root, 0
        self.program = root / "program" / "rockpack"
        self.program.parent.mkdir()
        shutil.copy2(program, self.program)
        shutil.copy2(build.HERE / "probe.py", root / "probe.py")
        build.make_locales(self.made("locales"))
        self.inputs, self.stack = {}, contextlib.ExitStack()

    def made(self, name):
        (self.root / name).mkdir(parents=True, exist_ok=True)
        return self.root / name

    @contextlib.contextmanager
    def input(self, chosen, way):
        """The input for a way: that of plain builds, unless the way needs a copy."""
        if chosen.name not in self.inputs:
            kept = self.stack.enter_context(self.places.input(chosen.source, PLAIN))
            self.inputs[chosen.name] = kept
        plain = self.inputs[chosen.name]
        if not LAID_OUT.intersection(way.differences()):
            yield plain
            return
        with self.places.input(plain, way) as place:
            yield place

    def copy_of_program(self, way):
        if not way.program:
            return self.program
        place = self.made(way.program) / "rockpack"
        shutil.copy2(self.program, place)
        return place

    def work(self, way):
        """A folder for one build, which its user may write to."""
        self.count += 1
        work = self.places.base(way.output_on) / way.folder / f"work-{self.count}"
        work.mkdir(parents=True)
        (work / "empty").mkdir()
        return work

    def build(self, chosen, way, epoch, options=(), publish=True):
        """A build of a set, with its proof of the variations still to be judged."""
        built = Built(self.work(way), way, epoch)
        log = self.made("logs") / f"{chosen.name}-{self.count}-{way.name.replace('/', '-')}.log"
        with self.input(chosen, way) as artifacts:
            config = artifacts.parent / chosen.config.name
            shutil.copy2(chosen.config, config)
            cache = self.cache(chosen, way, epoch)
            named = self.named(way, built.work, {"program": self.copy_of_program(way), "artifacts": artifacts,
                                                 "config": config, "work": built.work, "cache": cache})
            built.out = os.path.join(named["work"], "out")
            built.repository = os.path.join(named["work"], "repository") if epoch is not None and publish else None
            places.give(way.user, built.work)
            if "--version" not in options:
                options = ["--version", chosen.version, *options]
            command = built.command(named["program"], named["artifacts"], named["config"], options, named["cache"])
            environment = build.variables(way, self.root / "locales", epoch)
            # Relative paths lead from here; nothing else may depend on it.
            cwd = built.work / "empty"
            built.traced(environment, command, cwd, log)
            built.seen = self.seen(built, environment, [named["program"], named["artifacts"], named["work"]], cwd, log)
            if way.clock:
                self.check_clock(built, environment, named, cwd, log)
        built.out, built.repository = built.work / "out", built.repository and built.work / "repository"
        return built

    def seen(self, built, environment, paths, cwd, log):
        return json.loads(built.run(environment, ["/usr/bin/python3", self.root / "probe.py", *paths], cwd, log))

    def named(self, way, work, paths):
        """The paths on the command line. Names of folders stay, because shards have them."""
        if way.linked:
            links = work / "links"
            links.mkdir()
            for path in filter(None, paths.values()):
                (links / path.name).symlink_to(path)
            paths = {name: path and links / path.name for name, path in paths.items()}
        if way.relative:
            paths = {name: path and os.path.relpath(path, work / "empty") for name, path in paths.items()}
        return paths

    def check_clock(self, built, environment, named, cwd, log):
        """Checks the program's clock, by the time of a publication that nothing else sets."""
        stamped = {name: value for name, value in environment.items() if name != "SOURCE_DATE_EPOCH"}
        dated = os.path.join(named["work"], "dated")
        package = next(path.name for path in (built.work / "out").glob("*.deb"))
        given = os.path.join(named["work"], "out", package)
        built.run(stamped, [named["program"], "repo", "--out", dated, given], cwd, log)
        release = (built.work / "dated/dists/stable/Release").read_text()
        year = release.split("\nDate: ")[1].split()[3]
        if year != str(built.way.clock):
            raise Fault(f"not in force: the clock of the program, which is in {year}")

    def cache(self, chosen, way, epoch):
        """The folder of a way's cache, filled for the way."""
        if not way.cache:
            return None
        folder = self.root / "caches" / f"{chosen.name}-{epoch}-{way.cache}"
        if way.cache == "filled":
            # A cache that another way filled serves as well.
            folder = folder.with_name(f"{chosen.name}-{epoch}-empty")
        elif folder.exists():
            shutil.rmtree(folder)
        if not folder.exists() or way.cache == "older":
            folder.mkdir(parents=True)
            if way.cache != "empty":
                version = chosen.another if way.cache == "older" else chosen.version
                options = ["--version", version, "--cache", folder]
                self.build(chosen, PLAIN, epoch, options, publish=False).remove()
        places.give(way.user, folder)
        return folder
