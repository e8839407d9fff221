"""What globs mean: names at any depth, paths from the top, folders in between."""

import pytest

from portico.kernel.errors import BadRequest
from portico.workspace.glob import BRACES_MAX, PATTERN_MAX, Glob, unfold

PATHS = ["a.py", "b.txt", "src/a.py", "src/deep/a.py", "src/deep/b.txt", "tests/a.py", "[x].py", "src"]

MEANS = [
    ("*.py", ["a.py", "src/a.py", "src/deep/a.py", "tests/a.py", "[x].py"]),
    ("a.py", ["a.py", "src/a.py", "src/deep/a.py", "tests/a.py"]),
    ("/a.py", ["a.py"]),
    ("/*.py", ["a.py", "[x].py"]),
    ("src/*.py", ["src/a.py"]),
    ("src/**", ["src/a.py", "src/deep/a.py", "src/deep/b.txt", "src"]),
    ("src/**/*.py", ["src/a.py", "src/deep/a.py"]),
    ("**/a.py", ["a.py", "src/a.py", "src/deep/a.py", "tests/a.py"]),
    ("**/deep/*", ["src/deep/a.py", "src/deep/b.txt"]),
    ("**/deep/**", ["src/deep/a.py", "src/deep/b.txt"]),
    ("**", PATHS),
    ("**/**", PATHS),
    ("*/*", ["src/a.py", "tests/a.py"]),
    ("?.py", ["a.py", "src/a.py", "src/deep/a.py", "tests/a.py"]),
    ("[ab].*", ["a.py", "b.txt", "src/a.py", "src/deep/a.py", "src/deep/b.txt", "tests/a.py"]),
    ("[!a].*", ["b.txt", "src/deep/b.txt"]),
    ("[^a].*", ["b.txt", "src/deep/b.txt"]),
    ("{src,tests}/a.py", ["src/a.py", "tests/a.py"]),
    ("*.{py,txt}", [each for each in PATHS if each != "src"]),
    ("{a,{b,c}}.txt", ["b.txt", "src/deep/b.txt"]),
    ("{src/deep,tests}/**", ["src/deep/a.py", "src/deep/b.txt", "tests/a.py"]),
    ("\\[x].py", ["[x].py"]),
    ("\\a.py", ["a.py", "src/a.py", "src/deep/a.py", "tests/a.py"]),
    ("A.PY", []),
    ("src/", ["src"]),
    ("src//a.py", ["src/a.py"]),
    ("py", []),
    ("", PATHS),
    ("[z-a]", []),
    ("[", []),
]


@pytest.mark.parametrize(("pattern", "expected"), MEANS)
def test_what_a_glob_matches(pattern: str, expected: list[str]) -> None:
    glob = Glob(pattern)
    assert [path for path in PATHS if glob.matches(path)] == [path for path in PATHS if path in expected]


@pytest.mark.parametrize(
    ("pattern", "name"), [("\\*", "*"), ("\\?", "?"), ("\\[", "["), ("\\!x", "!x"), ("\\^x", "^x"), ("\\]", "]")]
)
def test_a_backslash_takes_the_meaning_from_a_sign(pattern: str, name: str) -> None:
    """`\\!x` and `\\^x` matched other names."""
    assert Glob(pattern).matches(name)
    assert not Glob(pattern).matches("y")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a", {"a"}),
        ("a{b,c}d", {"abd", "acd"}),
        ("{a,b}{c,d}", {"ac", "ad", "bc", "bd"}),
        ("{a,{b,c}}", {"a", "b", "c"}),
        ("{a,}", {"a", ""}),
        ("{a}", {"{a}"}),
        ("{a,b", {"{a,b"}),
        ("a}{", {"a}{"}),
        ("{,,}", {""}),
    ],
)
def test_braces_unfold(pattern: str, expected: set[str]) -> None:
    assert set(unfold(pattern)) == expected


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("x" * (PATTERN_MAX + 1), f"has {PATTERN_MAX + 1} characters; {PATTERN_MAX} is the limit"),
        ("{a,b}" * 7, f"unfolds to more than {BRACES_MAX} patterns"),
    ],
    ids=["too long", "too many braces"],
)
def test_what_is_no_glob_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(BadRequest) as refused:
        Glob(pattern)
    assert words in refused.value.message
    assert refused.value.field == "glob"


def test_the_bounds_themselves_are_taken() -> None:
    assert Glob("x" * PATTERN_MAX).matches("x" * PATTERN_MAX)
    assert len(Glob("{a,b}" * 6).choices) == BRACES_MAX
