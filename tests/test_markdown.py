"""What an agent made up is shown in Markdown as it is: rendered, it reads like the text itself."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from portico.markdown import escape, escape_line, is_disguised, visible

PAYLOADS = {
    "comment": "ls <!-- hidden --> -la",
    "html": "<b>bold</b><img src=x onerror=alert(1)><script>1</script>",
    "entity": "a &lt;b&gt; &amp; &#65; &nbsp;",
    "link": "[safe](https://evil.example) <https://evil.example> www.evil.example https://evil.example",
    "reference": "[safe]: https://evil.example\n[safe]",
    "image": "![x](https://evil.example/x.png)",
    "command link": "[run](command:workbench.action.quit)",
    "emphasis": "*a* _b_ **c** __d__ ~~e~~ ~f~",
    "code": "`a` ``b`` ```c```",
    "fence": "```\nrm -rf ~\n```\ntext\n~~~\nmore\n~~~",
    "maths": "$x^2$ $$y$$ \\(z\\)",
    "icon": "$(trash) :smile:",
    "heading": "# one\n## two\nthree\n===\nfour\n---",
    "list": "- a\n* b\n+ c\n1. d\n2) e\n- [ ] f",
    "quote": "> a\n>> b",
    "table": "|a|b|\n|-|-|\n|1|2|",
    "indented code": "    code\n\tcode",
    "backslash": "C:\\new\\temp \\\\ \\* \\",
    "backslash at a line's end": "a\\\nb",
    "line ends": "a\r\nb\nc",
    "empty lines": "a\n\n\nb\n",
    "blanks": "  a  b   c ",
    "padding": "ls" + " " * 300 + "; rm -rf ~",
    "many lines": "ls" + "\n" * 300 + "rm -rf ~",
    "footnote": "a[^1]\n\n[^1]: b",
}
INVISIBLE = {
    "bidi override": "ls \u202e gnp.exe",
    "bidi isolate": "a\u2066b\u2069",
    "right-to-left mark": "a\u200fb\u061c",
    "zero-width": "r\u200bm\u200c \u200d-rf\ufeff\u2060",
    "soft hyphen": "r\u00adm",
    "escape": "\x1b[31mred\x1b[0m",
    "backspace": "evil\b\b\b\bgood",
    "lone return": "evil\rgood",
    "null": "a\0b",
    "line separator": "a\u2028b\u2029c",
    "other blanks": "a\u00a0b\u3000c\u2003d",
    "filler": "a\u3164b\u2800c",
    "variation": "a\ufe0fb",
    "tags": "a\U000e0041b",
    "private": "a\ue000b",
}


def rendered(markdown: str) -> str:
    """What a renderer of Markdown with HTML, tables and links makes of it: nothing but text may come out."""
    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(markdown)
    assert [each.type for each in tokens] in ([], ["paragraph_open", "inline", "paragraph_close"]), markdown
    pieces = (tokens[1].children or []) if tokens else []
    assert {each.type for each in pieces} <= {"text", "text_special", "softbreak"}, markdown
    return "".join("\n" if each.type == "softbreak" else each.content for each in pieces)


def collapsed(text: str) -> str:
    """As a browser lays it out: ordinary blanks in a row, and those at the end of a line, are one or none."""
    return re.sub(r"(?m)^ +| +$", "", re.sub(r" +", " ", text))


def expected(text: str) -> str:
    text = visible(text.replace("\r\n", "\n").replace("\t", "    "))
    return "\n".join(line or " " for line in text.split("\n")) if "\n" in text else text


def assert_shown(text: str) -> None:
    made = escape(text)
    plain = re.sub(r"\\[!-/:-@\[-`{-~]|&nbsp;", "", made)
    assert not re.search(r"[!-/:-@\[-`{-~]", plain), made  # nothing that Markdown could take for its own
    shown = collapsed(rendered(made)).replace("\u00a0", " ")
    assert shown == expected(text)
    assert not re.search(r"(?m)^ {4}| {3}", made)  # no block of code, and every run of blanks can be wrapped


@pytest.mark.parametrize("text", [*PAYLOADS.values(), *INVISIBLE.values()], ids=[*PAYLOADS, *INVISIBLE])
def test_every_payload_is_shown_as_it_is(text: str) -> None:
    assert_shown(text)


@given(st.text(alphabet=st.sampled_from([*" \n\t\r`*_[]()<>!#-\\$&;ab1.", "\u200b", "\u202e"])))
def test_so_is_anything_else(text: str) -> None:
    assert_shown(text)


@pytest.mark.parametrize("text", INVISIBLE.values(), ids=INVISIBLE)
def test_what_cannot_be_seen_has_a_name(text: str) -> None:
    assert is_disguised(text)
    assert "<U+" in visible(text)
    assert visible(visible(text)) == visible(text)


def test_exactly() -> None:
    assert escape("rm -rf *") == r"rm \-rf \*"
    assert escape("a\u200bb") == r"a\<U\+200B\>b"
    assert escape("a\tb\r\n\r\n  c") == "a &nbsp; &nbsp;b\n&nbsp;\n&nbsp; c"
    assert escape("<!-- x -->") == r"\<\!\-\- x \-\-\>"
    assert escape("") == ""
    assert escape_line("a\n# b") == r"a \# b"
    assert html.unescape(escape("é ü 漢")) == "é ü 漢"


@pytest.mark.parametrize(
    ("text", "hides"),
    [
        ("ls -la", False),
        ("a\nb\tc", False),
        (PAYLOADS["padding"], True),
        (PAYLOADS["many lines"], True),
        ("é漢", False),
    ],
)
def test_what_a_verbatim_view_would_hide(text: str, hides: bool) -> None:
    assert is_disguised(text) is hides
