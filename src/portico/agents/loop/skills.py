"""Skills: folders with a `SKILL.md`, whose header has a name and when to use it.

The model gets a list. The text of a skill is loaded when it is named: by the person (`/release`, `$release`, "the skill
release") or by the model, with the tool `skill`.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from portico.agents.loop.front_matter import front_matter
from portico.agents.loop.rule_files import RuleFolder

FOLDERS = (".agents/skills", ".claude/skills", ".github/skills", "skills")
"""The last one only counts among the user's own files."""
HEAD_CHARS = 2000
LISTED_MAX = 50


class Skill(Struct, frozen=True):
    name: str
    about: str
    path: str
    """As the list shows it."""
    source: RuleFolder
    file: str

    async def text(self) -> str:
        """All of it, and the names of the files beside it."""
        body = (await self.source.read(self.file)).strip()
        folder = self.file.rpartition("/")[0]
        others = [name for name in await self.source.names(folder) if name != "SKILL.md"]
        beside = f"\n\nFiles in {self.source.name(folder)}: {', '.join(others)}" if others else ""
        return f"{body}{beside}"


async def find_skills(sources: Sequence[RuleFolder]) -> list[Skill]:
    """Of all sources; the first of a name counts."""
    found: dict[str, Skill] = {}
    for source in sources:
        for folder in FOLDERS if source.label else FOLDERS[:-1]:
            for name in await source.names(folder):
                file = f"{folder}/{name}/SKILL.md"
                if head := await source.read(file, HEAD_CHARS):
                    fields, _ = front_matter(head)
                    title = fields.get("name") or name
                    about = fields.get("description") or "no description"
                    found.setdefault(title, Skill(title, about, source.name(file), source, file))
    return list(found.values())[:LISTED_MAX]


def listed(skills: Sequence[Skill]) -> str:
    if not skills:
        return ""
    lines = "\n".join(f"- {each.name} ({each.path}): {each.about}" for each in skills)
    return (
        "\n\nSkills; before you do what one is for, load it with the tool 'skill', or read its file where there is no "
        f"such tool:\n{lines}"
    )


def named(skills: Sequence[Skill], said: str) -> list[Skill]:
    """Those that a message names."""
    return [each for each in skills if _pattern(each.name).search(said)]


def _pattern(name: str) -> "re.Pattern[str]":
    word = re.escape(name)
    return re.compile(rf"(?<![\w/])[/$]{word}(?![\w-])|\bskill:? [\"'`]?{word}\b|(?<![\w-]){word}[\"'`]? skill\b", re.I)
