"""The instructions of the user and of the project for an agent: `AGENTS.md` and `CLAUDE.md`, and the list of skills.

Those of the user and of the project's root are part of the system message. Those of a folder inside are added when the
agent first touches a file there, so that the system message stays the same and the prompt cache valid.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from portico.agents.loop.roots import Roots
from portico.agents.loop.rule_files import RuleFolder, of_project, of_user
from portico.agents.loop.skills import Skill, find_skills, listed
from portico.agents.loop.transcript import Entry, UserText

FILES = ("AGENTS.md", "CLAUDE.md")
GUIDANCE_CHARS = 16_000
"""Limit for one of them with its includes: the model reads the rest of a long one when it needs more."""
NEAR_CHARS = 8000
_MARK = '<rules file="{}">'


class Guidance(Struct, frozen=True):
    """What a run knows of rules and skills."""

    sources: list[RuleFolder]
    """The project's first."""
    skills: list[Skill]
    text: str
    """To append to the system message; empty where there are no instructions."""

    @property
    def project(self) -> RuleFolder:
        return self.sources[0]


async def guidance(roots: Roots, home: Path) -> Guidance:
    project, user = of_project(roots), of_user(home)
    sources = [project, *([user] if user is not None else [])]
    rules = [await _rules(user, "Instructions of the person, for all projects")] if user is not None else []
    rules.append(await _rules(project, "The project's own instructions"))
    skills = await find_skills(sources)
    return Guidance(sources, skills, "".join(rules) + listed(skills))


async def _rules(source: RuleFolder, what: str) -> str:
    """Both files, unless one repeats or includes the other."""
    texts = {name: (await source.whole(name, GUIDANCE_CHARS)).strip() for name in FILES}
    first, second = texts.values()
    if first in second:
        del texts[FILES[0]]
    elif second in first:
        del texts[FILES[1]]
    return "".join(f"\n\n{what} ({source.name(name)}):\n{text}" for name, text in texts.items() if text)


async def near_rules(source: RuleFolder, touched: Iterable[str], entries: Sequence[Entry]) -> list[UserText]:
    """The rules of folders between the root and the touched files, outermost first, that the conversation does not
    contain yet."""
    found: list[UserText] = []
    for folder in _folders(touched):
        for name in FILES:
            path = f"{folder}/{name}"
            mark = _MARK.format(path)
            if not source.has(path) or _contains(entries, mark):
                continue
            if text := (await source.whole(path, NEAR_CHARS)).strip():
                found.append(UserText("user", f"{mark}\nThese apply to {folder}/.\n{text}\n</rules>"))
                break
    return found


def _folders(touched: Iterable[str]) -> list[str]:
    names: Collection[str] = dict.fromkeys(
        str(parent)
        for path in touched
        if not path.startswith(("/", ".."))
        for parent in reversed(PurePosixPath(path).parents)
        if str(parent) != "."
    )
    return list(names)


def _contains(entries: Sequence[Entry], mark: str) -> bool:
    return any(isinstance(entry, UserText) and mark in entry.text for entry in entries)
