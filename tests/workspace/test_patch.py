"""Diffs made and applied: exact in content, forgiving in numbers."""

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.kernel.errors import BadRequest, Conflict, TooLarge
from portico.workspace import patch as module
from portico.workspace.patch import apply, counted, diff, edit

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
NEW = OLD.replace("four", "FOUR")

lines = st.lists(st.sampled_from(["a", "b", "", " ", "-- x", "++ y", "@@", "\\", "\r", "\x0c", "é"]), max_size=12)
texts = st.tuples(lines, st.sampled_from(["", "\n"]), st.sampled_from(["\n", "\r\n"])).map(
    lambda drawn: drawn[2].join(drawn[0]) + drawn[1]
)


@given(texts, texts)
def test_what_diff_makes_apply_undoes(old: str, new: str) -> None:
    made = diff(old, new, "file")
    assert (apply(old, made) if made else old) == new


@given(texts, texts)
def test_also_when_the_file_is_too_long_to_compare(old: str, new: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DIFF_LINES_MAX", 0)
        made = diff(old, new, "file")
    assert (apply(old, made) if made else old) == new


def test_the_form_is_the_usual_one() -> None:
    assert diff("a\n", "b", "x.py") == "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"
    assert diff("", "b\n", "x.py", old_exists=False) == "--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+b\n"


@pytest.mark.parametrize(
    "patch",
    [
        "@@ -4 +4 @@\n-four\n+FOUR\n",
        "@@ -400,9 +17,2 @@\n three\n-four\n+FOUR\n five\n",
        "@@\n-four\n+FOUR",
        "```diff\n--- a/x\n+++ b/x\n@@ -3,3 +3,3 @@ def f():\n three\n-four\n+FOUR\n five\n```\n",
        "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -4,1 +4,1 @@\n-four\n+FOUR\n\n\n",
        "@@ -4 +4 @@\r\n-four\r\n+FOUR\r\n",
    ],
)
def test_wrong_numbers_fences_and_heads_do_not_matter(patch: str) -> None:
    assert apply(OLD, patch) == NEW


def test_crlf_files_keep_their_line_ends() -> None:
    assert apply(OLD.replace("\n", "\r\n"), "@@ -4 +4 @@\n-four\n+FOUR\n") == NEW.replace("\n", "\r\n")


def test_context_that_is_not_there_changes_nothing() -> None:
    with pytest.raises(Conflict, match="no line 'fourteen'"):
        apply(OLD, "@@ -3,2 +3,2 @@\n three\n-fourteen\n+x\n")
    with pytest.raises(Conflict, match="order"):
        apply(OLD, "@@ -3,2 +3,2 @@\n five\n-four\n+x\n")


def test_two_places_need_more_context() -> None:
    text = "x\na\nx\nb\n"
    with pytest.raises(Conflict, match=r"several places \(lines 1, 3\)"):
        apply(text, "@@\n-x\n+y\n")
    with pytest.raises(Conflict, match=r"lines 1, 2, 3, 4, 5 and more"):
        apply("x\n" * 9, "@@\n-x\n+y\n")
    assert apply(text, "@@ -3 +3 @@\n-x\n+y\n") == "x\na\ny\nb\n"
    assert apply(text, "@@\n-x\n+y\n b\n") == "x\na\ny\nb\n"


@pytest.mark.parametrize("patch", ["", "hello", "@@ -1 +1 @@\n one\n", "@@ -1 +1 @@\n-one\n?what\n"])
def test_what_is_no_diff_is_a_bad_request(patch: str) -> None:
    with pytest.raises(BadRequest):
        apply(OLD, patch)


def test_several_files_and_lost_additions_are_refused() -> None:
    one = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-one\n+1\n"
    with pytest.raises(BadRequest, match="one file"):
        apply(OLD, one.format("x") + one.format("y"))
    with pytest.raises(Conflict, match="where"):
        apply(OLD, "@@\n+added\n")


def test_a_diff_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    patch = "@@ -4 +4 @@\n-four\n+FOUR\n"
    monkeypatch.setattr(module, "PATCH_MAX", len(patch) - 1)
    with pytest.raises(TooLarge):
        apply(OLD, patch)


def test_a_diff_made_to_be_slow_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hunk could begin at every line; the whole was once compared a line times a hunk."""
    text, hunk = "a\nb\n" * 1000, "@@ -9999 +9999 @@\n" + " a\n b\n" * 100 + " b\n-a\n+c\n"
    monkeypatch.setattr(module, "COMPARED_MAX", 100_000)
    with pytest.raises(Conflict, match="too many places"):
        apply(text, hunk)


LINES = st.lists(st.sampled_from("abc"), min_size=1, max_size=12)


@given(LINES, LINES, LINES, st.integers(0, 20))
def test_a_hunk_goes_where_its_lines_are_and_nowhere_else(
    before: list[str], wanted: list[str], new: list[str], said: int
) -> None:
    """Whatever number it says: at that line, or at the only place, or not at all."""
    text = "".join(f"{line}\n" for line in before)
    patch = f"@@ -{said} +1 @@\n" + "".join(f"-{line}\n" for line in wanted) + "".join(f"+{line}\n" for line in new)
    places = [at for at in range(len(before)) if before[at : at + len(wanted)] == wanted]
    at = said - 1 if said - 1 in places else places[0] if len(places) == 1 else None
    if wanted == new or at is None:
        with pytest.raises((BadRequest, Conflict)):
            apply(text, patch)
        return
    after = [*before[:at], *new, *before[at + len(wanted) :]]
    assert apply(text, patch) == "".join(f"{line}\n" for line in after)


@given(st.text(max_size=60), st.text(max_size=120))
def test_any_text_is_answered(text: str, patch: str) -> None:
    with suppress(BadRequest, Conflict):
        apply(text, patch)


NUMBERED = "".join(f"line {number}\n" for number in range(300))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Lines before and behind some that stay: once one block in the conversation, with all between them.
        ("import a\n\n@x\ndef f(a):\n    b\n", "import a\nimport b\n\nt = 1\n\n@x\ndef f(r, a):\n    c\n    b\n"),
        ("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n"),
        ("x\n" * 250 + "end\n", "x\n" * 120 + "y\n" + "x\n" * 130),  # lines that are there often are lines, too
        (NUMBERED, NUMBERED.replace("line 7\n", "").replace("line 200\n", "line two hundred\n") + "more\n"),
        ("", "a\nb\n"),
        ("a\nb", "a\nb\n"),
        (NUMBERED, ""),
    ],
)
def test_as_many_lines_come_and_go_as_git_counts(tmp_path: Path, old: str, new: str) -> None:
    """The conversation said "+4 −3" and the changes "+3 −2" of the same edit."""
    for name, text in (("old", old), ("new", new)):
        (tmp_path / name).write_text(text)
    command = ["git", "diff", "--no-index", "--numstat", "old", "new"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout.split()
    made = edit("/p/x", old, new)
    assert counted(made["diff"]) == {"added": int(told[0]), "removed": int(told[1])}
    assert apply(old, made["diff"]) == new


def test_what_has_too_little_in_common_is_compared_all_the_same() -> None:
    old, new = NUMBERED, "".join(f"row {number}\n" for number in range(300))
    assert counted(diff(old, new, "x")) == {"added": 300, "removed": 300}


@pytest.mark.parametrize("lines", [500, 5000, 20_000])
def test_lines_that_stand_everywhere_are_not_compared_with_each_other(lines: int) -> None:
    """A file of two kinds of lines, rewritten by an agent, stopped the host: two seconds for 4,000 lines."""
    old, new = ([f"{(at * at * step) % 7 % 2}\n" for at in range(lines)] for step in (1, 3))
    places: dict[str, list[int]] = vars(module._Matcher(old, new))["b2j"]
    compared = sum(len(places.get(line, ())) for line in old)
    assert compared <= lines * (lines // 100 + 1)
