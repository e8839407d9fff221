import json

from hypothesis import given
from hypothesis import strategies as st

from portico.agents.loop.partial_json import PartialJson

words = st.text(st.characters(codec="utf-8"))


@given(words, words, st.booleans(), st.randoms())
def test_the_spoken_values_come_out_however_the_text_is_cut(
    commentary: str, content: str, ascii: bool, cut: "object"
) -> None:
    step = {
        "actions": [{"tool": "createFile", "content": content, "commentary": "not this one"}],
        "other": {"finalSummary": "nor this"},
        "commentary": commentary,
        "done": False,
    }
    text = json.dumps(step, ensure_ascii=ascii)
    speech = PartialJson()
    said, position = "", 0
    while position < len(text):
        size = cut.randint(1, 7)  # type: ignore[attr-defined]
        said += speech.feed(text[position : position + size])
        position += size
    assert said == commentary


@given(st.text(alphabet='{}[]":,\\ud8a0nx'))
def test_any_text_is_survived(text: str) -> None:
    said = PartialJson().feed('{"commentary": "' + text)
    said.encode("utf-8")


def test_a_summary_grows_letter_by_letter() -> None:
    speech = PartialJson()
    assert [speech.feed(piece) for piece in ('{"final', 'Summary": "He', "ll", 'o", "done"', ": true}")] == [
        "",
        "He",
        "ll",
        "o",
        "",
    ]
