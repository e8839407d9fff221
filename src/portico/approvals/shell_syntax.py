"""Every command that a shell line starts, also those in substitutions, in loops and on further lines.

This is no shell. It answers one question: may this line start a program that must always be asked about? So it finds
too much rather than too little (the text of a here-document counts as commands), and where the name of a program is
made at run time (`$X id`, `$(printf ...) x`, `eval`, a pipe into `sh`) it says that it does not know.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

LINE_MAX = 100_000
"""Characters: a longer line is not looked through."""
_DEPTH = 20
DYNAMIC = "\0"
"""Stands in a word for what is only known at run time."""

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "busybox"})
_RUNNERS = frozenset(
    {"env", "command", "builtin", "exec", "nohup", "nice", "ionice", "time", "timeout", "stdbuf", "setsid", "chroot"}
    | {"xargs", "parallel", "watch", "ssh", "su", "sudo", "doas", "find", "fd", "script", "unshare", "strace", "flock"}
)
"""They start what stands among their arguments."""
_INTERPRETERS = re.compile(r"(python|perl|ruby|node|nodejs|php|lua|tclsh|osascript|Rscript|ed|gdb)[\d.]*\Z")
"""They run what they read, in a language of their own."""
_TEXTS = frozenset({"echo", "printf", "grep", "egrep", "fgrep", "rg", "ag"})
"""What stands in their arguments is text; other programs may run a part of it (`git -c alias.x=!sudo`, `watch`)."""
_MESSAGES = frozenset({"-m", "-am", "--message"})
"""Options of git that a text for people follows."""
_READ_LATER = frozenset({"at", "batch", "crontab"})
"""They run the lines that they read."""
_DESCRIPTOR = re.compile(r"-\Z|/dev/(stdin|fd/)|/proc/\w+/fd/")
_VALUED = frozenset({"-I", "-d", "-E", "-a", "-s", "-j"})
"""Options of xargs and parallel that a word follows which is no program."""
_RESERVED = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function"}
    | {"coproc", "in", "!", "{", "}", "[[", "]]", "time"}
)
_NO_PROGRAM = re.compile(r"-|[\d.]+[smhd]?\Z|\w+=")
"""Options, numbers and variables that stand between a runner and the program it runs."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")


class UnknownSyntax(Exception):
    """The line starts something whose name cannot be read in it."""


def is_shell(word: str) -> bool:
    return word.rpartition("/")[2] in _SHELLS


def is_runner(word: str) -> bool:
    """Whatever its options are; `find` needs one of its own."""
    return _program(word) in _RUNNERS - {"find", "fd"}


def commands(line: str) -> list[list[str]] | None:
    """The words of every command in the line, quotes removed; None when one of them cannot be known."""
    if len(line) > LINE_MAX:
        return None
    try:
        return list(_found(line, 0))
    except (UnknownSyntax, IndexError):
        return None


def started(argv: Sequence[str]) -> list[list[str]] | None:
    """The same for a program that is started without a shell."""
    try:
        return [list(argv), *_inside(list(argv), 0)]
    except (UnknownSyntax, IndexError):
        return None


def pieces(words: Sequence[str]) -> Iterator[str]:
    """Everything in these words that could name a program."""
    for word in words:
        attached = [word[2:]] if re.match(r"-[A-Za-z]", word) else []  # env -S'sudo id'
        for each in (word, *attached):
            yield from re.split(r"[^\w./+-]+", each)


def _found(line: str, depth: int) -> Iterator[list[str]]:
    if depth > _DEPTH:
        raise UnknownSyntax
    for words in _Scanner(line, depth).commands():
        assigned = []
        while words and (words[0] in _RESERVED or _ASSIGNMENT.match(words[0])):
            assigned += [words[0]] if "=" in words[0] else []
            words = words[1:]
        if assigned:
            yield ["export", *assigned]  # `PAGER='sudo id' git log`
        if not words:
            continue
        if DYNAMIC in words[0] or "{}" in words[0]:
            raise UnknownSyntax
        yield words
        yield from _inside(words, depth)


def _inside(words: list[str], depth: int) -> Iterator[list[str]]:
    """What a command starts by itself: `sh -c LINE`, `eval LINE`."""
    name = _program(words[0])
    runner = name in _RUNNERS
    if name in ("eval", "source", ".") or (runner and "eval" in words):
        if any(DYNAMIC in word or _DESCRIPTOR.match(word) for word in words[1:]):
            raise UnknownSyntax
        yield from _found(" ".join(words[words.index("eval") + 1 :]), depth + 1) if "eval" in words else ()
    if name in _READ_LATER or _reads_code(words) or (name in ("xargs", "parallel") and _runs_what_it_reads(words)):
        raise UnknownSyntax
    if any(word.startswith(("-exec", "-ok")) and "{}" in program for word, program in pairwise(words)):
        raise UnknownSyntax  # find
    for at, word in enumerate(words):
        if is_shell(word) and (at == 0 or runner or any(map(_LINE_OPTION.match, words[at + 1 :]))):
            yield from _shell(words[at + 1 :], depth)
            return
    if runner and DYNAMIC in next((word for word in words[1:] if not _NO_PROGRAM.match(word)), ""):
        raise UnknownSyntax


_LINE_OPTION = re.compile(r"-\w*c\w*\Z")


def _shell(arguments: list[str], depth: int) -> Iterator[list[str]]:
    """A shell: its line is looked into; what it reads from a pipe is not known, what stands in a file is the file's.
    Options may have values (`-o pipefail`), so the line is looked for behind them too."""
    at = next((at for at, word in enumerate(arguments) if _LINE_OPTION.match(word)), None)
    if at is not None:
        if at + 1 >= len(arguments) or DYNAMIC in arguments[at + 1]:
            raise UnknownSyntax
        yield from _found(arguments[at + 1], depth + 1)
        return
    files = [word for word in arguments if not word.startswith(("-", "+")) and word not in _SHELLS]  # busybox sh
    if not files or DYNAMIC in files[0] or _DESCRIPTOR.match(files[0]):
        raise UnknownSyntax


def _reads_code(words: list[str]) -> bool:
    """An interpreter that is given neither a file nor code reads it from a pipe: `echo ... | python3`."""
    if _INTERPRETERS.match(_program(words[0])) is None:
        return False
    if any(_DESCRIPTOR.match(word) for word in words[1:]):
        return True
    return not any(not word.startswith("-") or word in ("--version", "--help", "-V", "-v", "-h") for word in words[1:])


def _runs_what_it_reads(words: list[str]) -> bool:
    """`xargs -I% %`, `xargs sh -c '$0'`, `parallel` alone: names of programs that come from a pipe."""
    values = {at + 1 for at, word in enumerate(words) if word in _VALUED}
    rest = [word for at, word in enumerate(words) if at and at not in values and not _NO_PROGRAM.match(word)]
    replaced = {"{}", *(words[at] for at in values if words[at - 1] == "-I" and at < len(words))}
    replaced |= {word[2:] for word in words if word.startswith("-I") and len(word) > 2}
    if not rest:
        return _program(words[0]) == "parallel"
    return any(map(is_shell, words)) or any(each in rest[0] for each in replaced)


def texts(words: Sequence[str]) -> list[str]:
    """The words of a command whose parts may name a program that it runs: all but what is text for people."""
    name = _program(words[0])
    if name in _TEXTS:
        return []
    if name != "git":
        return list(words)
    pairs = zip(["", *words], words, strict=False)
    return [word for before, word in pairs if before not in _MESSAGES or word.startswith("-")]


def _program(word: str) -> str:
    return word.rpartition("/")[2]


class _Scanner:
    def __init__(self, text: str, depth: int) -> None:
        self._text = text
        self._at = 0
        self._depth = depth
        self._nested: list[list[str]] = []

    def commands(self) -> Iterator[list[str]]:
        words: list[str] = []
        target = False
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign in " \t\r":
                self._at += 1
            elif sign in "\n;&|()":
                self._at += 1
                yield from self._ended(words)
                words, target = [], False
            elif sign in "<>":
                target = not self._redirection()
            elif sign == "#":
                self._at = (self._text.find("\n", self._at) + 1 or len(self._text) + 1) - 1
            else:
                word = self._word()
                if target:
                    target = False
                elif not (word.isdigit() and self._peek() in "<>"):
                    words.append(word)
        yield from self._ended(words)

    def _ended(self, words: list[str]) -> Iterator[list[str]]:
        nested, self._nested = self._nested, []
        yield from nested
        if words:
            yield words

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else "\n"

    def _redirection(self) -> bool:
        """True: it has its target already (`<(...)`). A here-document is a redirection whose text is looked through,
        and what `<<<` gives a program is looked at like an argument."""
        if self._text.startswith("<<<", self._at):
            self._at += 3
            return True
        while self._peek() in "<>&-" and self._at < len(self._text):
            self._at += 1
        if self._peek() == "(":
            self._substitute(self._until(")"))
            return True
        return self._peek() == "|" and bool(self._skip())

    def _skip(self) -> int:
        self._at += 1
        return 0

    def _word(self) -> str:
        found: list[str] = []
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign in " \t\r\n;&|()<>":
                break
            self._at += 1
            if sign == "\\":
                follows = self._text[self._at]
                self._at += 1
                found.append("" if follows == "\n" else follows)
            elif sign == "'":
                end = self._closing_quote()
                found.append(self._text[self._at : end])
                self._at = end + 1
            elif sign == '"':
                found.append(self._quoted())
            elif sign in "$`":
                found.append(self._expansion(sign))
            elif self._expands(sign, found):
                found.append(DYNAMIC)
            else:
                found.append(sign)
        return "".join(found)

    def _expands(self, sign: str, before: list[str]) -> bool:
        """Patterns of file names, and `{a,b}`. `[` and `[[` alone are commands."""
        if sign == "[":
            return before not in ([], ["["]) or self._peek() not in " \t["
        if sign == "{":
            return re.match(r"[^\s{}]*(,|\.\.)", self._text[self._at :]) is not None
        return sign in "*?"

    def _closing_quote(self) -> int:
        end = self._text.find("'", self._at)
        if end < 0:
            raise UnknownSyntax
        return end

    def _quoted(self) -> str:
        found: list[str] = []
        while True:
            if self._at >= len(self._text):
                raise UnknownSyntax
            sign = self._text[self._at]
            self._at += 1
            if sign == '"':
                return "".join(found)
            if sign == "\\" and self._peek() in '$`"\\\n':
                found.append("" if self._peek() == "\n" else self._peek())
                self._at += 1
            elif sign in "$`":
                found.append(self._expansion(sign))
            else:
                found.append(sign)

    def _expansion(self, sign: str) -> str:
        if sign == "`":
            text = ""
            while (each := self._text[self._at]) != "`":
                if each == "\\":
                    self._at += 1
                    each = self._text[self._at]
                text += each
                self._at += 1
            self._at += 1
            self._substitute(text)
            return DYNAMIC
        follows = self._peek()
        if follows == "(":
            self._substitute(self._until(")"))
        elif follows == "{":
            self._substitute(self._until("}"), only_nested=True)
        elif follows == "'":  # $'\x73udo'
            self._at += 1
            while self._text[self._at] != "'":
                self._at += 2 if self._text[self._at] == "\\" else 1
            self._at += 1
        elif follows.isalnum() or follows in "_@*#?-$!":
            match = re.compile(r"\w+|.").match(self._text, self._at)
            self._at = match.end() if match is not None else self._at + 1
        else:
            return "$"
        return DYNAMIC

    def _until(self, closing: str) -> str:
        """The text inside of the bracket that begins here."""
        opening = {")": "(", "}": "{"}[closing]
        self._at += 1
        start, level = self._at, 1
        while level:
            sign = self._text[self._at]
            self._at += 1
            if sign == "\\":
                self._at += 1
            elif sign == "'":
                self._at = self._closing_quote() + 1
            elif sign == '"':
                inner = _Scanner(self._text, self._depth)
                inner._at = self._at
                inner._quoted()
                self._at = inner._at
            level += (sign == opening) - (sign == closing)
        return self._text[start : self._at - 1]

    def _substitute(self, text: str, *, only_nested: bool = False) -> None:
        if self._depth > _DEPTH:
            raise UnknownSyntax
        if not only_nested:
            self._nested += _found(text, self._depth + 1)
            return
        self._nested += _substitutions(text, self._depth + 1)


def _substitutions(text: str, depth: int) -> Iterator[list[str]]:
    """Commands in `${NAME:-$(command)}`: of the inside only what is substituted counts."""
    scanner = _Scanner(text, depth)
    while scanner._at < len(text):
        sign = text[scanner._at]
        scanner._at += 1
        if sign in "$`":
            scanner._expansion(sign)
        elif sign == "\\":
            scanner._at += 1
    yield from scanner._nested
