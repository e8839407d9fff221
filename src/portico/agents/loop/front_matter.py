"""The header of a Markdown file between two lines of `---`: its plain fields, and the text after it."""

import re

_HEAD = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^([\w-]+):[ \t]*(.*?)[ \t]*$", re.MULTILINE)


def front_matter(text: str) -> tuple[dict[str, str], str]:
    found = _HEAD.match(text)
    if found is None:
        return {}, text
    fields = {name: value.strip("\"'") for name, value in _FIELD.findall(found[1])}
    return fields, text[found.end() :]
