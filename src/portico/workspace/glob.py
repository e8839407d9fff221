"""Glob patterns over relative paths, in time that grows with the path and not with the imagination of the pattern.

One regular expression for `**/*a*a*a*b` backtracks for minutes. Here a path is matched folder by folder: `**` is a
step over any number of folders, everything else one name against one small expression (the standard library's, which
cannot backtrack across stars).
"""

import fnmatch
import re
from functools import lru_cache

from portico.kernel.errors import BadRequest

PATTERN_MAX = 1000  # characters; longer than any handwritten glob
BRACES_MAX = 64  # patterns that `{a,b}{c,d}...` may unfold to

Segment = re.Pattern[str] | None  # None is `**`


class Glob:
    """`*.py` matches at any depth; a pattern with a slash matches from the top. `*`, `?`, `[a-z]`, `**`, `{a,b}`."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > PATTERN_MAX:
            raise BadRequest(f"The glob has {len(pattern)} characters; {PATTERN_MAX} is the limit.", field="glob")
        self.pattern = pattern
        self.choices = [segments(choice, anchored="/" in choice) for choice in unfold(pattern)]

    def matches(self, path: str) -> bool:
        parts = path.split("/")
        return any(match(choice, parts) for choice in self.choices)


def segments(pattern: str, *, anchored: bool) -> list[Segment]:
    names = [name for name in pattern.split("/") if name]
    found: list[Segment] = [] if anchored else [None]
    for name in names:
        if name != "**":
            found.append(compile_name(name))
        elif not found or found[-1] is not None:
            found.append(None)
    return found


def match(pattern: list[Segment], parts: list[str]) -> bool:
    """Classic wildcard matching with one point of return: the last `**`."""
    at, here = 0, 0
    star, resume = -1, 0
    while here < len(parts):
        if at < len(pattern) and pattern[at] is None:
            star, resume = at, here
            at += 1
        elif at < len(pattern) and _fits(pattern[at], parts[here]):
            at += 1
            here += 1
        elif star >= 0:
            resume += 1
            at, here = star + 1, resume
        else:
            return False
    return all(segment is None for segment in pattern[at:])


def _fits(segment: Segment, name: str) -> bool:
    return segment is not None and segment.match(name) is not None


@lru_cache(maxsize=2048)
def compile_name(name: str) -> re.Pattern[str]:
    # `[^a]` means `[!a]` and `\x` is a literal x in git's dialect; the standard library knows neither.
    return re.compile(fnmatch.translate(re.sub(r"\\(.)|\[\^", _plain, name)))


def _plain(found: re.Match[str]) -> str:
    if found[1] is None:
        return "[!"
    return f"[{found[1]}]" if found[1] in "[*?" else found[1]


def unfold(pattern: str) -> list[str]:
    """`a{b,c}d` becomes `abd` and `acd`; nested braces too. Unbalanced ones are plain characters."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        if len(todo) + len(done) > BRACES_MAX:
            raise BadRequest(f"The glob {pattern[:80]!r} unfolds to more than {BRACES_MAX} patterns.", field="glob")
        one = todo.pop()
        # The innermost pair: nothing but ordinary characters inside.
        found = re.search(r"\{([^{}]*,[^{}]*)\}", one)
        if found is None:
            done.append(one)
        else:
            todo += [one[: found.start()] + choice + one[found.end() :] for choice in found[1].split(",")]
    return done
