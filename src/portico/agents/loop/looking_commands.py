"""Commands that only look, so that several of them run at the same time. Each is still judged and approved as usual."""

import shlex

from portico.features.approvals.commandline import program, split

_LOOKS = frozenset(
    {"ls", "pwd", "cat", "head", "tail", "wc", "grep", "egrep", "fgrep", "rg", "tree", "stat", "file", "du", "df"}
    | {"which", "whoami", "uname", "date", "echo", "printf", "basename", "dirname", "realpath", "readlink", "cut"}
    | {"sort", "uniq", "tr", "diff", "cmp", "nl", "true", "test", "id", "sleep"}
)
_GIT = frozenset({"status", "log", "diff", "show", "blame", "ls-files", "rev-parse", "grep", "shortlog"})
"""Of git; `branch`, `remote` and `config` also write."""
_WRITES = ("-o", "--output", "--pre", "--compress-program", "--ext-diff", "-O", "--open-files-in-pager")
"""Options of these programs that write a file or start another program."""


def only_looks(line: object) -> bool:
    """A line that redirects, substitutes or is not understood does more."""
    if isinstance(line, list) and all(isinstance(each, str) for each in line):
        line = shlex.join(line)
    parts = split(line) if isinstance(line, str) else None
    return bool(parts) and all(map(_looks, parts or []))


def _looks(words: list[str]) -> bool:
    if any(word.startswith(_WRITES) for word in words[1:]):
        return False
    name = program(words[0])
    return name in _LOOKS or (name == "git" and len(words) > 1 and words[1] in _GIT)
