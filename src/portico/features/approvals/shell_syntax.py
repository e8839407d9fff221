"""Finds every command that a shell line starts, also in substitutions, in loops and on further lines.

This is not a shell. It answers one question: may this line start a program that always needs approval? So it finds too
much rather than too little (the text of a here-document counts as commands). If the name of a program is computed at
run time (`$X id`, `$(printf ...) x`, `eval`, a pipe into `sh`), the result is unknown.
"""

import re
from collections.abc import Iterator, Sequence

from portico.features.approvals.commandline import starts_another

LINE_MAX = 100_000
"""Characters. A longer line is not parsed."""
_DEPTH = 20
DYNAMIC = "\0"
"""Placeholder in a word for a part that is only known at run time."""
WRITES = ">"
"""Used in place of a program name, before a file that the line itself writes."""

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "busybox"})
RUNNERS = frozenset(
    {"env", "command", "builtin", "exec", "nohup", "nice", "ionice", "time", "timeout", "stdbuf", "setsid", "chroot"}
    | {"xargs", "parallel", "watch", "ssh", "su", "sudo", "doas", "find", "fd", "script", "unshare", "strace", "flock"}
    | {"taskset", "chrt", "setpriv", "runuser", "prlimit", "systemd-run", "nsenter", "bwrap", "ltrace", "entr"}
    | {"setarch", "linux32", "linux64", "rlwrap", "unbuffer", "faketime"}
)
"""Programs that start a program given in their arguments."""
_PLACED = frozenset({"chroot", "flock", "taskset", "chrt", "ssh", "setarch", "faketime"})
"""Runners whose first argument is not a program: a folder, a file, a mask, a machine."""
_EVALUATING = frozenset({"trap", "alias", "mapfile", "readarray", "compgen", "complete", "bind", "hash", "enable"})
"""Shell builtins whose arguments are lines, or define what later names mean."""
_COMMAND_VARIABLE = re.compile(
    r"(\w*(PAGER|EDITOR|BROWSER|_COMMAND|_ASKPASS|_DIFF)|VISUAL|SHELL|(BASH_)?ENV|LESS(OPEN|CLOSE)|PS\d|GIT_CONFIG_\w+)\+?="
)
"""Environment variables from which programs take commands."""
_FINDERS = frozenset({"find", "fd", "fdfind"})
_FINDER_OPTION = re.compile(r"-exec|-ok|-x\Z|-X\Z|--exec")
"""Options of finders that are followed by a program."""
_INTERPRETERS = re.compile(r"(python|perl|ruby|node|nodejs|php|lua|tclsh|osascript|Rscript|ed|gdb)[\d.]*\Z")
"""Programs that run code in their own language from their input."""
_LANGUAGES = re.compile(rf"[gmn]?awk\Z|sed\Z|[jy]q\Z|find\Z|fd(find)?\Z|{_INTERPRETERS.pattern}")
"""Programs for which a `$` in an argument belongs to their own language."""
_STARTING = re.compile(r"system|shell|popen|spawn|fork|pty\b|exec(?!ut)|subprocess|child_process|getline|\|\s*\"|`")
"""Words with which code in such a language starts a program. It may compute the name."""
_SED_STARTING = re.compile(r"/[gpimMI\d]*e[gpimMI\d]*\Z|(^|[;{\n])\s*[\d$,]*e\s")
_COMPOSED = re.compile(r"\$[\w({]|`|\w['\"\\]+\w")
"""Matches an argument, as the program receives it, that is a shell line in which a name is computed
(`git -c alias.x='!X=su; ${X}do id'`, `trap`, `watch`). Variables that the line itself expands are already `DYNAMIC`."""
_TEXTS = frozenset({"echo", "printf", "grep", "egrep", "fgrep", "rg", "ag"})
"""Programs whose arguments are text. Others may run a part of an argument (`git -c alias.x=!sudo`, `watch`)."""
_MESSAGES = frozenset({"-m", "-am", "--message"})
"""Options of git that are followed by a text for people."""
_READ_LATER = frozenset({"at", "batch", "crontab"})
"""Programs that run the lines that they read."""
_DESCRIPTOR = re.compile(r"-\Z|/dev/(stdin|fd/)|/proc/\w+/fd/")
_VALUED = frozenset({"-I", "-d", "-E", "-a", "-s", "-j"})
"""Options of xargs and parallel that are followed by a word that is not a program."""
_RESERVED = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function"}
    | {"coproc", "in", "!", "{", "}", "[[", "]]", "time"}
)
_NO_PROGRAM = re.compile(r"-|[\d.]+[smhd]?\Z|\w+=")
"""Options, numbers and variables between a runner and the program it runs."""
_OPERATOR = re.compile(r"<<-?|[<>]+(&-|[&|])?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")


class UnknownSyntax(Exception):
    """The line starts a program whose name cannot be determined from it."""


def is_shell(word: str) -> bool:
    return word.rpartition("/")[2] in _SHELLS


def commands(line: str) -> list[list[str]] | None:
    """Return the words of every command in the line, without quotes; None if one cannot be determined."""
    if len(line) > LINE_MAX:
        return None
    try:
        return list(_found(line, 0))
    except (UnknownSyntax, IndexError, RecursionError):
        return None


def started(argv: Sequence[str]) -> list[list[str]] | None:
    """Return the commands of a program that is started without a shell; None if one cannot be determined."""
    try:
        return [list(argv), *_inside(list(argv), 0)]
    except (UnknownSyntax, IndexError, RecursionError):
        return None


def pieces(words: Sequence[str]) -> Iterator[str]:
    """Yield every part of these words that could name a program."""
    for word in words:
        attached = [word[2:]] if re.match(r"-[A-Za-z]", word) else []  # env -S'sudo id'
        for each in (word, *attached):
            yield from re.split(r"[^\w./+-]+", each)


def _found(line: str, depth: int) -> Iterator[list[str]]:
    if depth > _DEPTH:
        raise UnknownSyntax
    for words in _Scanner(line, depth).commands():
        begins = next((at for at, word in enumerate(words) if not _stands_before(word)), len(words))
        assigned, words = [word for word in words[:begins] if "=" in word], words[begins:]
        if any(map(_COMPOSED.search, assigned)) or _command_variable(assigned):
            raise UnknownSyntax
        if assigned:
            yield ["export", *assigned]  # `PAGER='sudo id' git log`
        if not words:
            continue
        if DYNAMIC in words[0] or "{}" in words[0]:
            raise UnknownSyntax
        yield words
        yield from _inside(words, depth)


def _stands_before(word: str) -> bool:
    """Return whether a word precedes a program name: shell keywords with their options (`time -p`), and variables."""
    return word in _RESERVED or word.startswith("-") or _ASSIGNMENT.match(word) is not None


def _inside(words: list[str], depth: int) -> Iterator[list[str]]:
    """Yield the commands that a command starts: `sh -c LINE`, `eval LINE`."""
    name = _program(words[0])
    if name == "busybox" and words[1:] and not is_shell(words[1]):
        yield from _inside(words[1:], depth)
        return
    runner = name in RUNNERS
    if name in ("eval", "source", ".") or (runner and "eval" in words):
        if any(DYNAMIC in word or _DESCRIPTOR.match(word) for word in words[1:]):
            raise UnknownSyntax
        yield from _found(" ".join(words[words.index("eval") + 1 :]), depth + 1) if "eval" in words else ()
    if name in _READ_LATER or _reads_code(words) or (name in ("xargs", "parallel") and _runs_what_it_reads(words)):
        raise UnknownSyntax
    finder = name in _FINDERS
    if finder and any(map(_runs_what_it_finds, words, words[1:])):
        raise UnknownSyntax
    for at, word in enumerate(words):
        if is_shell(word) and (at == 0 or runner or any(map(_LINE_OPTION.match, words[at + 1 :]))):
            yield from _shell(words[at + 1 :], depth)
            return
    if _composes(words) or _command_variable(words) or (runner and not finder and _runs_dynamic(words)):
        raise UnknownSyntax
    if (name in _EVALUATING or (starts_another(words) and not finder)) and any(DYNAMIC in word for word in words):
        raise UnknownSyntax


def _runs_what_it_finds(option: str, program: str) -> bool:
    if _FINDER_OPTION.match(option) is None:
        return False
    return "{}" in program or DYNAMIC in program or _program(program) in RUNNERS


def _command_variable(words: list[str]) -> bool:
    return any(DYNAMIC in word and _COMMAND_VARIABLE.match(word) for word in words)


def _runs_dynamic(words: list[str]) -> bool:
    """Return whether the program that a runner starts is computed at run time. A word after an option may be its value
    (`env -u A $X`), so the program is the first word that does not follow an option."""
    skipped, before = _program(words[0]) in _PLACED, ""
    for word in words[1:]:
        if DYNAMIC in word:
            return not _NO_PROGRAM.match(word)
        if _NO_PROGRAM.match(word) is None and not (before.startswith("-") and before not in _FLAGS):
            if not skipped and _program(word) not in RUNNERS:
                return False
            skipped = not skipped and _program(word) in _PLACED
        before = word
    return False


def _composes(words: list[str]) -> bool:
    """Return whether an argument contains a line or code that starts a program with a computed name."""
    name = _program(words[0])
    if name == "sed":
        return any(map(_SED_STARTING.search, words[1:]))
    if _LANGUAGES.match(name):
        return name not in {*_FINDERS, "jq", "yq"} and any(map(_STARTING.search, words[1:]))
    looked = words if name == "printf" and "-v" in words else texts(words)
    return any(map(_COMPOSED.search, looked))


_LINE_OPTION = re.compile(r"-\w*c\w*\Z")
_READ_OPTION = re.compile(r"-\w*s\w*\Z")
_SET = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
"""Options of a shell that are followed by a value."""
_FLAGS = frozenset({"-0", "-r", "-t", "-p", "-i", "--", "-c"})
"""Options of runners without a value."""


def _shell(arguments: list[str], depth: int) -> Iterator[list[str]]:
    """Yield the commands of a shell's `-c` line. Input from a pipe is unknown; the contents of a script file are not
    checked. Options may have values (`-o pipefail`), so the line is also searched after them."""
    at = next((at for at, word in enumerate(arguments) if _LINE_OPTION.match(word)), None)
    if at is not None:
        behind = zip(arguments[at:], arguments[at + 1 :], strict=False)
        line = next((word for before, word in behind if word[:1] not in "-+" and before not in _SET), DYNAMIC)
        if DYNAMIC in line:
            raise UnknownSyntax
        yield from _found(line, depth + 1)
        return
    pairs = zip(["", *arguments], arguments, strict=False)
    files = [word for before, word in pairs if word[:1] not in "-+" and word not in _SHELLS and before not in _SET]
    if not files or any(map(_READ_OPTION.match, arguments)) or DYNAMIC in files[0] or _DESCRIPTOR.match(files[0]):
        raise UnknownSyntax


def _reads_code(words: list[str]) -> bool:
    """Return whether an interpreter gets neither file nor code, and so reads code from a pipe: `echo ... | python3`."""
    if _INTERPRETERS.match(_program(words[0])) is None:
        return False
    if any(_DESCRIPTOR.match(word) for word in words[1:]):
        return True
    return not any(not word.startswith("-") or word in ("--version", "--help", "-V", "-v", "-h") for word in words[1:])


def _runs_what_it_reads(words: list[str]) -> bool:
    """Return whether program names come from a pipe: `xargs -I% %`, `xargs sh -c '$0'`, `parallel` alone."""
    values = {at + 1 for at, word in enumerate(words) if word in _VALUED}
    rest = [word for at, word in enumerate(words) if at and at not in values and not _NO_PROGRAM.match(word)]
    replaced = {"{}", *(words[at] for at in values if words[at - 1] == "-I" and at < len(words))}
    replaced |= {word[2:] for word in words if word.startswith("-I") and len(word) > 2}
    if not rest:
        return _program(words[0]) == "parallel"
    if _program(rest[0]) in RUNNERS or any(map(is_shell, words)) or any(each in rest[0] for each in replaced):
        return True
    return _INTERPRETERS.match(_program(rest[0])) is not None and any(word in ("-c", "-e", "-r") for word in words)


_WRITERS = frozenset(
    {"tee", "cp", "mv", "ln", "install", "touch", "truncate", "dd", "sponge", "patch", "rsync", WRITES}
)


def written(programs: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the files that the commands of a line write, as far as it names them."""
    for words in programs:
        if _program(words[0]) in _WRITERS or (_program(words[0]) == "sed" and starts_another(list(words))):
            yield from (word.removeprefix("of=") for word in words[1:] if not word.startswith("-"))


def texts(words: Sequence[str]) -> list[str]:
    """Return the words of a command that may name a program that it runs: all except text for people."""
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
        target = ""
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign in " \t\r":
                self._at += 1
            elif sign in "\n;&|()":
                self._at += 1
                yield from self._ended(words)
                words, target = [], ""
            elif sign in "<>":
                given, target = target, sign
                found = self._redirection()
                if found is not None:
                    target = ""
                    words += [found] if found and not given else []
            elif sign == "#":
                self._at = (self._text.find("\n", self._at) + 1 or len(self._text) + 1) - 1
            else:
                word = self._word()
                if target:
                    self._nested += [[WRITES, word]] if target == ">" else []
                    target = ""
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

    def _redirection(self) -> str | None:
        """Return the word that replaces a redirection: a file for `<(...)`, otherwise empty. None: its target follows.
        The text of a here-document is parsed, and so is the text after `<<<`."""
        if self._text.startswith("<<<", self._at):
            self._at += 3
            while self._peek() in " \t":
                self._at += 1
            self._nested.append(["<<<", self._word()])
            return ""
        operator = _OPERATOR.match(self._text, self._at)
        assert operator is not None  # the caller checked that an operator starts here
        self._at = operator.end()
        if self._peek() == "(":
            self._substitute(self._until(")"))
            return "/dev/fd/63"
        return "" if operator[0].endswith("&-") else None

    def _word(self) -> str:
        found: list[str] = []
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign in "<>" and self._text.startswith("(", self._at + 1):  # BASH_ENV=<(...)
                self._at += 1
                self._substitute(self._until(")"))
                found.append(DYNAMIC)
                continue
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
        """Return whether this is a file name pattern or `{a,b}`. `[` and `[[` alone are commands."""
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
        """Return the text inside the bracket that opens here."""
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
    """Yield the commands in `${NAME:-$(command)}`. Only substitutions inside it count."""
    scanner = _Scanner(text, depth)
    while scanner._at < len(text):
        sign = text[scanner._at]
        scanner._at += 1
        if sign in "$`":
            scanner._expansion(sign)
        elif sign == "\\":
            scanner._at += 1
    yield from scanner._nested
