"""The checks of one set."""

import subprocess

from . import build, compare, signing, ways
from .build import Fault
from .ways import ALL, PLAIN


class Checks:
    """A set, and the output of its plain builds, by their timestamp."""

    def __init__(self, runner, chosen):
        self.runner, self.chosen = runner, chosen
        self.plain = {epoch: runner.build(chosen, PLAIN, epoch) for epoch in chosen.epochs}
        self.wrote = {epoch: compare.of(built) for epoch, built in self.plain.items()}

    def holds(self, way):
        """Checks that the builds of a way equal those of the plain way."""
        counts = []
        for epoch in self.chosen.epochs:
            built = self.runner.build(self.chosen, way, epoch)
            built.check(self.plain[epoch])
            counts.append(compare.same(self.wrote[epoch], compare.of(built)))
            built.remove()
        return f"{' + '.join(map(str, counts))} files identical"

    # --- the checks themselves can fail ---

    def another_release_is_seen(self):
        built = self.runner.build(self.chosen, PLAIN, None, ["--release", "2"])
        lonely, changed = compare.differing(self.wrote[None], compare.of(built))
        built.remove()
        if not lonely or "packages.json" not in changed:
            raise Fault("a set of another release passes for the same")
        return f"{len(lonely)} names and {len(changed)} files differ"

    def another_time_is_seen(self):
        """Checks that with a time one second later no name differs, and every package does."""
        epoch = self.chosen.epochs[-1]
        built = self.runner.build(self.chosen, PLAIN, epoch + 1)
        one, other = compare.contents(self.plain[epoch].out), compare.contents(built.out)
        lonely, changed = compare.differing(one, other)
        told = diffoscope(self.plain[epoch].out, built.out)
        built.remove()
        for kind in (".deb", ".rpm", "packages.json"):
            of_kind = {name for name in one if name.endswith(kind)}
            if not of_kind or not of_kind <= set(changed):
                raise Fault(f"of another time, these pass for the same: {sorted(of_kind - set(changed)) or kind}")
        if lonely or not told:
            raise Fault(f"of another time, names differ {lonely[:3]}, or diffoscope sees nothing")
        return f"{len(changed)} files differ, of which diffoscope says {len(told.splitlines())} lines"

    def idle_ways_are_seen(self):
        """Checks that a way that was not applied is found not to be in force, for each way."""
        seen = self.plain[None].seen
        every = ways.SINGLE + ways.TOGETHER
        for way in every:
            wanted = [field for field in way.differences() if field not in build.SHOWN]
            # One core is in force on a machine that has no more.
            wanted = [field for field in wanted if field != "cores" or seen["cores"] > 1]
            if build.not_in_force(way, seen, seen) != wanted:
                raise Fault(f"{way.name} passes for being in force where nothing was changed")
        return f"{len(every)} ways"

    # --- signatures ---

    def signed(self, key):
        """Checks that signed sets of two ways are equal, and that signing changes nothing else."""
        epoch = self.chosen.epochs[-1]
        options = ["--sign-key", str(key.secret)]
        one, other = (self.runner.build(self.chosen, way, epoch, options) for way in (PLAIN, ALL))
        count = compare.same(compare.of(one), compare.of(other))
        equal, packages = signing.changes_nothing_else(one, self.plain[epoch])
        signing.rpm_sees_one_tag_more(one, self.plain[epoch])
        return f"{count} files identical; {equal} as unsigned, {packages} .rpm but for the signature header and its tag"

    def signed_by_gpg(self, key):
        return signing.by_gpg_is_the_same_again(self.runner, self.chosen, self.chosen.epochs[-1], key)

    # --- diffoscope ---

    def diffoscope_sees_nothing(self):
        epoch = self.chosen.epochs[-1]
        other = self.runner.build(self.chosen, ALL, epoch)
        told = diffoscope(self.plain[epoch].out, other.out)
        if told:
            raise Fault(told[:500])
        count = len(compare.contents(other.out))
        other.remove()
        return f"no differences in {count} files"


def diffoscope(one, other):
    """diffoscope's report on two folders, empty if they are equal; timestamps and owners are not compared."""
    command = ["diffoscope", "--exclude-directory-metadata=yes", "--text", "-", one, other]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1) or bool(done.stdout) != (done.returncode == 1):
        raise Fault(f"diffoscope ended with status {done.returncode}: {done.stderr[:500]}")
    return done.stdout


def run(runner, chosen, check):
    """Every check of a set, one after the other. Slow sets are built in few ways, and signed by one key."""
    checks = Checks(runner, chosen)
    named = lambda name, function: check(f"{chosen.name}: {name}", function)
    named("ways that are not in force are seen", checks.idle_ways_are_seen)
    small = chosen.name == "example"
    if small:
        named("another release is seen", checks.another_release_is_seen)
        named("another time is seen", checks.another_time_is_seen)
    for way in [*ways.SINGLE, ALL, *ways.TOGETHER] if small else ways.TOGETHER:
        named(way.name, lambda: checks.holds(way))
    named("diffoscope", checks.diffoscope_sees_nothing)
    for algorithm in signing.ALGORITHMS if small else signing.ALGORITHMS[:1]:
        key = signing.Key(algorithm)
        named(f"signed, {algorithm}", lambda: checks.signed(key))
        named(f"signed by gpg, {algorithm}", lambda: checks.signed_by_gpg(key))
        key.remove()
