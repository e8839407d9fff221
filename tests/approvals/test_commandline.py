"""A command line is compared with rules only where it does nothing but run plain commands."""

import pytest

from portico.features.approvals.commandline import (
    LINE_MAX,
    allows,
    forbids,
    is_expression,
    may_mention,
    mentions,
    program,
    split,
    starts_another,
)

SPLIT = [
    ("", []),
    ("ls", ["ls"]),
    ("ls -la 'a b'", ["ls|-la|a b"]),
    ('ls "a b"', ["ls|a b"]),
    ("ls '' a", ["ls||a"]),
    ("ls; pwd", ["ls", "pwd"]),
    ("ls && pwd || id | wc", ["ls", "pwd", "id", "wc"]),
    ("ls &", ["ls"]),
    ("a;b&&c", ["a", "b", "c"]),
    ("ls a&b", ["ls|a", "b"]),
    ("ls é\ta", ["ls|é|a"]),
    ("ls a=b --x=y", ["ls|a=b|--x=y"]),
    ("ls if", ["ls|if"]),
    ("./ls a/b", ["./ls|a/b"]),
    ("ls @ % a,b +x a:b", ["ls|@|%|a,b|+x|a:b"]),
    ("x" * LINE_MAX, ["x" * LINE_MAX]),
]
NOT_PLAIN = {
    "too long": "x" * (LINE_MAX + 1),
    "an open quote": "ls 'open",
    "an empty command": "ls;;pwd",
    "a variable before it": "a=b ls",
    "a variable alone": "A=1",
    "a keyword": "if x",
    "a command of the shell": "export",
    "a path from the root": "ls /etc",
    "a program from the root": "/bin/ls",
    "a path behind an option": "ls -o/x",
    "a path behind a long option": "ls --a=/x",
    "a path behind a word": "ls a=/x",
    "a program of zsh": "=ls",
    "a path of zsh": "ls =x",
    "a step up": "ls a..b",
    "a sub-shell": "(ls)",
    "a function": "ls ()",
    "a separator in quotes": "ls 'a;b'",
    "a variable in quotes": "ls 'a$b'",
    "a substitution": "ls `b`",
    "a redirection": "ls >b",
    "a pattern": "ls *",
    "one letter": "ls a?",
    "a set": "ls [a]",
    "braces": "ls {a}",
    "a home": "ls ~",
    "the history": "ls !1",
    "a comment": "ls #a",
    "another line": "ls\nid",
    "a backslash": "ls \\a",
    "a form feed": "ls\x0c",
    "a delete": "ls\x7f",
    "a NUL": "ls\0",
}


@pytest.mark.parametrize(("line", "expected"), SPLIT, ids=[line[:20] or "nothing" for line, _ in SPLIT])
def test_plain_commands_one_after_another(line: str, expected: list[str]) -> None:
    assert split(line) == [words.split("|") for words in expected]


@pytest.mark.parametrize("line", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_whatever_else_a_line_does_is_not_compared_with_rules(line: str) -> None:
    assert split(line) is None


@pytest.mark.parametrize(
    ("line", "starts"),
    [
        ("find . -name x", False),
        ("find . -exec x", True),
        ("find . -delete", True),
        ("/usr/bin/FIND . -delete", True),
        ("fd x", False),
        ("fd -x y", True),
        ("fd -xy", True),
        ("fd --exec-b y", True),
        ("fd --ex=y", True),
        ("fd --e", False),
        ("rg --pre x", True),
        ("rg --pre=x", True),
        ("rg pre", False),
        ("sort -o x", True),
        ("sort -ox", True),
        ("sort -n", False),
        ("sed -i x", True),
        ("sed -i.bak x", True),
        ("sed -n x", False),
        ("tar -I x", True),
        ("tar -xf x", False),
        ("make SHELL=x", True),
        ("make all", False),
        ("vim -c x", True),
        ("nvim --cmd x", True),
        ("view a", False),
        ("git -c a=b log", True),
        ("git log -Oless", True),
        ("git submodule foreach x", True),
        ("git bisect run x", True),
        ("git log --output=x", True),
        ("git log --outp x", True),
        ("git log -p", False),
        ("git commit -m run", True),
        ("cat -c", False),
        ("ls", False),
    ],
)
def test_programs_that_usually_only_look_may_start_another(line: str, starts: bool) -> None:
    assert starts_another(line.split()) is starts


RULES = [
    # rule, words, allows, allows without options, forbids, mentions
    ("git log", "git log", "aofm"),
    ("git log", "git log -3", "a fm"),
    ("git log", "git log a", "aofm"),
    ("git log", "git", ""),
    ("git log", "git status", ""),
    ("git log", "git --no-pager log", "fm"),
    ("git log", "nice git log", "m"),
    ("git log", "./git log", "fm"),
    ("git log", "GIT log", "fm"),
    ("git log", "git LOG", ""),
    ("git log", "log git", ""),
    ("git log", "git log --output=x", "fm"),
    ("git log --output", "git log --output", "aofm"),
    ("./run", "./run", "aofm"),
    ("./run", "run", "fm"),
    ("a/run x", "b/run -v x", "fm"),
    ("ls", "lsof", ""),
    ("rm", "xargs rm -f", "m"),
    ("rm", "echo rm", "m"),
    ("rm", "echo rm-x", ""),
    ("/^make( test)?$/", "make test", "aofm"),
    ("/^make( test)?$/", "make deploy", ""),
    ("/^rm/", "xargs rm", "m"),
    ("/(/", "make", "fm"),
    ("/x/", "find . -exec x", "fm"),
    ("//", "make", ""),
    ("/", "make", ""),
    ("", "make", ""),
    ("  ", "make", ""),
]


@pytest.mark.parametrize(("rule", "line", "says"), RULES)
def test_what_a_rule_says_of_a_command(rule: str, line: str, says: str) -> None:
    """a: lets it pass; o: also where no further option may follow; f: forbids it; m: may speak of it. A rule that
    lets pass takes the first words as they are; one that forbids looks further."""
    words = line.split()
    found = {
        "a": allows(rule, words),
        "o": allows(rule, words, options=False),
        "f": forbids(rule, words),
        "m": mentions(rule, words),
    }
    assert "".join(key for key, said in found.items() if said) == says.replace(" ", "")
    assert may_mention(rule, {program(word) for word in words}) or not found["m"]


@pytest.mark.parametrize(
    ("rule", "programs", "may"),
    [
        ("rm -rf", {"rm"}, True),
        ("rm", {"ls"}, False),
        ("./RM", {"rm"}, True),
        ("/x/", set(), True),
        ("", {"rm"}, False),
    ],
)
def test_a_long_line_is_looked_through_for_the_rules_whose_program_it_names(
    rule: str, programs: set[str], may: bool
) -> None:
    assert may_mention(rule, programs) is may


@pytest.mark.parametrize(("rule", "expression"), [("/a/", True), ("//", False), ("/a", False), ("a/", False)])
def test_an_expression_stands_between_slashes(rule: str, expression: bool) -> None:
    assert is_expression(rule) is expression


@pytest.mark.parametrize(("word", "name"), [("rm", "rm"), ("/bin/RM", "rm"), ("./a/b", "b"), ("a/", ""), ("", "")])
def test_a_program_is_known_by_its_name(word: str, name: str) -> None:
    assert program(word) == name
