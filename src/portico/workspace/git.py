"""Calling git: a fixed environment, no prompts, no hooks, nothing that a repository's settings could start.

Two attacks by whoever may write files in a project: settings that name a program (a hook, a filter), which the host
would then run without asking anybody; and a `.git` that leads to somebody else's repository, whose files would then
show up as differences.
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from portico.errors import Conflict, Forbidden, NotFound, PorticoError, TooLarge
from portico.workspace.process import Finished, environment, run

GIT_SECONDS = 120.0  # a first capture of a huge tree on a slow disk; usually it is some milliseconds
OUTPUT_MAX = 16 * 1024 * 1024  # a diff that is larger is not read by anybody

# A repository comes from strangers, and its settings can name programs: hooks, a file system monitor, an external diff.
# The index must stay in one file, because ours is a copy of the user's.
SAFE = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "core.splitIndex=false",
    "-c", "core.untrackedCache=false",
    "-c", "core.quotePath=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
)  # fmt: skip


async def git(
    folder: Path, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None, fine: Sequence[int] = (0,)
) -> str:
    """What git prints, as text; file names that are none keep their bytes (`os.fsencode` gives them back)."""
    return os.fsdecode(await git_bytes(folder, *arguments, stdin=stdin, env=env, fine=fine))


async def git_bytes(
    folder: Path, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None, fine: Sequence[int] = (0,)
) -> bytes:
    """What git prints. Codes other than `fine` are an error with git's own words."""
    done = await call(folder, *arguments, stdin=stdin, env=env)
    if done.code not in fine:
        raise failure(folder, arguments[0], done)
    if done.cut:
        raise TooLarge(f"git {arguments[0]} in {str(folder)!r} says more than {OUTPUT_MAX} bytes.")
    return done.data


async def call(folder: Path, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Finished:
    calm = environment(GIT_TERMINAL_PROMPT="0", GIT_OPTIONAL_LOCKS="0", GIT_PAGER="cat", LC_ALL="C")
    return await run(
        ["git", "--no-pager", "--literal-pathspecs", *SAFE, *arguments],
        cwd=folder,
        env=calm | (env or {}),
        timeout=GIT_SECONDS,
        stdin=stdin,
        head=OUTPUT_MAX,
        raw=True,
    )


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
    prefix: str  # of the folder we came from, below the top


async def repository(folder: Path) -> Repository:
    """The repository that `folder` is part of. NotFound when there is none, Forbidden when it is not its own."""
    wanted = ("--absolute-git-dir", "--git-common-dir", "--is-inside-work-tree")
    private, common, inside = (await git(folder, "rev-parse", *wanted)).splitlines()
    if inside != "true":
        raise NotFound("work tree", str(folder), "This is the inside of a git repository.")
    top, prefix = (await git(folder, "rev-parse", "--show-toplevel", "--show-prefix")).split("\n")[:2]
    module_top = (await git(folder, "config", "--local", "--get", "core.worktree", fine=(0, 1))).strip()
    own = await asyncio.to_thread(_is_own, Path(top), Path(private), folder / common, module_top)
    if not own:
        raise Forbidden(f"The '.git' of {top!r} leads to a repository elsewhere; what changes here is not shown.")
    return Repository(Path(top), Path(private), prefix)


def _is_own(top: Path, private: Path, common: Path, module_top: str) -> bool:
    """Whether the repository knows this work tree, too: only who may write to it can make it say so."""
    entry = top / ".git"
    common = common.resolve()
    if entry.is_dir() and not entry.is_symlink():
        return common == entry.resolve()
    private = private.resolve()
    if private.parent == common / "worktrees":
        back = private / "gitdir"
        return back.is_file() and Path(back.read_text().strip()) == entry
    return private == common and bool(module_top) and (private / module_top).resolve() == top.resolve()


async def without_filters(folder: Path) -> dict[str, str]:
    """An environment in which no filter of the settings runs; files are taken as they are."""
    listed = await git(folder, "config", "-z", "--name-only", "--get-regexp", r"^filter\.", fine=(0, 1))
    names = {name.rpartition(".")[0] for name in listed.split("\0") if name}
    calm = [(f"{name}.{key}", "") for name in sorted(names) for key in ("clean", "smudge", "process")]
    calm += [(f"{name}.required", "false") for name in sorted(names)]
    env = {"GIT_CONFIG_COUNT": str(len(calm))}
    for index, (key, value) in enumerate(calm):
        env |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return env
