"""The system message of an agent run: how to work, and where.

It is the same for all turns of a session, so that the endpoint's prompt cache stays valid: what changes (the date, the
files at the top) is taken when the conversation is opened.
"""

import itertools
import os
import platform
import re
import time
from collections.abc import Sequence
from pathlib import Path

from portico.agents.loop.other_names import FINISH
from portico.agents.loop.protocol import text_rules
from portico.agents.loop.roots import Roots
from portico.kernel.events import ToolSpec

VERSION = 2
"""Raised with every change of the texts below; tests/agents/loop/test_prompt.py holds the text of each version."""
SMALL = 8.0
"""Billions of parameters up to which a model gets the short text: long rules distract it."""
NAMES_MAX = 60
"""Files and folders of the top level that are named."""
_SIZE = re.compile(r"(?:^|[^\d.])(\d+(?:\.\d+)?)b(?:\b|[-_:])", re.IGNORECASE)
_HIDDEN = frozenset(
    {".git", "node_modules", "__pycache__", ".venv", "venv", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
)

SHORT = (
    "Work in small steps: look first, change little, check what you did. Before you change a file, read it. "
    "Some actions need the approval of a person; when one is refused, do not try it again.\n"
)
NATIVE = (
    "Act through the tools, several at once where they do not need each other's results. When the goal is reached, or "
    f"cannot be, say so in your answer, or call {FINISH!r} with a summary. Plain questions you just answer."
)
FULL = f"""
How to work:
- Look before you change anything: find names with 'search', files with 'listFiles', and read the parts you need. \
Make calls that do not need each other's results in one answer.
- Follow the conventions of the code around you. Use only libraries that the project already uses.
- Change as little as the goal needs. Mention other problems instead of fixing them. Read a file before you edit it, \
and prefer small edits to rewriting it.
- Verify: run the tests, the linter or the program that covers your change, and read the output. Never report a \
success that you have not seen; say what you could not verify.
- When something fails, read the error and look for its cause. Do not repeat a call that failed in the same way.
- Some actions need the approval of a person. When one is refused, do not try it again in another way.
- Do not commit, push, delete or publish unless you were asked to. Never print secrets.

How to answer:
- Answer plain questions directly, in the language of the person.
- Before longer work, say in one sentence what you will do. Work until the goal is reached or cannot be reached.
- At the end say in a few sentences what you changed and where, how you verified it, and what is open. Give this as \
your answer, or call {FINISH!r} with it."""


def system_message(
    cwd: str, tools: Sequence[ToolSpec], native: bool, folders: Sequence[str] = (), model: str = "", place: str = ""
) -> str:
    """`place`: see `describe_place`."""
    more = ", ".join(repr(each) for each in folders if each != cwd)
    also = f"You also work in {more}; name what is there by its absolute path. " if more else ""
    head = f"You are a coding agent in the project {cwd!r}. Paths are relative to it. {also}"
    if not native:
        return head + SHORT + text_rules(tools)
    if is_small(model):
        return head + SHORT + NATIVE
    return f"{head.rstrip()}\n{FULL}{place}"


def is_small(model: str) -> bool:
    """By the size in its name: `qwen2.5-coder:1.5b`, `llama-3.2-3b`."""
    sizes = [float(size) for size in _SIZE.findall(model)]
    return bool(sizes) and max(sizes) <= SMALL


def describe_place(roots: Roots, created: int) -> str:
    """Platform, shell, date, git and the top level of the folder. `created`: of the session, in milliseconds."""
    shell = Path(os.environ.get("SHELL") or "/bin/sh").name
    day = time.strftime("%Y-%m-%d", time.localtime(created / 1000))
    lines = [f"Platform: {platform.system()} {platform.machine()}, shell {shell}. Date: {day}.", _git(roots.project)]
    names = [name for prefix, jail in roots.parts() for name in _names(prefix, jail.roots[0])]
    more = " and more" if len(names) > NAMES_MAX else ""
    lines.append(f"Top level: {', '.join(names[:NAMES_MAX])}{more}." if names else "The folder is empty.")
    return "\n\nWhere you are:\n" + "\n".join(filter(None, lines))


def _git(project: Path) -> str:
    """The branch, without starting a process."""
    try:
        head = (project / ".git/HEAD").read_text("utf-8", "replace").strip()
    except OSError:
        return ""
    branch = head.removeprefix("ref: refs/heads/")
    return f"Git work tree on branch {branch!r}." if branch != head else "Git work tree on a detached commit."


def _names(prefix: str, folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as found:
            some = sorted(itertools.islice(found, 500), key=lambda entry: entry.name)
            return [
                f"{prefix}{entry.name}{'/' if entry.is_dir(follow_symlinks=False) else ''}"
                for entry in some
                if entry.name not in _HIDDEN
            ]
    except OSError:
        return []
