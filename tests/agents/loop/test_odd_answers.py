"""Answers of models at the edges of a format: calls inside reasoning, answers that were cut, ids of other vendors,
events in pieces."""

import gzip
import json
import re
from typing import Any

import msgspec
import pytest

from portico.agents.loop.protocol import ModelAction, ModelStep
from portico.agents.loop.reply import ModelError, Said
from portico.agents.loop.transcript import Exchange
from portico.agents.loop.wires.frames import JOINED_MAX, JoinedData
from portico.agents.loop.wires.registry import CODECS
from portico.kernel.events import Json
from portico.testing.model import ModelServer
from tests.agents.loop.conftest import Desk, calls, texts
from tests.agents.loop.vendor import SETTINGS, call, frames, stream, vendor

LIST = '{"name": "listFiles", "arguments": {"glob": "*"}}'
DONE = stream({"content": "Done."})

# -- reasoning -------------------------------------------------------------------------------------------------

HIDDEN: dict[str, Any] = {
    "Hermes in an unclosed think": stream({"content": f"<think>I look.\n<tool_call>\n{LIST}\n</tool_call>"}),
    "a function in an unclosed think": stream(
        {"content": "<think>Hm.<function=listFiles><parameter=glob>*</parameter></function>"}
    ),
    "Hermes in reasoning_content": stream({"reasoning_content": f"I look.<tool_call>{LIST}</tool_call>"}),
    "MiniMax in reasoning": stream(
        {"reasoning": '<minimax:tool_call><invoke name="listFiles"><parameter name="glob">*</parameter></invoke>'},
        {"reasoning": "</minimax:tool_call>"},
    ),
}


@pytest.mark.parametrize("answer", HIDDEN.values(), ids=HIDDEN)
async def test_a_call_in_reasoning_without_an_end_runs(desk: Desk, answer: bytes) -> None:
    async with vendor(desk, answer, DONE) as endpoint:
        turn = await desk.run("Look.")
    assert ([each.tool for each in calls(turn)], turn.outcome) == (["listFiles"], "completed"), turn.error
    assert (texts(turn), len(endpoint.bodies)) == ("Done.", 2)


PONDERED: dict[str, bytes] = {
    "beside an answer": stream({"reasoning_content": f"<tool_call>{LIST}</tool_call>"}, {"content": "Done."}),
    "in a closed think": stream({"content": f"<think>Maybe <tool_call>{LIST}</tool_call></think>Done."}),
}


@pytest.mark.parametrize("answer", PONDERED.values(), ids=PONDERED)
async def test_a_call_that_the_model_only_thought_of_does_not_run(desk: Desk, answer: bytes) -> None:
    async with vendor(desk, answer):
        turn = await desk.run("Look.")
    assert (calls(turn), texts(turn), turn.outcome) == ([], "Done.", "completed")


@pytest.mark.parametrize("delta", [{"reasoning_content": "It is 4."}, {"content": "<think>It is 4."}])
async def test_a_model_with_nothing_but_reasoning_ends_with_it(desk: Desk, delta: Json) -> None:
    async with vendor(desk, *[stream(delta)] * 6) as endpoint:
        turn = await desk.run("What is 2 + 2?")
    assert (turn.outcome, texts(turn), len(endpoint.bodies)) == ("completed", "It is 4.", 4), turn.error
    assert "gave only its reasoning" in texts(turn, "notice")


# -- the limit of tokens ---------------------------------------------------------------------------------------

HALF: dict[str, bytes] = {
    "arguments": stream(call("createFile", '{"path": "a.txt", "content": "half'), finish="length"),
    "no arguments yet": stream(call("createFile", ""), finish="length"),
    "single quotes": stream(call("createFile", "{'path': 'a.txt', 'content': 'half"), finish="length"),
    "Hermes": stream(
        {"content": '<tool_call>{"name": "createFile", "arguments": {"path": "a.txt", "content": "half'},
        finish="length",
    ),
    "a parameter": stream(
        {"content": "<function=createFile><parameter=path>a.txt</parameter><parameter=content>half"}, finish="length"
    ),
    "a parameter that may be missing": stream(
        {"content": "<function=runCommand><parameter=command>touch a.txt</parameter><parameter=cwd>su"}, finish="length"
    ),
    "Mistral": stream({"content": '[TOOL_CALLS]createFile[ARGS]{"path": "a.txt"'}, finish="length"),
}


@pytest.mark.parametrize("answer", HALF.values(), ids=HALF)
async def test_a_call_that_was_cut_does_not_run_and_is_asked_for_again(desk: Desk, answer: bytes) -> None:
    whole = stream(call("createFile", '{"path": "b.txt", "content": "whole"}'), finish="tool_calls")
    async with vendor(
        desk, answer, whole, DONE, settings=SETTINGS + '[agent]\nrequire_approval = "none"\n'
    ) as endpoint:
        turn = await desk.run("Write.")
    assert turn.outcome == "completed", turn.error
    assert "cut at the limit of tokens" in json.dumps(endpoint.bodies[1]["messages"])
    assert (desk.project / "b.txt").read_text() == "whole"
    assert not (desk.project / "a.txt").exists()
    assert texts(turn).endswith("Done.")


async def test_the_whole_calls_of_a_cut_answer_run(desk: Desk) -> None:
    both = stream(call("listFiles", "{}", "a", 0), call("createFile", '{"path": "a', "b", 1), finish="length")
    async with vendor(desk, both, DONE):
        turn = await desk.run("Write.")
    assert [(each.tool, each.ok) for each in calls(turn)] == [("listFiles", True), ("createFile", False)]


# -- ids -------------------------------------------------------------------------------------------------------

IDS = {
    "long": ["x" * 65, "y" * 200],
    "signs": ["functions.listFiles:0", "a|b/c d"],
    "equal": ["call_0", "call_0"],
    "none": [None, None],
    "unicode": ["é", "漢"],
}
STRICT = re.compile(r"[a-zA-Z0-9]{9}")
"""Mistral's rule; it fulfils those of all others."""


@pytest.mark.parametrize("idents", IDS.values(), ids=IDS)
@pytest.mark.parametrize("wire", CODECS)
def test_ids_of_another_model_are_valid_everywhere_and_occur_once(wire: Any, idents: list[str | None]) -> None:
    said = Said("chat", "other", {"role": "assistant"})
    entries = [
        Exchange(ModelStep([ModelAction("listFiles", {}, each) for each in idents]), [("listFiles", "x")] * 2, said)
        for _ in range(2)
    ]
    sent = msgspec.json.encode(CODECS[wire].render("S", entries, native=True, model="m")).decode()
    found = re.findall(r'"(?:id|call_id)":"([^"]*)"', sent)
    results = re.findall(r'"(?:tool_call_id|tool_use_id)":"([^"]*)"', sent)
    if wire == "responses":
        found, results = found[0:2] + found[4:6], found[2:4] + found[6:8]
    assert all(STRICT.fullmatch(each) for each in found), found
    assert (found, len(set(found))) == (results, 4)


async def test_an_id_that_a_model_uses_in_every_step(desk: Desk) -> None:
    (desk.project / "a.txt").write_text("one\n")
    step = stream(call("readFiles", '{"files": ["a.txt"]}', "call_0"), finish="tool_calls")
    other = stream(call("listFiles", "{}", "call_0"), finish="tool_calls")
    async with vendor(desk, step, other, DONE) as endpoint:
        turn = await desk.run("Look.")
        await desk.run("Again.")
    assert [(each.tool, each.ok) for each in calls(turn)] == [("readFiles", True), ("listFiles", True)]
    for body in endpoint.bodies[2:]:
        results = [each["content"] for each in body["messages"] if each["role"] == "tool"]
        assert ["one" in results[0], "a.txt" in results[1]] == [True, True]


# -- bytes -----------------------------------------------------------------------------------------------------

ODD: dict[str, tuple[bytes, str]] = {
    "empty choices first": (frames({"choices": []}, {"choices": [], "usage": None}) + DONE, "Done."),
    "only the usage at the end": (
        stream({"content": "Done."}, done=frames({"choices": [], "usage": {"prompt_tokens": 3}})),
        "Done.",
    ),
    "no space after data": (DONE.replace(b"data: ", b"data:"), "Done."),
    "a byte order mark": (b"\xef\xbb\xbf" + DONE, "Done."),
    "half a pair": (DONE.replace(b"Done.", b"Done\\ud83d."), "Done\ufffd."),
    "a pair in two events": (stream({"content": "\ud83d"}, {"content": "\ude00 Done."}), "\ufffd\ufffd Done."),
    "names and ids of events": (b"retry: 3\nid: 7\nevent: message\n" + DONE, "Done."),
}


@pytest.mark.parametrize(("answer", "text"), ODD.values(), ids=ODD)
async def test_odd_events(desk: Desk, answer: bytes, text: str) -> None:
    async with vendor(desk, answer):
        turn = await desk.run("Look.")
    assert (turn.outcome, texts(turn)) == ("completed", text), turn.error


@pytest.mark.parametrize("size", [1, 2, 7, 100])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
async def test_an_answer_in_pieces_of_any_size(desk: Desk, size: int, packed: bool) -> None:
    """A piece may end within a character, and the body may be compressed."""
    text = stream({"content": "Grüße 漢字 😀"})
    data = gzip.compress(text) if packed else text

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream"), *([(b"content-encoding", b"gzip")] if packed else [])]
        if scope["method"] == "GET":
            body = b'{"data": [{"id": "m"}]}'
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": body})
            return
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for at in range(0, len(data), size):
            await send({"type": "http.response.body", "body": data[at : at + size], "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    server = ModelServer()
    server.app = app
    async with server:
        desk.settings(SETTINGS)
        desk.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k", "OLLAMA_HOST": "127.0.0.1:1"}
        await desk.open()
        desk.session = await desk.host.start(by="test", agent="loop", cwd=str(desk.project))
        turn = await desk.run("Look.")
        assert (turn.outcome, texts(turn)) == ("completed", "Grüße 漢字 😀"), turn.error
        await desk.opener.close()


FAILS: dict[str, Any] = {
    "an error": {"error": {"message": "No credits left", "code": 402}},
    "an error as a text": {"error": "No credits left"},
    "a message": {"message": "No credits left", "code": 402},
    "a detail": {"detail": "No credits left"},
}


@pytest.mark.parametrize("answer", FAILS.values(), ids=FAILS)
async def test_a_200_with_an_error_is_reported_in_its_words(desk: Desk, answer: Any) -> None:
    async with vendor(desk, answer):
        turn = await desk.run("Look.")
    assert turn.error is not None
    assert "No credits left" in turn.error.message


# -- events over several lines ---------------------------------------------------------------------------------

EVENT: Json = {"a": {"b": [1, 'x} ] \\" { \n'], "c": "é"}, "d": "\\"}


def split(size: int) -> list[bytes]:
    """The event in lines; inside a string a line break is an escape, so that a line only ends between two tokens."""
    text = json.dumps(EVENT, indent=1).encode()
    return text.split(b"\n") if size == 0 else [text.replace(b"\n", b" ")[at : at + 10**6] for at in (0,)]


@pytest.mark.parametrize("size", [0, 1])
def test_an_event_is_whole_when_its_brackets_are_closed(size: int) -> None:
    pieces = JoinedData()
    *before, last = split(size)
    for _ in range(2):
        assert [pieces.read(each, msgspec.json.decode, "x") for each in before] == [None] * len(before)
        assert pieces.read(last, msgspec.json.decode, "x") == EVENT
        pieces.end("x")


@pytest.mark.parametrize(
    "lines",
    [[b"{]"], [b'{"a": 1}}'], [b'{"a": nope}'], [b"[1,"], [b"hello"], [b'{"a":', b"nope}"], [b'{"a": 1} {"b":']],
)
def test_what_is_no_json_is_an_error_at_its_last_line(lines: list[bytes]) -> None:
    pieces = JoinedData()
    *before, last = lines
    for each in before:
        assert pieces.read(each, msgspec.json.decode, "x") is None

    def read_last() -> None:
        pieces.read(last, msgspec.json.decode, "x")
        pieces.end("x")

    with pytest.raises(ModelError, match="not JSON"):
        read_last()


def test_a_decoder_with_other_words_for_an_unfinished_value() -> None:
    """The beginning of an event was recognised by a word in the error of one version of the decoder."""

    def decode(data: bytes) -> Any:
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError:
            raise msgspec.DecodeError("other words") from None

    pieces = JoinedData()
    assert pieces.read(b'{"a":', decode, "x") is None
    assert pieces.read(b"1}", decode, "x") == {"a": 1}


def test_an_event_has_a_bound() -> None:
    pieces = JoinedData()
    assert pieces.read(b'{"a": "', msgspec.json.decode, "x") is None
    with pytest.raises(ModelError, match="not JSON"):
        pieces.read(b"x" * JOINED_MAX, msgspec.json.decode, "x")
