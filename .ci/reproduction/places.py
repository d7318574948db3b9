"""Where input and output of a build lie: copies of the input, file systems, and folders that list
their entries in another order."""

import contextlib
import datetime
import os
import pathlib
import shutil
import subprocess

# Of what is made in an image; ext4 with blocks of 1 KiB, where the plain one has 4 KiB.
MAKE = {"ext4": ["mkfs.ext4", "-q", "-b", "1024"], "xfs": ["mkfs.xfs", "-q"]}
IMAGE = 12 << 30


def run(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


class Places:
    """Everything below one folder. Mounts are seen by this process and its children alone, and end
    with them."""

    def __init__(self, root):
        self.root = root
        self.mounted, self.copies = {}, 0
        root.mkdir(parents=True)

    def base(self, kind):
        """The folder of a file system of a kind, mounted when it is first asked for."""
        if not kind:
            return self.root
        if kind not in self.mounted:
            mount = self.root / f"on-{kind}"
            mount.mkdir()
            if kind == "tmpfs":
                run("mount", "-t", "tmpfs", "tmpfs", mount)
            else:
                # Sparse: it takes as much of the disk as is written to it.
                image = self.root / f"{kind}.image"
                with image.open("wb") as file:
                    file.truncate(IMAGE)
                run(*MAKE[kind], image)
                run("mount", "-o", "loop", image, mount)
            self.mounted[kind] = mount
        return self.mounted[kind]

    @contextlib.contextmanager
    def input(self, source, way):
        """A copy of the artifacts in the folder `source` as a way wants it, for as long as a `with` lasts."""
        self.copies += 1
        folder = self.base(way.input_on) / way.folder / f"input-{self.copies}"
        folder.mkdir(parents=True)
        place = folder / source.name
        copy(source, place, way)
        if way.age:
            stamp(place, way.age)
        os.sync()
        with self.reordered(place, way.order) as seen:
            yield seen
        shutil.rmtree(folder)

    @contextlib.contextmanager
    def reordered(self, place, order):
        if order not in ("reverse", "shuffle"):
            yield place
            return
        # Under the same name: it is the shard's.
        mount = place.parent / order / place.name
        mount.mkdir(parents=True, exist_ok=True)
        options = {"reverse": ["--sort-dirents=yes", "--reverse-dirents=yes"], "shuffle": ["--shuffle-dirents=yes"]}
        run("disorderfs", "--quiet", "--multi-user=yes", *options[order], place, mount)
        try:
            yield mount
        finally:
            run("umount", mount)


def copy(source, place, way):
    if way.order == "created":
        return copy_reversed(source, place)
    how = ["--sparse=always" if way.holes else "--sparse=never", "--reflink=never"]
    run("cp", "-a", *(["-l"] if way.hard_links else how), source, place)


def stamp(place, year):
    time = datetime.datetime(year, 7, 1, tzinfo=datetime.timezone.utc).timestamp()
    for path in [place, *place.rglob("*")]:
        os.utime(path, (time, time), follow_symlinks=False)


def copy_reversed(source, place):
    """A file system that lists names as they came lists them the other way round."""
    place.mkdir()
    for name in sorted(os.listdir(source), reverse=True):
        if (source / name).is_dir():
            copy_reversed(source / name, place / name)
        else:
            shutil.copy2(source / name, place / name, follow_symlinks=False)


def give(user, folder):
    """Lets a user write what is below a folder."""
    for path in [folder, *pathlib.Path(folder).rglob("*")]:
        os.chown(path, user, user, follow_symlinks=False)
