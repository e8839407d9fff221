"""Finds files by name and by content. Respects .gitignore, never follows links, is bounded, and reports truncation.

The same walk always selects the files. For content searches, ripgrep (if installed) preselects the files that can
match; the lines are then read through the jail by the same code as without it. So both ways give the same result, and
the model gets only paths that the jail has checked.
"""

import asyncio
import heapq
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from portico.kernel.errors import BadRequest, PorticoError
from portico.sandbox.policy import Unconfined
from portico.workspace.atomic_write import TEMPORARY
from portico.workspace.files import SNIFF, is_binary
from portico.workspace.glob import PATTERN_MAX, Glob
from portico.workspace.ignore import IGNORE_MAX, Ignore
from portico.workspace.jail import Jail, Spot, is_closed, open_at, speakable
from portico.workspace.process import environment, run

LIST_DEFAULT = 50  # what the seed's tool gives when nothing is asked for
LIST_MAX = 500  # the ceiling of listFiles
MATCH_DEFAULT = 50
MATCH_MAX = 1000  # more matches do not help a reader; a narrower pattern does
WALK_MAX = 200_000  # entries looked at in one walk: the Linux kernel has 90,000
FILE_MAX = 5 * 1024 * 1024  # larger ones are data or generated
LINE_MAX = 400  # characters of a shown line; minified code has lines of megabytes
DEPTH_MAX = 100  # folders in folders; each holds a descriptor
SECONDS_MAX = 20.0  # a regular expression can run forever; users do not wait longer for a search
ARGUMENTS_MAX = 96 * 1024  # bytes of file names per ripgrep call, well below the smallest system's limit
OURS = Unconfined("a search of the host: ripgrep without settings, or our own code")

Cut = Literal["", "matches", "entries", "time"]


class FoundPaths(Struct, frozen=True):
    paths: list[str]
    cut: bool


class SearchMatch(Struct, frozen=True):
    path: str
    line: int
    text: str


class Matches(Struct, frozen=True):
    matches: list[SearchMatch]
    files: int  # how many were looked at
    cut: Cut  # why there may be more; empty when this is all


class SearchTask(Struct, frozen=True):
    """What the child process gets that runs regular expressions (see `_in_child`)."""

    roots: list[str]
    pattern: str
    regex: bool
    paths: list[str]
    limit: int
    ignore_case: bool


async def find(jail: Jail, glob: str = "", limit: int = LIST_DEFAULT, under: str = ".") -> FoundPaths:
    """File names, sorted. `glob` is a pattern, or a piece of the path when it has no wildcard."""
    wanted = _limit(limit, LIST_MAX)
    names, cut = await asyncio.to_thread(_names, jail, under, _filter(glob))
    return FoundPaths(names[:wanted], cut or len(names) > wanted)


async def closest(jail: Jail, word: str, limit: int) -> list[str]:
    """Files, and folders with a slash at their end, that a person who types this word may mean; the likeliest first."""
    return await asyncio.to_thread(_closest, jail, word, limit)


def _closest(jail: Jail, word: str, limit: int) -> list[str]:
    sought = word.lower()
    wanted = _filter(word) if _is_glob(word) else lambda path: sought in path.lower()
    names, _ = _names(jail, ".", wanted)
    folders = [f"{each}/" for each in _folders(names) if sought and wanted(each)]
    return heapq.nsmallest(limit, [*names, *folders], key=partial(_distance, sought))


def _folders(names: list[str]) -> set[str]:
    """All folders that these files are in."""
    found: set[str] = set()
    for name in names:
        folder = name.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _distance(sought: str, path: str) -> tuple[bool, bool, int, str]:
    """A name that begins with the word is meant before one that has it in it, that before a mere path, and what is
    near before what is deep."""
    folder, _, name = path.rstrip("/").rpartition("/")
    return (not name.lower().startswith(sought), sought not in name.lower(), folder.count("/") + bool(folder), path)


async def search(
    jail: Jail,
    pattern: str,
    *,
    regex: bool = False,
    glob: str = "",
    limit: int = MATCH_DEFAULT,
    ignore_case: bool = False,
    under: str = ".",
) -> Matches:
    """Lines that contain `pattern`, with their numbers, by path."""
    _check(pattern, regex)
    names, cut = await asyncio.to_thread(_names, jail, under, _filter(glob))
    task = SearchTask([str(root) for root in jail.roots], pattern, regex, names, _limit(limit, MATCH_MAX), ignore_case)
    candidates = await _ripgrep(jail, task)
    task = msgspec.structs.replace(task, paths=candidates)
    found = await (_in_child(task) if regex else asyncio.to_thread(scan, jail, task))
    why: Cut = found.cut or ("entries" if cut else "")
    return Matches(found.matches, len(names), why)


def _limit(limit: int, ceiling: int) -> int:
    if limit < 1:
        raise BadRequest("Ask for at least one result.", field="max")
    return min(limit, ceiling)


def _check(pattern: str, regex: bool) -> None:
    if not pattern or len(pattern) > PATTERN_MAX or "\0" in pattern:
        raise BadRequest(f"A search pattern has 1 to {PATTERN_MAX} characters and no NUL.", field="pattern")
    if regex:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadRequest(f"{pattern!r} is no regular expression: {error}.", field="pattern") from error


def _filter(glob: str) -> Callable[[str], bool]:
    return Glob(glob).matches if _is_glob(glob) else lambda path: glob in path


def _is_glob(text: str) -> bool:
    return any(sign in text for sign in "*?[{")


def _names(jail: Jail, under: str, wanted: Callable[[str], bool]) -> tuple[list[str], bool]:
    """All wanted files below `under`, relative to the jail's root; and whether the walk gave up before its end."""
    names: list[str] = []
    prefix = jail.relative(under)
    walker = _Walker(jail, under)
    for parts in walker.run():
        path = "/".join(parts) if prefix == "." else "/".join((prefix, *parts))
        if wanted(path) and speakable(path):
            names.append(path)
    return sorted(names), walker.cut


class _Walker:
    def __init__(self, jail: Jail, under: str) -> None:
        self.jail = jail
        self.under = under
        self.top = jail.resolve(under)
        self.seen = 0
        self.cut = False

    def run(self) -> Iterator[tuple[str, ...]]:
        fd = self.jail.open(self.under)
        try:
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                raise BadRequest(f"{self.under!r} is not a folder.", field="path")
            yield from self.folder(fd, (), Ignore())
        finally:
            os.close(fd)

    def folder(self, fd: int, parts: tuple[str, ...], ignore: Ignore) -> Iterator[tuple[str, ...]]:
        with os.scandir(fd) as found:
            items = [(item.name, item.is_dir(follow_symlinks=False), item.is_symlink()) for item in found]
        if any(name == ".gitignore" for name, _, _ in items):
            ignore = ignore.below(parts, _read_ignore(fd, self.jail.root.joinpath(*parts)))
        for name, is_folder, is_link in items:
            self.seen += 1
            if self.seen > WALK_MAX:
                self.cut = True
                return
            here = (*parts, name)
            if is_link or name == ".git" or name.startswith(TEMPORARY) or ignore.hides(here, is_folder):
                continue
            if is_folder and not is_closed(self.top.joinpath(*here), self.jail.root):
                yield from self.enter(fd, here, ignore)
            elif not is_folder:
                yield here

    def enter(self, fd: int, parts: tuple[str, ...], ignore: Ignore) -> Iterator[tuple[str, ...]]:
        if len(parts) > DEPTH_MAX:
            self.cut = True
            return
        try:
            inner = os.open(parts[-1], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        except OSError:
            return  # gone, unreadable or swapped for a link since it was listed: not ours to show
        try:
            yield from self.folder(inner, parts, ignore)
        finally:
            os.close(inner)


def _read_ignore(fd: int, path: Path) -> str:
    try:
        with os.fdopen(open_at(Spot(fd, ".gitignore", path, None)), "rb") as file:
            return file.read(IGNORE_MAX).decode("utf-8", "replace")
    except (OSError, PorticoError):
        return ""  # a folder, a link or unreadable: git does not use it either


def scan(jail: Jail, task: SearchTask) -> Matches:
    """Reads the files through the jail, line by line. Plain code: runs in a thread or in the child."""
    fits = _matcher(task)
    matches: list[SearchMatch] = []
    for path in task.paths:
        for number, line in enumerate(_lines(jail, path), 1):
            if fits(line):
                if len(matches) == task.limit:
                    return Matches(matches, len(task.paths), "matches")
                matches.append(SearchMatch(path, number, line[:LINE_MAX]))
    return Matches(matches, len(task.paths), "")


def _matcher(task: SearchTask) -> Callable[[str], bool]:
    if task.regex:
        pattern = re.compile(task.pattern, re.IGNORECASE if task.ignore_case else 0)
        return lambda line: pattern.search(line) is not None
    if task.ignore_case:
        folded = task.pattern.lower()
        return lambda line: folded in line.lower()
    return lambda line: task.pattern in line


def _lines(jail: Jail, path: str) -> list[str]:
    try:
        with os.fdopen(jail.open(path), "rb") as file:
            # By the size it has: reading "at most five megabytes" makes room for five megabytes each time.
            size = os.fstat(file.fileno()).st_size
            if size > FILE_MAX:
                return []
            data = file.read(size)
    except (OSError, PorticoError):
        return []  # gone or unreadable since it was listed
    if is_binary(data[:SNIFF]):
        return []
    # Not `splitlines`: a form feed or U+2028 would shift the numbers that editors show.
    return [line.removesuffix("\r") for line in data.decode("utf-8", "replace").split("\n")]


async def _ripgrep(jail: Jail, task: SearchTask) -> list[str]:
    """The paths that ripgrep does not rule out; all of them when it is missing or does not know the pattern."""
    program = shutil.which("rg")
    if program is None or not task.paths:
        return task.paths
    options = ["--no-config", "--files-with-matches", "--null", "--text", "--crlf", "--color=never"]
    options += [] if task.regex else ["--fixed-strings"]
    options += ["--ignore-case"] if task.ignore_case else ["--case-sensitive"]
    found: set[str] = set()
    for chunk in _chunks(task.paths):
        # `./` because a file named `-` would mean standard input.
        command = [program, *options, "--regexp", task.pattern, "--", *(os.path.join(".", path) for path in chunk)]
        done = await run(
            command,
            policy=OURS,
            cwd=jail.root,
            env=environment(),
            timeout=SECONDS_MAX,
            head=1024**2,
            raw=True,
        )
        if done.code not in (0, 1) or done.cut:
            return task.paths
        found.update(path.removeprefix("./") for path in os.fsdecode(done.data).split("\0"))
    return [path for path in task.paths if path in found]


def _chunks(paths: list[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for path in paths:
        size += len(os.fsencode(path)) + 1
        if chunk and size > ARGUMENTS_MAX:
            yield chunk
            chunk, size = [], len(os.fsencode(path)) + 1
        chunk.append(path)
    if chunk:
        yield chunk


async def _in_child(task: SearchTask) -> Matches:
    """Runs the expression in another process: Python cannot interrupt one, and it would stop the whole host."""
    # -P: nothing in the child's working directory may be imported.
    command = [sys.executable, "-P", "-m", "portico.workspace.search"]
    env = environment(PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    wanted = msgspec.json.encode(task)
    done = await run(
        command,
        policy=OURS,
        cwd=Path("/"),
        env=env,
        timeout=SECONDS_MAX,
        stdin=wanted,
        head=16 * 1024**2,
        raw=True,
    )
    if done.timed_out:
        return Matches([], 0, "time")
    return msgspec.json.decode(done.data, type=Matches)


def _child() -> None:
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=SearchTask)
    sys.stdout.buffer.write(msgspec.json.encode(scan(Jail(task.roots), task)))


if __name__ == "__main__":
    _child()
