"""Commands that people write for a project or for themselves: `/NAME arguments` is replaced by the text of a file.

`$ARGUMENTS` and `$1` to `$9` in the text are replaced; without them, the arguments follow the text.
"""

import re
import shlex
from collections.abc import Sequence

from portico.agents.loop.front_matter import front_matter
from portico.agents.loop.rule_files import RuleFolder

_PLACES = (
    (".agents/commands", ".md"),
    (".claude/commands", ".md"),
    (".opencode/command", ".md"),
    (".github/prompts", ".prompt.md"),
    ("commands", ".md"),
)
"""The last one only counts among the user's own files."""
_CALL = re.compile(r"/([\w-]+(?::[\w-]+)*)(?:\s+(.*))?\Z", re.DOTALL)
_NUMBERED = re.compile(r"\$(ARGUMENTS|[1-9])")


async def expand(said: str, sources: Sequence[RuleFolder]) -> str | None:
    """The text that replaces a message; None: it names no command. `/git:commit` is `git/commit.md`."""
    called = _CALL.fullmatch(said.strip())
    if called is None:
        return None
    name = called[1].replace(":", "/")
    for source in sources:
        for folder, ending in _PLACES if source.label else _PLACES[:-1]:
            text = await source.whole(f"{folder}/{name}{ending}")
            if text:
                return _filled(front_matter(text)[1].strip(), (called[2] or "").strip())
    return None


def _filled(text: str, arguments: str) -> str:
    if not _NUMBERED.search(text):
        return f"{text}\n\n{arguments}".strip()
    try:
        words = shlex.split(arguments)
    except ValueError:  # an unclosed quote
        words = arguments.split()

    def value(match: "re.Match[str]") -> str:
        if match[1] == "ARGUMENTS":
            return arguments
        place = int(match[1]) - 1
        return words[place] if place < len(words) else ""

    return _NUMBERED.sub(value, text)
