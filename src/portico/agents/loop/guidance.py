"""The project's instructions for every agent that works in it: `AGENTS.md`, and its skills.

A skill is a folder with a `SKILL.md`, whose header contains its name and when to use it. The model gets a list of the
skills and reads one when it needs it.
"""

import re

from portico.agents.loop.roots import Roots
from portico.errors import PorticoError

FILES = ("AGENTS.md", "CLAUDE.md")
"""The first that exists."""
SKILLS = (".agents/skills", ".claude/skills", ".github/skills")
GUIDANCE_CHARS = 16_000
"""Limit for AGENTS.md: the model reads the rest of a long one when it needs more."""
SKILLS_MAX = 50
HEAD_CHARS = 2000
_FIELD = re.compile(r"^(name|description):[ \t]*(.+?)[ \t]*$", re.MULTILINE)


async def guidance(roots: Roots) -> str:
    """Return the text to append to the system prompt; empty when the project has no instructions."""
    return "".join([await _rules(roots), await _skills(roots)])


async def _rules(roots: Roots) -> str:
    for name in FILES:
        text = await _read(roots, name, GUIDANCE_CHARS)
        if text.strip():
            cut = f"\n[cut: read {name} for the rest]" if len(text) >= GUIDANCE_CHARS else ""
            return f"\n\nThe project's own instructions ({name}):\n{text.strip()}{cut}"
    return ""


async def _skills(roots: Roots) -> str:
    lines: list[str] = []
    for folder in SKILLS:
        for name in await _folders(roots, folder):
            path = f"{folder}/{name}/SKILL.md"
            head = await _read(roots, path, HEAD_CHARS)
            if head:
                fields = dict(_FIELD.findall(head))
                lines.append(f"- {fields.get('name', name)} ({path}): {fields.get('description', 'no description')}")
    if not lines:
        return ""
    told = "\n".join(lines[:SKILLS_MAX])
    return f"\n\nSkills of this project; read the file of one before you do what it is for:\n{told}"


async def _folders(roots: Roots, path: str) -> list[str]:
    if not roots.has(path):  # seldom: not worth a thread in front of each call of the model
        return []
    try:
        found = await roots.files.list(roots.at(path))
    except PorticoError:
        return []
    return sorted(entry.name for entry in found.entries)[:SKILLS_MAX]


async def _read(roots: Roots, path: str, limit: int) -> str:
    if not roots.has(path):
        return ""
    try:
        found = await roots.files.read_text(roots.at(path), limit=limit)
    except PorticoError:
        return ""
    return "" if found.binary else found.text
