"""Runs git with a fixed environment: no prompts, no hooks, no programs that a repository's settings could start.

Two attacks by a writer of files in a project: settings that name a program (a hook, a filter), which the host would
then run without approval; and a `.git` that points to the repository of another user, whose files would then be shown
as differences. Where a confined program could write such settings, git itself runs in a sandbox (`confined_by`).
"""

import asyncio
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from portico import limits
from portico.kernel.cache import Cache
from portico.kernel.errors import Conflict, Forbidden, NotFound, PorticoError, TooLarge
from portico.sandbox.policy import Confinement, Policy, Unconfined
from portico.workspace import adoption
from portico.workspace.git_files import GitFiles, git_files, plain_work_tree
from portico.workspace.process import SAID_MAX, Finished, environment, run

GIT_SECONDS = 120.0  # a first capture of a huge tree on a slow disk; usually it is some milliseconds
OUTPUT_MAX = 16 * 1024 * 1024  # a diff that is larger is not read by anybody

# A repository comes from strangers, and its settings can name programs: hooks, a file system monitor, an external diff.
# The index must stay in one file, because ours is a copy of the user's.
SAFE = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "safe.bareRepository=explicit",
    "-c", "core.splitIndex=false",
    "-c", "core.untrackedCache=false",
    "-c", "core.quotePath=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "submodule.recurse=false",
)  # fmt: skip

OURS = Unconfined("git of the host: fixed arguments, no hooks and no programs of the repository")

GitPolicy = Callable[[Path, Sequence[str], Mapping[str, str]], Policy | None]
confined_by: list[GitPolicy] = []
"""Functions that return the sandbox of a git command, by its folder, arguments and variables; None: they need none.
They read the disk."""


def in_work_tree(folder: Path) -> bool:
    """A cheap check that does not start git; git decides later."""
    return bool(work_tree(str(folder)))


def work_tree(path: str) -> str:
    """The root of the work tree that a folder is in; empty when it is in none."""
    while not os.path.exists(os.path.join(path, ".git")):
        path, below = os.path.dirname(path), path
        if path == below:
            return ""
    return path


async def git(
    folder: Path, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None, fine: Sequence[int] = (0,)
) -> str:
    """What git prints, as text; file names that are none keep their bytes (`os.fsencode` gives them back)."""
    return os.fsdecode(await git_bytes(folder, *arguments, stdin=stdin, env=env, fine=fine))


async def git_bytes(
    folder: Path, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None, fine: Sequence[int] = (0,)
) -> bytes:
    """What git prints. Codes other than `fine` are an error with git's own words."""
    return _checked(folder, arguments[0], await call(folder, *arguments, stdin=stdin, env=env), fine)


async def call(folder: Path, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Finished:
    """For commands that may start other programs (a filter of the user's, at a checkout): all of them end with it."""
    return await run(
        _command(arguments),
        policy=await asyncio.to_thread(_confinement, folder, arguments, env or {}) if confined_by else OURS,
        cwd=folder,
        env=_environment(env),
        timeout=GIT_SECONDS,
        stdin=stdin,
        head=OUTPUT_MAX,
        raw=True,
    )


def plumbing(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    fine: Sequence[int] = (0,),
    cut: int | None = None,
) -> bytes:
    """Return the output of a git command that starts no other program. It blocks, so that several of them can run in
    one thread call; a search for children after each would cost more than git. With `cut`, at most that many bytes."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as said:
        process = _start(folder, arguments, env, output.fileno(), said.fileno())
        with process:
            try:
                process.communicate(stdin, GIT_SECONDS)
                timed_out = False
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError, PermissionError):  # it ended in this moment
                    os.killpg(process.pid, signal.SIGKILL)
                timed_out = True
        adoption.forget(process.pid)
        output.seek(0)
        said.seek(0)
        data = output.read(OUTPUT_MAX + 1 if cut is None else cut)
        words = said.read(SAID_MAX).decode("utf-8", "replace")
    done = Finished(process.returncode, words, data, len(data) > OUTPUT_MAX, timed_out, 0.0)
    return _checked(folder, arguments[0], done, fine)


def plumbing_text(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    fine: Sequence[int] = (0,),
) -> str:
    return os.fsdecode(plumbing(folder, *arguments, stdin=stdin, env=env, fine=fine))


def _start(
    folder: Path, arguments: Sequence[str], env: Mapping[str, str] | None, output: int, said: int
) -> "subprocess.Popen[bytes]":
    try:
        return adoption.spawn(
            _command(arguments),
            policy=_confinement(folder, arguments, env or {}),
            reaper=False,
            cwd=folder,
            env=_environment(env),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=said,
            start_new_session=True,
        )
    except OSError as error:
        raise NotFound(
            "command or folder", str(error.filename or "git"), "Is git installed and on the PATH?"
        ) from error


def _confinement(folder: Path, arguments: Sequence[str], env: Mapping[str, str]) -> Confinement:
    found = (policy(folder, arguments, env) for policy in confined_by)
    return next((each for each in found if each is not None), OURS)


def _command(arguments: Sequence[str]) -> list[str]:
    return ["git", "--no-pager", "--literal-pathspecs", *SAFE, *arguments]


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    calm = environment(GIT_TERMINAL_PROMPT="0", GIT_OPTIONAL_LOCKS="0", GIT_PAGER="cat", LC_ALL="C")
    return calm | dict(extra or {})


def _checked(folder: Path, verb: str, done: Finished, fine: Sequence[int]) -> bytes:
    if done.code not in fine:
        raise failure(folder, verb, done)
    if done.cut:
        raise TooLarge(f"git {verb} in {str(folder)!r} says more than {OUTPUT_MAX} bytes.")
    return done.data


def failure(folder: Path, verb: str, done: Finished) -> PorticoError:
    said = done.output.strip()[-500:]
    if "not a git repository" in said:
        return NotFound("git repository", str(folder), "Run 'git init' there to see what changes.")
    if done.timed_out:
        return Conflict(f"git {verb} in {str(folder)!r} took longer than {GIT_SECONDS:.0f} seconds and was ended.")
    return Conflict(f"git {verb} failed in {str(folder)!r}: {said}")


class Repository(Struct, frozen=True):
    top: Path  # of the work tree
    git_folder: Path
    common: Path  # of all work trees of the repository: refs and settings
    prefix: str  # of the folder we came from, below the top
    calm: Mapping[str, str]  # an environment in which no filter of the settings runs; files are taken as they are


async def repository(folder: Path) -> Repository:
    """The repository that `folder` is part of. NotFound when there is none, Forbidden when it is not its own."""
    return await asyncio.to_thread(_look_up, folder)


_KNOWN: Cache[Path, tuple[GitFiles, Repository]] = Cache(limits.KNOWN_REPOSITORIES)


def _look_up(folder: Path) -> Repository:
    """From the cache, if all files that decide the answer have the same content as before: two processes less."""
    files = git_files(folder)
    known = _KNOWN.get(folder)
    if known is not None and files is not None and known[0] == files:
        return known[1]
    top = plain_work_tree(folder, files) if files is not None else None
    found = _plain(folder, top) if top is not None else _ask(folder)
    if files is not None:
        _KNOWN[folder] = (files, found)
    return found


def _plain(folder: Path, top: Path) -> Repository:
    below = folder.resolve().relative_to(top).as_posix()
    return Repository(top, top / ".git", top / ".git", "" if below == "." else f"{below}/", _calm([]))


def _ask(folder: Path) -> Repository:
    wanted = ("--absolute-git-dir", "--git-common-dir", "--is-inside-work-tree", "--show-toplevel", "--show-prefix")
    try:
        said = plumbing_text(folder, "rev-parse", *wanted)
    except Conflict as error:
        if "must be run in a work tree" in error.message:
            raise NotFound("work tree", str(folder), "This is the inside of a git repository.") from error
        raise
    private, common, _, top, prefix = said.split("\n")[:5]
    if not _is_own(folder, Path(top), Path(private), folder / common):
        raise Forbidden(f"The '.git' of {top!r} leads to a repository elsewhere; what changes here is not shown.")
    return Repository(Path(top), Path(private), (folder / common).resolve(), prefix, _calm(_filters(folder)))


def _is_own(folder: Path, top: Path, private: Path, common: Path) -> bool:
    """Whether the repository also refers to this work tree: that requires write access to the repository."""
    entry = top / ".git"
    common = common.resolve()
    if entry.is_dir() and not entry.is_symlink():
        return common == entry.resolve()
    private = private.resolve()
    if private.parent == common / "worktrees":
        back = private / "gitdir"
        return back.is_file() and Path(back.read_text().strip()) == entry
    module_top = plumbing_text(folder, "config", "--local", "--get", "core.worktree", fine=(0, 1)).strip()
    return private == common and bool(module_top) and (private / module_top).resolve() == top.resolve()


def _filters(folder: Path) -> list[str]:
    listed = plumbing_text(folder, "config", "-z", "--name-only", "--get-regexp", r"^filter\.", fine=(0, 1))
    return sorted({name.rpartition(".")[0] for name in listed.split("\0") if name})


def _calm(filters: list[str]) -> dict[str, str]:
    calm = [(f"{name}.{key}", "") for name in filters for key in ("clean", "smudge", "process")]
    calm += [(f"{name}.required", "false") for name in filters]
    env = {"GIT_CONFIG_COUNT": str(len(calm))}
    for index, (key, value) in enumerate(calm):
        env |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return env
