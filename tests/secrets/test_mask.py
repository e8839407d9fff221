"""A known value is masked in every form in which programs print it, also in parts."""

import base64
import html
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.features.secrets.mask import Mask
from portico.workspace.process import command_environment, run
from tests.free import FREE

VALUE = 'c4nary/+it\'s "é"&<7>'
FORMS: dict[str, Callable[[str], str]] = {
    "itself": str,
    "in a line": lambda value: f"token: {value}; next",
    "twice": lambda value: value + value,
    "url": lambda value: quote(value, safe=""),
    "url with slashes": quote,
    "form": quote_plus,
    "lower case url": lambda value: re.sub("%..", lambda found: found[0].lower(), quote(value)),
    "json": json.dumps,
    "json in utf-8": lambda value: json.dumps(value, ensure_ascii=False),
    "json with slashes escaped": lambda value: json.dumps(value).replace("/", "\\/"),
    "html": html.escape,
    "shell": shlex.quote,
    "bash": lambda value: "'" + value.replace("'", "'\\''") + "'",
    "hex": lambda value: value.encode().hex(),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 for urls": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "basic authentication": lambda value: base64.b64encode(f"user:{value}".encode()).decode(),
    "base64, at another position": lambda value: base64.b64encode(f"users:{value}\n".encode()).decode(),
    "base64, at a third position": lambda value: base64.b64encode(f"me:{value}:".encode()).decode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_masked(form: str) -> None:
    printed = FORMS[form](VALUE)
    masked = Mask({"TOKEN": [VALUE]}).text(f"before {printed} after")
    assert "[redacted: TOKEN]" in masked
    assert (masked.startswith("before "), masked.endswith(" after")) == (True, True)
    left = masked.replace("[redacted: TOKEN]", "").removeprefix("before ").removesuffix(" after")
    assert len(left) <= max(14, len(printed) - len(VALUE)), left


def test_the_lines_of_a_key_are_masked_one_by_one() -> None:
    key = (
        "-----BEGIN KEY-----\n" + "\n".join(f"{line}abcdefgh{line * 7}" for line in range(3)) + "\n-----END KEY-----\n"
    )
    mask = Mask({"KEY": [key]})
    assert mask.text(key) == "[redacted: KEY]"
    indented = "\n".join(f"   | {line}" for line in key.splitlines())
    assert "abcdefgh" not in mask.text(indented)
    wrapped = base64.encodebytes(key.encode()).decode()
    assert mask.text(wrapped).replace("[redacted: KEY]", "").strip() in ("", "\n")


def test_a_document_is_masked_at_any_depth() -> None:
    document = {"a": ["x hunter22 y", 1, None, {"hunter22": True}]}
    expected = {"a": ["x [redacted: P] y", 1, None, {"[redacted: P]": True}]}
    assert Mask({"P": ["hunter22"]}).document(document) == expected


def test_overlapping_values_leave_no_end_over() -> None:
    mask = Mask({"A": ["abcdefgh"], "B": ["efghijkl"]})
    assert mask.text("-abcdefghijkl-") == "-[redacted: A]-"


def test_an_old_value_of_a_changed_secret_stays_masked() -> None:
    assert Mask({"A": ["first-value", "second-value"]}).text("first-value second-value") == (
        "[redacted: A] [redacted: A]"
    )


@given(
    st.lists(st.text("ab/é", min_size=4, max_size=6), min_size=1, max_size=3),
    st.lists(st.text("ab/é ", max_size=9), max_size=6),
)
def test_a_stream_is_masked_as_the_whole_text(values: list[str], parts: list[str]) -> None:
    mask = Mask({f"S{number}": [value] for number, value in enumerate(values)})
    stream = mask.stream()
    told = b"".join(stream.feed(part.encode()) for part in parts) + stream.close()
    assert told.decode() == mask.text("".join(parts))


@given(st.text(min_size=4, max_size=40).filter(lambda text: len(text.strip()) >= 4), st.text(max_size=30))
def test_no_value_is_left_in_any_text(value: str, around: str) -> None:
    masked = Mask({"S": [value]}).text(around + value + around)
    assert value not in masked.replace("[redacted: S]", "")


def test_text_without_a_value_is_unchanged() -> None:
    text = "half a surrogate \udc80 and \x00"
    assert Mask({}).text(text) == Mask({"A": ["other-value"]}).text(text) == text


@pytest.mark.parametrize("raw", [False, True])
async def test_the_output_of_a_command_is_masked_before_anything_is_cut(tmp_path: Path, raw: bool) -> None:
    """The middle of a long output is left out. Half a value would stay at the cut."""
    value = "0123456789abcdef"
    line = 'i=0; while [ $i -lt 40 ]; do printf "x%s" "$S"; printf "y%s" "$S" >&2; i=$((i+1)); done'
    env = command_environment(S=value)
    live: list[str] = []
    for head in range(17, 34):
        done = await run(
            ["sh", "-c", line],
            policy=FREE,
            cwd=tmp_path,
            env=env,
            head=head,
            tail=head,
            raw=raw,
            on_output=live.append,
            filters=Mask({"S": [value]}).stream,
        )
        shown = done.output + done.data.decode()
        assert [part for part in ("0123", "cdef") if part in shown + "".join(live)] == []
