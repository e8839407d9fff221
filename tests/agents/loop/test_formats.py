"""What models write instead of what was asked: thoughts in the text, calls as text, calls without an index."""

from typing import Any

import pytest

from portico.agents.loop.arguments import NoArguments, canonical, parse
from portico.agents.loop.fields import fitted
from portico.agents.loop.thoughts import ThoughtFilter
from portico.agents.loop.tools import TOOLS as OWN
from portico.agents.loop.written_calls import find
from portico.kernel.events import Json
from tests.agents.loop.conftest import Desk, calls, texts
from tests.agents.loop.vendor import call, frames, stream, vendor

TOOLS = ("listFiles", "readFiles", "runCommand", "finish")
READ: Json = {"files": ["a"]}
JSON = '{"name": "readFiles", "arguments": {"files": ["a"]}}'

CALLS: dict[str, tuple[str, str]] = {
    "Hermes and Qwen": (f"Let me look.\n<tool_call>\n{JSON}\n</tool_call>", "Let me look."),
    "Hermes without its end": (f"<tool_call>\n{JSON}", ""),
    "Llama 3": ('<|python_tag|>{"name": "readFiles", "parameters": {"files": ["a"]}}<|eom_id|>', ""),
    "Llama with a function tag": ('<function=readFiles>{"files": ["a"]}</function>', ""),
    "Llama 4": ('[readFiles(files=["a"])]', ""),
    "Qwen3 Coder": (
        'I look.\n<tool_call>\n<function=readFiles>\n<parameter=files>\n["a"]\n</parameter>\n</function>\n</tool_call>',
        "I look.",
    ),
    "MiniMax": (
        '<minimax:tool_call>\n<invoke name="readFiles">\n<parameter name="files">["a"]</parameter>\n</invoke>\n'
        "</minimax:tool_call>",
        "",
    ),
    "GLM": (
        'Look.<tool_call>readFiles\n<arg_key>files</arg_key>\n<arg_value>["a"]</arg_value>\n</tool_call>',
        "Look.",
    ),
    "Kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.readFiles:0<|tool_call_argument_begin|>"
        '{"files": ["a"]}<|tool_call_end|><|tool_calls_section_end|>',
        "",
    ),
    "DeepSeek": (
        'Yes.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>readFiles\n```json\n{"files": ["a"]}\n```'
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "Yes.",
    ),
    "DeepSeek 3.1": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>readFiles<｜tool▁sep｜>{"files": ["a"]}<｜tool▁call▁end｜>',
        "",
    ),
    "Mistral": (f"[TOOL_CALLS][{JSON}]", ""),
    "Mistral, newer": ('[TOOL_CALLS]readFiles[ARGS]{"files": ["a"]}', ""),
    "a fence after prose": (f"I will read it:\n\n```json\n{JSON}\n```", "I will read it:"),
    "a fence of its own kind": (f"```tool_call\n{JSON}\n```", ""),
    "JSON on the last lines": (f"I will read it.\n{JSON}", "I will read it."),
    "OpenAI's form as text": (
        '{"type": "function", "function": {"name": "readFiles", "arguments": "{\\"files\\": [\\"a\\"]}"}}',
        "",
    ),
    "a prefix": ('<tool_call>{"name": "functions.readFiles", "arguments": {"files": ["a"]}}</tool_call>', ""),
}


@pytest.mark.parametrize(("text", "beside"), CALLS.values(), ids=CALLS)
def test_a_call_that_is_written_as_text(text: str, beside: str) -> None:
    found = find(text, TOOLS)
    assert found is not None
    assert (found.text, found.calls) == (beside, [("readFiles", READ)])


PROSE = [
    "It is done.",
    "Use `<tool_call>` tags like <tool_call>this</tool_call>.",
    f"Call it as {JSON} and read the result.",
    '```json\n{"name": "ruff", "arguments": {}}\n```',
    f"```json\n{JSON}\n```\nis how one would call it.",
    '{"name": "readFiles"',
    "[1](http://x)",
    "[a(b)]",
    "<function=other>{}</function>",
    '{"a": 1}',
    "Here:\n{x}\n",
]


@pytest.mark.parametrize("text", PROSE)
def test_prose_stays_prose(text: str) -> None:
    assert find(text, TOOLS) is None


def test_several_calls_and_a_bad_one() -> None:
    found = find(f"<tool_call>{JSON}</tool_call><tool_call>{JSON}</tool_call>", TOOLS)
    assert found is not None
    assert len(found.calls) == 2
    broken = find('<function=readFiles>{"files": [</function>', TOOLS)
    assert broken is not None
    assert "not JSON" in str(broken.calls[0][1])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("null", {}),
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('{}{"a": 1}', {"a": 1}),
        ('{"a": 1}{"a": 1}', {"a": 1}),
        ('{"a": [1, 2,],}', {"a": [1, 2]}),
        ("{'a': True, 'b': None}", {"a": True, "b": None}),
        ('{"a": "x\ny"}', {"a": "x\ny"}),
    ],
)
def test_arguments_that_are_nearly_json(text: str, value: Json) -> None:
    assert parse(text) == value


@pytest.mark.parametrize("text", ['{"a": ', "[1]", "7", "hello", '{"a": 1}{"a": 2}', "{" * 5000])
def test_arguments_that_are_none(text: str) -> None:
    with pytest.raises(NoArguments):
        parse(text)


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("readFiles", "readFiles"),
        ("functions.readFiles", "readFiles"),
        ("functions.readFiles:3", "readFiles"),
        ("default_api:readFiles", "readFiles"),
        ("read_files", "readFiles"),
        ("ReadFiles", "readFiles"),
        ("read_file", "readFiles"),
        ("functions.readFile", "readFiles"),
        ("read", "read"),
        ("tickets__add", "tickets__add"),
        ("", ""),
    ],
)
def test_the_tool_that_a_name_means(name: str, tool: str) -> None:
    assert canonical(name, TOOLS) == tool


THOUGHTS: dict[str, tuple[str, str, str]] = {
    "none": ("Hello < you", "Hello < you", ""),
    "think": ("<think>hm</think>\n\nYes.", "Yes.", "hm"),
    "thinking": ("\n<thinking>hm</thinking>Yes.", "Yes.", "hm"),
    "without an end": ("<think>hm", "", "hm"),
    "twice": ("<think>a</think><think>b</think>Yes.", "Yes.", "ab"),
    "the opening tag was in the prompt": ("hm hm\n</think>\n\nYes.", "Yes.", "hm hm\n"),
    "another tag": ("<b>Yes</b>", "<b>Yes</b>", ""),
    "a tag in the text": ("Yes <think> is a tag.", "Yes <think> is a tag.", ""),
    "Harmony": (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>",
        "Yes.",
        "hm",
    ),
}


@pytest.mark.parametrize(("written", "text", "thought"), THOUGHTS.values(), ids=THOUGHTS)
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_thoughts_in_the_text_are_reasoning(written: str, text: str, thought: str, size: int) -> None:
    separated = ThoughtFilter()
    pieces = [separated.feed(written[at : at + size]) for at in range(0, len(written), size)] + [separated.end()]
    shown, thoughts = "", ""
    for piece in pieces:
        if piece.void:  # what was shown was reasoning
            shown, thoughts = "", thoughts + shown
        shown, thoughts = shown + piece.text, thoughts + piece.thought
    assert (shown.lstrip(), thoughts) == (text, thought)


def test_a_call_in_harmonys_commentary() -> None:
    separated = ThoughtFilter()
    written = '<|channel|>commentary to=functions.readFiles <|constrain|>json<|message|>{"files": ["a"]}<|call|>'
    for sign in written:
        assert separated.feed(sign) == ("", "", False)
    assert separated.calls == [("readFiles", '{"files": ["a"]}')]


# -- whole turns -----------------------------------------------------------------------------------------------

TURNS: dict[str, tuple[bytes, int]] = {
    "calls without an index": (stream(call("listFiles", "{}", "a", None), call("listFiles", "{}", "b", None)), 2),
    "calls with the same index": (stream(call("listFiles", "{}", "a", 0), call("listFiles", "{}", "b", 0)), 2),
    "the same index and no ids": (stream(call("listFiles", "{}", None, 0), call("listFiles", "{}", None, 0)), 2),
    "the same id twice": (stream(call("listFiles", "{}", "a", 0), call("listFiles", "{}", "a", 1)), 2),
    "no id": (stream(call("listFiles", "{}", None, 0)), 1),
    "an id with every piece": (
        stream(
            call("listFiles", "{", "a", 0), {"tool_calls": [{"index": 0, "id": "b", "function": {"arguments": "}"}}]}
        ),
        1,
    ),
    "arguments as an object": (stream(call("listFiles", {"glob": "*"})), 1),
    "no arguments": (stream(call("listFiles", None)), 1),
    "a prefix": (stream(call("functions.listFiles", "{}")), 1),
    "finish_reason stop beside calls": (stream(call("listFiles", "{}"), finish="stop"), 1),
    "keep-alives and comments": (
        b": OPENROUTER PROCESSING\n\n:\n\nevent: ping\ndata: \n\n" + stream(call("listFiles", "{}")),
        1,
    ),
    "lines that end with CRLF": (stream(call("listFiles", "{}")).replace(b"\n", b"\r\n"), 1),
    "no [DONE]": (stream(call("listFiles", "{}"), done=b""), 1),
    "null choices with the usage": (
        stream(call("listFiles", "{}"), done=frames({"choices": None, "usage": {"prompt_tokens": "?"}}))
        + b"data: [DONE]\n\n",
        1,
    ),
    "Harmony": (
        stream({"content": "<|channel|>commentary to=functions.listFiles <|constrain|>json<|message|>{}<|call|>"}),
        1,
    ),
    "written in prose": (
        stream({"content": "I look. "}, {"content": '<tool_call>{"name": "listFiles"}</tool_call>'}),
        1,
    ),
    "one bad call beside a good one": (stream(call("readFiles", "{", "a", 0), call("listFiles", "{}", "b", 1)), 2),
    "only a bad call": (stream(call("readFiles", '{"files": [')), 1),
    "a call without a name": (stream(call("", "{}"), finish="tool_calls"), 1),
    "an unknown tool": (stream(call("launch", "{}")), 1),
}


@pytest.mark.parametrize(("answer", "count"), TURNS.values(), ids=TURNS)
async def test_a_strange_answer_is_understood_and_answered(desk: Desk, answer: bytes, count: int) -> None:
    async with vendor(desk, answer, stream({"content": "One."})) as endpoint:
        turn = await desk.run("Look.")
    assert (turn.outcome, len(calls(turn))) == ("completed", count), turn.error
    assert texts(turn).removeprefix("I look.") == "One."
    sent = endpoint.bodies[1]["messages"]
    asked = [each["id"] for message in sent for each in message.get("tool_calls") or []]
    assert asked == [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert len(set(asked)) == len(asked)


async def test_the_model_sees_its_bad_call_three_times(desk: Desk) -> None:
    bad = stream(call("readFiles", '{"files": ['))
    async with vendor(desk, *[bad] * 9) as endpoint:
        turn = await desk.run("Look.")
    assert turn.outcome == "failed"
    assert turn.error is not None
    assert "not JSON" in turn.error.message
    assert len(endpoint.bodies) == 4


@pytest.mark.parametrize("mode", ["agent", "chat"])
async def test_an_empty_answer_is_asked_for_again(desk: Desk, mode: str) -> None:
    empty = stream({"content": ""})
    async with vendor(desk, empty, stream({"reasoning_content": "Hm."}), stream({"content": "Here."})) as endpoint:
        turn = await desk.run("Look.", meta={"mode": mode})
    assert (turn.outcome, texts(turn)) == ("completed", "Here."), turn.error
    assert "Your answer was empty" in str(endpoint.bodies[1]["messages"][-1]["content"])
    assert all(message["content"] for message in endpoint.bodies[2]["messages"])


async def test_a_content_filter_is_reported(desk: Desk) -> None:
    async with vendor(desk, stream({"content": "I think"}, finish="content_filter")):
        turn = await desk.run("Look.")
    assert (turn.outcome, texts(turn)) == ("completed", "I think")
    assert "content filter" in texts(turn, "notice")


async def test_thoughts_that_were_taken_for_text_are_taken_back(desk: Desk) -> None:
    """DeepSeek's and Qwen's templates put the opening tag into the prompt."""
    async with vendor(desk, stream({"content": "Let me "}, {"content": "see.\n</think>\n\n"}, {"content": "Yes."})):
        turn = await desk.run("Look.")
    assert (texts(turn), texts(turn, "reasoning")) == ("Yes.", "Let me see.\n")


BROKEN: dict[str, Any] = {
    "200 with an error": {"error": {"message": "No credits", "code": 402}},
    "cut in the middle of JSON": b'data: {"choices": [{"delta": {"content": "Hel',
    "an error inside the stream": frames(
        {"choices": [{"delta": {"content": "Hel"}}]}, {"error": {"message": "Overloaded", "code": 529}}
    ),
    "nothing": b"",
    "only keep-alives": b": ping\n\n" * 3,
    "HTML": b"<html>502 Bad Gateway</html>",
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
async def test_a_broken_answer_is_asked_for_again(desk: Desk, answer: Any) -> None:
    async with vendor(desk, answer, stream({"content": "Yes."}), settings="[agents.loop]\nretries = 1\n") as endpoint:
        turn = await desk.run("Look.")
    assert (turn.outcome, texts(turn), len(endpoint.bodies)) == ("completed", "Yes.", 2), turn.error


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"files": ["a"]}, {"files": ["a"]}),
        ({"files": "a"}, {"files": ["a"]}),
        ({"path": "a"}, {"files": ["a"]}),
        ({"file": "a"}, {"files": ["a"]}),
        ({"file_path": "a", "range": [1, 2]}, {"files": ["a"], "range": [1, 2]}),
        ({"path": ["a", "b"]}, {"files": ["a", "b"]}),
    ],
)
def test_the_files_to_read_under_other_names(given: dict[str, Any], meant: dict[str, Any]) -> None:
    schema = next(tool.schema for tool in OWN if tool.name == "readFiles")
    assert fitted(given, schema, reads=True) == meant
