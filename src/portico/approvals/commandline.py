"""A shell's command line, taken apart far enough to compare it with rules.

The attack: a line that looks harmless and is not. `ls; rm -rf ~`, `ls $(curl evil)`, `ls <(make)`, a here-document, a
redirection, `PATH=. ls`, `git -C x push` where `git push` is not allowed, `xargs rm`. So a line is understood only if
it does nothing but run plain commands one after another; whatever else is in it, a person looks at it.
"""

import re
import shlex
from collections.abc import Container, Iterable
from functools import lru_cache

LINE_MAX = 4_000
"""Characters: nobody reads a longer line, and no rule is run over it."""

_UNSAFE = re.compile(r"[`$\\<>{}\[\]~*?!#^\x00-\x08\x0a-\x1f\x7f]|\.\.")
"""Substitution, redirection, expansion, further lines and steps upwards. Inside quotes they may be harmless: then a
person says so."""
_SEPARATORS = frozenset({";", "&&", "||", "|", "&"})
_ELSEWHERE = re.compile(r"^/|^-.*/|=/|^=")
"""A path from the root, also behind an option (`-o/etc/x`, `--output=/x`), or zsh's `=program`."""

Words = list[str]


def split(line: str) -> list[Words] | None:
    """The sub-commands of a command line, as words; None when it does more than run them one after another."""
    if len(line) > LINE_MAX or _UNSAFE.search(line):
        return None
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # an open quote
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
    # `NAME=value program` changes what the program does; a keyword (`if`, `for`) begins more than a command.
    if any("=" in part[0] or part[0] in _KEYWORDS or any(map(_ELSEWHERE.search, part)) for part in parts):
        return None
    return parts


_KEYWORDS = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function"}
    | {"time", "coproc", "in", "eval", "exec", "source", ".", "command", "builtin", "alias", "unalias", "trap", "env"}
    | {"export", "declare", "typeset", "readonly", "local", "set", "shopt"}
)
"""Words of the shell itself: what follows them is not a plain command."""


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
"""Options (of git, verbs as well) with which a program starts another one, or one that only looks changes files."""


def starts_another(words: Words) -> bool:
    """Does a program that usually only looks do more here? A rule for its name alone does not mean that."""
    options = _STARTING.get(program(words[0]), frozenset())
    return any(_is_option(word, options) for word in words[1:]) if options else False


def _is_option(word: str, options: frozenset[str]) -> bool:
    """Also with its value attached (`-Oless`, `-xmake`), or cut short, as git and GNU programs take it (`--exe=x`)."""
    name = word.partition("=")[0]
    if name in options:
        return True
    if name.startswith("--"):
        return len(name) > 3 and any(option.startswith(name) for option in options)
    return word.startswith("-") and word[:2] in options


def allows(rule: str, words: Words, *, options: bool = True) -> bool:
    """Does an allowing rule speak of this sub-command? Its words are the first ones. `options=False`: no further
    option may follow, for programs that write files when told to (`git log --output=x`)."""
    if starts_another(words) and not starts_another(rule.split() or [""]):
        return False
    if is_expression(rule):
        return _found(rule, words, broken=False)
    wanted = rule.split()
    rest = words[len(wanted) :]
    return bool(wanted) and words[: len(wanted)] == wanted and (options or not any(w.startswith("-") for w in rest))


def forbids(rule: str, words: Words) -> bool:
    """Does a refusing rule speak of this sub-command? Options between its words do not hide it, nor does a path:
    there are many ways to write one, so it is the program's name that counts, in the rule as well."""
    if is_expression(rule):
        return _found(rule, words, broken=True)
    wanted = rule.split()
    return bool(wanted) and program(words[0]) == program(wanted[0]) and _in_order(wanted[1:], words[1:])


def mentions(rule: str, words: Words) -> bool:
    """Might a refusing rule speak of it? `xargs rm`, `nice rm`: a program can be started by another."""
    if is_expression(rule):
        return any(_found(rule, words[at:], broken=True) for at in range(len(words)))
    wanted, rest = rule.split(), iter(words)
    return bool(wanted) and any(program(word) == program(wanted[0]) for word in rest) and _in_order(wanted[1:], rest)


def may_mention(rule: str, programs: Container[str]) -> bool:
    """The same for all sub-commands of a long line at once, by the names in it."""
    return is_expression(rule) or program((rule.split() or [""])[0]) in programs


def is_expression(rule: str) -> bool:
    """`/a regular expression/`, searched in the whole sub-command."""
    return len(rule) > 2 and rule.startswith("/") and rule.endswith("/")


def _found(rule: str, words: Words, *, broken: bool) -> bool:
    """`broken` is the answer for a rule that is none: it lets nothing pass, and what it should forbid is doubtful."""
    expression = _compiled(rule)
    return broken if expression is None else expression.search(" ".join(words)) is not None


@lru_cache(maxsize=1000)
def _compiled(rule: str) -> re.Pattern[str] | None:
    try:
        return re.compile(rule[1:-1])
    except (re.error, OverflowError, RecursionError):
        return None


def program(word: str) -> str:
    """Its name without the folder, whatever its case: `RM` is `rm` where the file system says so."""
    return word.rpartition("/")[2].casefold()


def _in_order(wanted: Words, words: Iterable[str]) -> bool:
    rest = iter(words)
    return all(word in rest for word in wanted)
