"""What a model's answer means, what a person sees of it while it is written, and what of a conversation fits."""

from types import SimpleNamespace
from typing import cast

import pytest

from portico.agents.loop.compaction import HEAD, MARK, after_summary, split
from portico.agents.loop.partial_json import PartialJson
from portico.agents.loop.prompt import system_message
from portico.agents.loop.protocol import (
    Invalid,
    ModelAction,
    ModelStep,
    correction,
    feedback,
    read_answer,
    text_rules,
)
from portico.agents.loop.transcript import (
    LEFT_OUT,
    PICTURE_CHARS,
    Entry,
    Exchange,
    UserText,
    compacts,
    fitting,
    of_parts,
    of_turns,
    size_of,
)
from portico.agents.loop.visible_text import Form, VisibleText
from portico.agents.loop.wires import chat
from portico.agents.loop.wires.request import CompletionRequest
from portico.kernel.events import ErrorInfo, Message, Outcome, ToolSpec
from portico.kernel.state import CallPart, Part, TextPart, TurnState
from portico.kernel.turn import Turn

TOOLS = ["readFiles", "runCommand"]
READ = ModelAction("readFiles", {"files": ["a"]})
CALL = '{"name": "readFiles", "arguments": {"files": ["a"]}}'


def answered(text: str) -> ModelStep:
    return ModelStep(summary=text, done=True)


ANSWERS = {
    "prose": ("It is done.", answered("It is done.")),
    "a call": (CALL, ModelStep([READ])),
    "a call with parameters": ('{"name": "readFiles", "parameters": {"files": ["a"]}}', ModelStep([READ])),
    "a call without arguments": ('{"name": "runCommand"}', ModelStep([ModelAction("runCommand", {})])),
    "calls": (f"[{CALL}, {CALL}]", ModelStep([READ, READ])),
    "a call in a fence": (f"```json\n{CALL}\n```", ModelStep([READ])),
    "a call between tags": (f"<tool_call>{CALL}</tool_call>", ModelStep([READ])),
    "calls between tags": (f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>", ModelStep([READ, READ])),
    "a call with raw lines": (
        '{"name": "runCommand", "arguments": {"command": "a\nb"}}',
        ModelStep([ModelAction("runCommand", {"command": "a\nb"})]),
    ),
    "the end as a call": ('{"name": "finish", "arguments": {"finalSummary": "ok"}}', answered("ok")),
    "a step": ('{"actions": [{"tool": "readFiles", "files": ["a"]}]}', ModelStep([READ])),
    "a final step": ('{"finalSummary": "ok", "done": true}', answered("ok")),
    "prose before tags": (f"Look: <tool_call>{CALL}</tool_call>", ModelStep([READ], "Look:")),
    "a call in prose": (f"Use {CALL} for that.", answered(f"Use {CALL} for that.")),
    "an unknown tool": ('{"name": "rm", "arguments": {}}', answered('{"name": "rm", "arguments": {}}')),
    "one unknown tool of two": (f'[{CALL}, {{"name": "rm"}}]', answered(f'[{CALL}, {{"name": "rm"}}]')),
    "arguments that are no object": (
        '{"name": "readFiles", "arguments": [1]}',
        answered('{"name": "readFiles", "arguments": [1]}'),
    ),
    "other JSON": ('{"a": 1}', answered('{"a": 1}')),
    "an empty list": ("[]", answered("[]")),
    "broken JSON": ('{"name": "readFiles"', answered('{"name": "readFiles"')),
}


@pytest.mark.parametrize(("text", "step"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_without_native_calls_is_the_answer_unless_all_of_it_is_a_call(text: str, step: ModelStep) -> None:
    assert read_answer(text, TOOLS) == step


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_answer_is_told_back(text: str) -> None:
    with pytest.raises(Invalid, match="empty"):
        read_answer(text, TOOLS)


# -- what the model is told ------------------------------------------------------------------------------------

SPEC = ToolSpec(
    "find",
    "Finds.",
    {
        "properties": {
            "query": {"type": "string"},
            "paths": {"type": "array", "items": {"type": "string"}},
            "limit": {"type": ["integer", "null"]},
            "any": {},
        },
        "required": ["query"],
    },
)


def test_the_rules_show_a_tool_as_the_model_has_to_write_it() -> None:
    line = '{"tool": "find", "query": string, "paths?": [string, ...], "limit?": integer|null, "any?": value}  Finds.'
    assert line in text_rules([SPEC]).splitlines()
    assert '{"tool": "bare"}  ' in text_rules([ToolSpec("bare", "", {})])


@pytest.mark.parametrize(
    ("folders", "told"),
    [
        ([], ""),
        (["/a"], ""),
        (["/a", "/b"], "You also work in '/b'; "),
        (["/b", "/c"], "You also work in '/b', '/c'; "),
    ],
)
def test_further_folders_are_named(folders: list[str], told: str) -> None:
    text = system_message("/a", [SPEC], native=True, folders=folders)
    assert text.startswith("You are a coding agent in the project '/a'.")
    assert ("You also work in" in text) is bool(told)
    assert told in text


@pytest.mark.parametrize("native", [True, False])
def test_a_correction_says_what_was_wrong_and_how_to_go_on(native: bool) -> None:
    text = correction("No JSON.", [SPEC], native)
    assert text.startswith("<correction>\nNo JSON.\n")
    assert text.endswith("\n</correction>")
    assert ("Finds." in text) is not native
    assert ("'finish'" in text) is native


def test_results_are_told_with_the_names_of_their_tools() -> None:
    assert feedback([("a", "1"), ("b", "2\n3")]) == "<results>\n[a]\n1\n[b]\n2\n3\n</results>"


def test_a_tool_without_a_schema_takes_an_empty_object() -> None:
    (bare,) = chat.body(CompletionRequest("m", [], tools=[ToolSpec("bare", "Does.", {})]))["tools"]
    assert bare["function"] == {
        "name": "bare",
        "description": "Does.",
        "parameters": {"type": "object", "properties": {}},
    }


# -- what a person sees meanwhile ------------------------------------------------------------------------------

SPOKEN = [
    ('{"commentary": "hi"}', "hi"),
    ('{"finalSummary": "hi"}', "hi"),
    ('{"other": "hi"}', ""),
    ('{"a": {"commentary": "hi"}}', ""),
    ('[{"commentary": "hi"}]', ""),
    ('{"a": ["commentary", "hi"]}', ""),
    ('{"commentary": ["hi"]}', ""),
    ('{"commentary": 1, "b": "hi"}', ""),
    ('{"a": "commentary", "b": "hi"}', ""),
    ('{"a": 1, "commentary": "x", "finalSummary": "y"}', "xy"),
    ('{"commentary": "a\\nb\\t\\"c\\" \\\\ \\/"}', 'a\nb\t"c" \\ /'),
    ('{"commentary": "\\u00e9\\ud83d\\ude00"}', "é😀"),
    ('{"commentary": "\\ud83dx"}', "\ufffdx"),
    ('{"commentary": "a\\ud83d"}', "a\ufffd"),
    ('{"commentary": "\\ud83d\\n"}', "\ufffd\n"),
    ('{"commentary": "\\ud83d\\u0041"}', "\ufffdA"),
    ('{"commentary": "\\ud83d\\ud83d\\ude00"}', "\ufffd😀"),
    ('{"commentary": "\\ud83d\\uzzzz"}', "\ufffd\ufffd"),
    ('{"commentary": "\\ude00"}', "\ufffd"),
    ('{"commentary": "\\uzzzz!"}', "\ufffd!"),
    ('{"comment\\u0061ry": "hi"}', "hi"),
    ('{"commentary": "not clo', "not clo"),
]


@pytest.mark.parametrize(("text", "said"), SPOKEN)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_of_json_only_the_two_spoken_values_are_heard(text: str, said: str, size: int) -> None:
    heard = PartialJson()
    assert "".join(heard.feed(text[at : at + size]) for at in range(0, len(text), size)) == said


class Seen:
    """A turn, as far as somebody speaks into it."""

    def __init__(self) -> None:
        self.text = ""
        self.thought = ""

    def show(self, text: str) -> VisibleText:
        turn = SimpleNamespace(
            text=lambda words, key: setattr(self, "text", self.text + words),
            reasoning=lambda words, key: setattr(self, "thought", self.thought + words),
            retract=lambda key: setattr(self, "text", ""),
            correct=lambda key, words: setattr(self, "text", words),
        )
        return VisibleText(cast(Turn, turn), text)


@pytest.mark.parametrize(
    ("form", "pieces", "seen"),
    [
        ("chat", ["Hel", "lo {"], "Hello {"),
        ("chat", ['{"commentary": "x"}'], '{"commentary": "x"}'),
        ("native", ["Look: ", "{a}"], "Look: {a}"),
        ("native", ['{"comm', 'entary": "x"}'], "x"),
        ("native", ["<tool_call>"], ""),
        ("native", ["```json"], ""),
        ("native", ["  ", "Hello"], "Hello"),
        ("text", ['{"commentary": "x", ', '"actions": []}'], "x"),
        ("text", ['I think {"commentary": "x"}'], "I think x"),
        ("text", ["I ", "think"], "I think"),
        ("text", ["\n", '{"finalSummary": "x"}'], "x"),
    ],
)
def test_prose_is_seen_as_it_is_and_json_by_what_it_says(form: Form, pieces: list[str], seen: str) -> None:
    turn = Seen()
    shown = turn.show("k")
    shown.begin(form)
    for piece in pieces:
        shown.report(piece, "")
    assert turn.text == seen


@pytest.mark.parametrize(
    ("written", "words", "seen"),
    [
        ('{"commentary": "I look"}', "I look", "I look\n"),
        ('{"commentary": "I lo', "I look", "I look\n"),
        ('{"actions": []}', "I look", "I look\n"),
        ('{"commentary": "Oh"}', "I look", "Oh\nI look\n"),
        ('{"commentary": "Oh"}', "", "Oh"),
    ],
)
def test_at_the_end_the_rest_is_said(written: str, words: str, seen: str) -> None:
    turn = Seen()
    shown = turn.show("k")
    shown.report(written, "")
    shown.finish(words)
    assert turn.text == seen


def test_what_looked_like_json_is_let_go_when_it_is_none() -> None:
    turn = Seen()
    silent = turn.show("k")
    silent.report('{"a": "b"} is an object.', "thinking")
    assert (turn.text, turn.thought) == ("", "thinking")
    silent.release()
    assert turn.text == '{"a": "b"} is an object.'
    turn = Seen()
    spoken = turn.show("k")
    spoken.report('{"commentary": "x"} is an object.', "")
    spoken.release()
    assert turn.text == '{"commentary": "x"} is an object.'
    spoken.void()
    assert turn.text == ""


# -- what fits -------------------------------------------------------------------------------------------------


def step(*results: str) -> Exchange:
    return Exchange(
        ModelStep([ModelAction("readFiles", {})] * len(results), "why"), [("readFiles", each) for each in results]
    )


def user(text: str) -> UserText:
    return UserText("user", text)


def test_old_results_go_first_then_old_turns_and_the_newest_stays() -> None:
    old, new = step("x" * 2000), step("y" * 600)
    kept = fitting([user("first"), old, user("goal"), new], 1000)
    assert kept == [user("first"), step(LEFT_OUT), user("goal"), new]
    kept = fitting([user("a" * 900), user("b" * 900), user("goal")], 1000)
    assert [entry.text[:30] for entry in kept if isinstance(entry, UserText)] == [
        "[Earlier in this conversation,",
        "b" * 30,
        "goal",
    ]


def test_the_last_result_is_cut_where_nothing_else_is_left() -> None:
    [goal, last] = fitting([user("goal"), step("y" * 5000, "z" * 5000)], 1000)
    assert goal == user("goal")
    assert isinstance(last, Exchange)
    for _, text in last.results:
        assert "characters left out" in text
        assert len(text) < 600


@pytest.mark.parametrize(
    ("size", "limit", "expected"), [(1000, 1000, False), (1001, 1000, True), (900, 10, False), (1001, 10, True)]
)
def test_when_something_has_to_be_left_out(size: int, limit: int, expected: bool) -> None:
    assert compacts([user("x" * size)], limit) is expected


@pytest.mark.parametrize(
    ("entry", "size"),
    [
        (user("abc"), 3),
        (UserText("user", "abc", ["data:"]), 3 + PICTURE_CHARS),
        (step("abc"), 2 + 40 + 3),
    ],
)
def test_what_an_entry_takes_of_the_context(entry: Entry, size: int) -> None:
    assert size_of(entry) == size


def test_a_conversation_as_an_endpoint_takes_it() -> None:
    action = ModelAction("readFiles", {"files": ["a"]}, "id-1")
    entries: list[Entry] = [
        UserText("user", "look", ["data:x"]),
        UserText("assistant", ""),
        UserText("user", "No JSON."),
        Exchange(ModelStep([action, ModelAction("runCommand", {})], ""), [("readFiles", "1"), ("runCommand", "2")]),
    ]
    system, asked, wrong, told, called, *results = chat.messages("sys", entries, native=True)
    assert (system["role"], wrong["content"], told["content"]) == ("system", "(empty)", "No JSON.")
    assert asked["content"] == [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    assert called["content"] is None
    assert [each["id"] for each in called["tool_calls"]] == ["c00000300", "c00000301"]
    assert [(each["tool_call_id"], each["content"]) for each in results] == [("c00000300", "1"), ("c00000301", "2")]
    plain = chat.messages("sys", entries, native=False, pictures=False)
    assert plain[1]["content"] == "look"
    assert plain[4]["content"] == (
        '{"actions": [{"tool": "readFiles", "files": ["a"]}, {"tool": "runCommand"}], "commentary": "", "done": false}'
    )
    assert plain[5]["content"] == "<results>\n[readFiles]\n1\n[runCommand]\n2\n</results>"


def turn(text: str, *parts: Part, outcome: Outcome | None = "completed") -> TurnState:
    return TurnState("t", Message(text), "me", 0, 0, list(parts), outcome=outcome)


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (TextPart("1", "text", " hi "), "hi"),
        (TextPart("1", "reasoning", "hm"), ""),
        (TextPart("1", "notice", "careful"), ""),
        (CallPart("1", "grep", title="grep x", output="a:1", outcome="completed"), "[grep x: completed]\na:1"),
        (CallPart("1", "grep"), "[grep: running]"),
        (CallPart("1", "grep", outcome="failed", error=ErrorInfo("x", "no")), "[grep: failed]\nno"),
    ],
)
def test_a_part_of_an_earlier_turn_in_words(part: Part, told: str) -> None:
    assert of_parts([part]) == told


def test_an_earlier_turn_says_how_it_ended_and_what_was_attached() -> None:
    attached = TurnState("t", Message("see", attachments=[{"label": "a.png"}, {}]), "me", 0, 0, outcome="completed")
    told = [each.text for each in of_turns([turn("go", outcome="failed"), attached]) if isinstance(each, UserText)]
    assert told == ["go", "[this turn: failed]", "see\n[attached: a.png, a file]", "[no answer]"]


def test_a_summary_takes_the_place_of_what_was_before() -> None:
    noted = turn("two", TextPart("1", "notice", f"{MARK}They talked."), TextPart("2", "text", "yes"))
    told = [each.text for each in after_summary([turn("one"), noted, turn("three")]) if isinstance(each, UserText)]
    assert told == [f"{HEAD}They talked.", "two", "yes", "three", "[no answer]"]
    assert after_summary([turn("one")]) == of_turns([turn("one")])


@pytest.mark.parametrize(
    ("sizes", "room", "kept"),
    [([10, 10, 10], 1000, 3), ([10, 10, 10], 50, 2), ([10, 10, 10], 49, 1), ([10, 10, 500], 100, 1)],
)
def test_the_newest_that_fits_stays_word_for_word(sizes: list[int], room: int, kept: int) -> None:
    entries = [user(chr(97 + at) * size) for at, size in enumerate(sizes)]
    older, newer = split(entries, room)
    assert (older, newer) == (entries[: len(entries) - kept], entries[len(entries) - kept :])


def test_the_last_message_of_a_person_stays_in_any_case() -> None:
    entries: list[Entry] = [user("first"), user("goal"), step("x" * 900)]
    older, newer = split(entries, 100)
    assert older == entries[:2]
    assert newer == [user("goal"), entries[2]]
