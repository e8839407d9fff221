"""Splits a shell command line far enough to compare it with rules.

The attack: a line that looks harmless and is not. `ls; rm -rf ~`, `ls $(curl evil)`, `ls <(make)`, a here-document, a
redirection, `PATH=. ls`, `git -C x push` where `git push` is not allowed, `xargs rm`. So a line is accepted only if
it runs nothing but plain commands one after another. A person reviews every other line.
"""

import re
import shlex
from collections.abc import Container, Iterable
from functools import lru_cache

LINE_MAX = 4_000
"""Characters. No person reads a longer line, and no rule is applied to it."""

_UNSAFE = re.compile(r"[`$\\<>{}\[\]~*?!#^\x00-\x08\x0a-\x1f\x7f]|\.\.")
"""Substitution, redirection, expansion, further lines and `..`. Inside quotes they may be harmless: a person decides
that."""
_SEPARATORS = frozenset({";", "&&", "||", "|", "&"})
_ELSEWHERE = re.compile(r"^/|^-.*/|=/|^=")
"""An absolute path, also after an option (`-o/etc/x`, `--output=/x`), or zsh's `=program`."""

Words = list[str]


def split(line: str) -> list[Words] | None:
    """Return the sub-commands of a line as words; None if it does more than run them one after another."""
    if len(line) > LINE_MAX or _UNSAFE.search(line):
        return None
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # an unclosed quote
        return None
    parts: list[Words] = [[]]
    for word in words:
        if word in _SEPARATORS:
            parts.append([])
        elif set(word) & set("();<>|&"):
            return None
        else:
            parts[-1].append(word)
    parts = [part for part in parts if part]
    # `NAME=value program` changes what the program does; a keyword (`if`, `for`) starts more than a command.
    if any("=" in part[0] or part[0] in _KEYWORDS or any(map(_ELSEWHERE.search, part)) for part in parts):
        return None
    return parts


_KEYWORDS = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function"}
    | {"time", "coproc", "in", "eval", "exec", "source", ".", "command", "builtin", "alias", "unalias", "trap", "env"}
    | {"export", "declare", "typeset", "readonly", "local", "set", "shopt"}
)
"""Shell keywords and builtins: what follows them is not a plain command."""


_STARTING = {
    "find": frozenset({"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf"}),
    "fd": frozenset({"-x", "--exec", "-X", "--exec-batch"}),
    "fdfind": frozenset({"-x", "--exec", "-X", "--exec-batch"}),
    "rg": frozenset({"--pre", "--hostname-bin"}),
    "sort": frozenset({"--compress-program", "-o", "--output"}),
    "tree": frozenset({"-o"}),
    "sed": frozenset({"-i", "--in-place"}),
    "yq": frozenset({"-i", "--inplace"}),
    "tar": frozenset({"--to-command", "--use-compress-program", "-I", "--checkpoint-action", "-F", "--info-script"})
    | frozenset({"--new-volume-script", "--rsh-command", "--rmt-command"}),
    "rsync": frozenset({"-e", "--rsh", "--rsync-path"}),
    "ssh": frozenset({"-o", "-F"}),
    "man": frozenset({"-P", "--pager", "-H", "--html"}),
    "make": frozenset({"--eval", "SHELL"}),
    **dict.fromkeys(("vi", "vim", "nvim", "view", "ex"), frozenset({"-c", "--cmd", "-S", "-s", "-u"})),
    "npm": frozenset({"--script-shell", "--node-options", "-c", "--call"}),
    "go": frozenset({"-exec", "-toolexec", "-vettool"}),
    "cargo": frozenset({"--config"}),
    "git": frozenset({"-c", "-x", "--exec", "-O", "--open-files-in-pager", "--ext-diff", "--extcmd", "foreach", "run"})
    | frozenset({"--config-env", "--upload-pack", "--receive-pack", "filter-branch", "--exec-path", "--output"})
    | frozenset({"--tool", "--sendmail-cmd", "--smtp-server"}),
}
"""Options (for git also verbs) with which a program starts another, or a program that only reads changes files."""


def starts_another(words: Words) -> bool:
    """Return whether a program that usually only reads does more here. A rule for its name does not allow that."""
    options = _STARTING.get(program(words[0]), frozenset())
    return any(_is_option(word, options) for word in words[1:]) if options else False


def _is_option(word: str, options: frozenset[str]) -> bool:
    """Match an option, also with an attached value (`-Oless`, `-xmake`) or abbreviated, as in GNU and git (`--exe`)."""
    name = word.partition("=")[0]
    if name in options:
        return True
    if name.startswith("--"):
        return len(name) > 3 and any(option.startswith(name) for option in options)
    return word.startswith("-") and word[:2] in options


def allows(rule: str, words: Words, *, options: bool = True) -> bool:
    """Return whether an allowing rule matches this sub-command: its words are the first ones. `options=False`: no
    further option may follow, for programs with options that write files (`git log --output=x`)."""
    if starts_another(words) and not starts_another(rule.split() or [""]):
        return False
    if is_expression(rule):
        return _found(rule, words, broken=False)
    wanted = rule.split()
    rest = words[len(wanted) :]
    return bool(wanted) and words[: len(wanted)] == wanted and (options or not any(w.startswith("-") for w in rest))


def forbids(rule: str, words: Words) -> bool:
    """Return whether a refusing rule matches this sub-command. Options between its words do not prevent a match.
    Paths of programs can be written in many ways, so only the name of the program is compared, also in the rule."""
    if is_expression(rule):
        return _found(rule, words, broken=True)
    wanted = rule.split()
    return bool(wanted) and program(words[0]) == program(wanted[0]) and _in_order(wanted[1:], words[1:])


def mentions(rule: str, words: Words) -> bool:
    """Return whether a refusing rule may match. A program can be started by another: `xargs rm`, `nice rm`."""
    if is_expression(rule):
        return any(_found(rule, words[at:], broken=True) for at in range(len(words)))
    wanted, rest = rule.split(), iter(words)
    return bool(wanted) and any(program(word) == program(wanted[0]) for word in rest) and _in_order(wanted[1:], rest)


def may_mention(rule: str, programs: Container[str]) -> bool:
    """Return whether a rule may match any sub-command of a long line, by the program names in it."""
    return is_expression(rule) or program((rule.split() or [""])[0]) in programs


def is_expression(rule: str) -> bool:
    """Return whether a rule is `/a regular expression/`, which is searched in the whole sub-command."""
    return len(rule) > 2 and rule.startswith("/") and rule.endswith("/")


def _found(rule: str, words: Words, *, broken: bool) -> bool:
    """`broken` is the result for an invalid expression: it allows nothing, and what it should forbid is unclear."""
    expression = _compiled(rule)
    return broken if expression is None else expression.search(" ".join(words)) is not None


@lru_cache(maxsize=1000)
def _compiled(rule: str) -> re.Pattern[str] | None:
    try:
        return re.compile(rule[1:-1])
    except (re.error, OverflowError, RecursionError):
        return None


def program(word: str) -> str:
    """Return the name without the folder, in lower case: `RM` is `rm` on a case-insensitive file system."""
    return word.rpartition("/")[2].casefold()


def _in_order(wanted: Words, words: Iterable[str]) -> bool:
    rest = iter(words)
    return all(word in rest for word in wanted)
