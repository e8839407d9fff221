"""Pure parts of the ACP agents: blocks as text, what can be chosen, and which of it asks less."""

import base64
from pathlib import Path
from typing import Any

import pytest

from portico.agents.acp.autonomy import asking, classify, kind_of
from portico.agents.acp.choice import RESERVED, choices
from portico.agents.acp.own_tools import OwnTools, input_of, tool_names
from portico.agents.acp.program import PRESETS, Program
from portico.agents.acp.prompt import Texts, blocks
from portico.agents.attachment import text_of
from portico.kernel.autonomy import Autonomy
from portico.kernel.events import Message
from portico.workspace.files import Files
from portico.workspace.jail import Jail

BLOCKS = [
    ({"type": "text", "text": "hi"}, "hi"),
    ({"type": "text"}, ""),
    ({"type": "resource_link", "name": "a", "uri": "file:///a"}, "[a](file:///a)"),
    ({"type": "resource_link", "uri": "file:///a"}, "[link](file:///a)"),
    ({"type": "resource", "resource": {"uri": "u", "text": "inside"}}, "inside"),
    ({"type": "resource", "resource": {"uri": "u", "blob": "xx"}}, "(u)"),
    ({"type": "resource", "resource": "odd"}, "(resource)"),
    ({"type": "image", "mimeType": "image/png"}, "(image, image/png)"),
    ({"type": "audio"}, "(audio, unknown type)"),
    ({"type": "hologram"}, ""),
    ({}, ""),
    (None, ""),
    ("text", ""),
]


@pytest.mark.parametrize(("block", "text"), BLOCKS)
def test_a_block_in_words(block: Any, text: str) -> None:
    assert text_of(block) == text


PICTURE = base64.b64encode(b"png").decode()
SENT: dict[str, tuple[dict[str, Any], Texts, str]] = {
    # what is attached, how texts reach the model, the kind of block that is sent
    "a file, embedded": ({"uri": "FOLDER/a.txt"}, "embedded", "resource"),
    "a file, in words": ({"uri": "FOLDER/a.txt"}, "words", "text"),
    "a file, by its address": ({"uri": "FOLDER/a.txt"}, "links", "resource_link"),
    "a folder": ({"uri": "FOLDER"}, "embedded", "resource_link"),
    "a file that is not there": ({"uri": "FOLDER/none"}, "embedded", "resource_link"),
    "a picture": ({"data": PICTURE, "contentType": "image/png", "label": "p"}, "embedded", "image"),
    "a sound": ({"data": PICTURE, "contentType": "audio/wav", "label": "s"}, "embedded", "audio"),
    "other bytes": ({"data": PICTURE, "contentType": "application/zip", "label": "z"}, "embedded", "resource"),
    "other bytes, where only addresses go": (
        {"data": PICTURE, "contentType": "application/zip", "label": "z"},
        "links",
        "text",
    ),
}


@pytest.mark.parametrize(("attachment", "texts", "kind"), SENT.values(), ids=SENT)
async def test_an_attachment_goes_the_best_way_that_the_agent_takes(
    tmp_path: Path, attachment: dict[str, Any], texts: Texts, kind: str
) -> None:
    (tmp_path / "a.txt").write_text("inside")
    uri = attachment.get("uri", "").replace("FOLDER", tmp_path.as_uri())
    said = Message("look", attachments=[{**attachment, "uri": uri} if uri else attachment])
    first, sent = await blocks(said, Files(Jail([tmp_path])), images=True, audio=True, texts=texts)
    assert first == {"type": "text", "text": "look"}
    assert sent["type"] == kind


async def test_an_agent_that_takes_no_pictures_gets_their_bytes(tmp_path: Path) -> None:
    said = Message("", attachments=[{"data": PICTURE, "contentType": "image/png", "label": "p"}])
    [sent] = await blocks(said, Files(Jail([tmp_path])), images=False, audio=False, texts="embedded")
    assert sent == {"type": "resource", "resource": {"uri": "attachment:p", "mimeType": "image/png", "blob": PICTURE}}


# -- what can be chosen ----------------------------------------------------------------------------------------


def option(ident: str, *values: str, category: str = "", current: str = "") -> dict[str, Any]:
    found = {"id": ident, "currentValue": current, "options": [{"value": each} for each in values]}
    return {**found, "category": category} if category else found


MODES = {
    "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "yolo", "name": "Y"}]}
}
MODELS = {"models": {"currentModelId": "m", "availableModels": [{"modelId": "m", "name": "M"}]}}
OFFERED: dict[str, tuple[dict[str, Any], list[tuple[str, str, list[str], str]]]] = {
    # the answer to a new session; the category, the current value, the values, the method of each choice
    "nothing": ({}, []),
    "an option": (
        {"configOptions": [option("depth", "1", "2", current="1")]},
        [("depth", "1", ["1", "2"], "session/set_config_option")],
    ),
    "a model among options": (
        {"configOptions": [option("x", "a", category="model", current="a")]},
        [("model", "a", ["a"], "session/set_config_option")],
    ),
    "another category": (
        {"configOptions": [option("x", "a", category="thinking", current="a")]},
        [("x", "a", ["a"], "session/set_config_option")],
    ),
    "groups of values": (
        {
            "configOptions": [
                {"id": "x", "currentValue": "a", "options": [{"options": [{"value": "a"}, {"value": "b"}]}]}
            ]
        },
        [("x", "a", ["a", "b"], "session/set_config_option")],
    ),
    "an option without values": ({"configOptions": [option("x")]}, []),
    "the same option twice": (
        {"configOptions": [option("x", "a", current="a"), option("x", "b", current="b")]},
        [("x", "a", ["a"], "session/set_config_option")],
    ),
    "modes": (MODES, [("mode", "ask", ["ask", "yolo"], "session/set_mode")]),
    "models": (MODELS, [("model", "m", ["m"], "session/set_model")]),
    "a mode as an option and as a field": (
        {"configOptions": [option("y", "a", category="mode", current="a")], **MODES},
        [("mode", "a", ["a"], "session/set_config_option")],
    ),
    "both in fields": (
        {**MODES, **MODELS},
        [("model", "m", ["m"], "session/set_model"), ("mode", "ask", ["ask", "yolo"], "session/set_mode")],
    ),
    "nonsense": ({"configOptions": "no", "modes": 7, "models": [1]}, []),
    "nonsense in lists": ({"configOptions": [7, None, {"id": "x", "options": "no"}]}, []),
}


@pytest.mark.parametrize(("answer", "expected"), OFFERED.values(), ids=OFFERED)
def test_what_can_be_chosen(answer: dict[str, Any], expected: list[tuple[str, str, list[str], str]]) -> None:
    assert [(each.category, each.current, list(each.values), each.method) for each in choices(answer)] == expected


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_name_that_means_something_to_the_host_is_no_agents(name: str) -> None:
    assert list(choices({"configOptions": [option(name, "allow", current="allow")]})) == []


@pytest.mark.parametrize(
    ("answer", "params"),
    [
        ({"configOptions": [option("x", "a")]}, {"sessionId": "s", "configId": "x", "value": "v"}),
        (MODES, {"sessionId": "s", "modeId": "v"}),
        (MODELS, {"sessionId": "s", "modelId": "v"}),
    ],
)
def test_how_a_choice_is_told(answer: dict[str, Any], params: dict[str, str]) -> None:
    [choice] = choices(answer)
    assert choice.params("s", "v") == params


# -- which of it asks less -------------------------------------------------------------------------------------

A, L, N, U = Autonomy.ASKS, Autonomy.ASKS_LESS, Autonomy.ASKS_NOBODY, Autonomy.UNKNOWN


def test_the_settings_say_what_asks() -> None:
    program = Program(command=["mine"], asks={"mode": ["calm"], "color": ["*"], "/go": ["*"], "/stop": ["x"]})
    said = [("mode", "calm"), ("mode", "wild"), ("color", "any"), ("/go", None), ("/stop", None), ("model", "m")]
    assert [classify(program, *each) for each in said] == [A, U, A, A, U, A]
    assert classify(Program(command=["mine"], mode="wild"), "mode", None) is U


@pytest.mark.parametrize(
    ("agent", "current", "values", "instead"),
    [
        ("claude", "bypassPermissions", ["default", "plan"], "default"),
        ("claude", "acceptEdits", ["plan"], "plan"),
        ("claude", "acceptEdits", ["other"], None),
        ("claude", "plan", ["default"], None),
        ("claude", "unheard-of", ["default"], None),
        ("gemini", "yolo", ["default"], "default"),
        ("goose", "auto", ["approve", "chat"], "approve"),
    ],
)
def test_an_agent_that_asks_less_is_switched_to_what_asks(
    agent: str, current: str, values: list[str], instead: str | None
) -> None:
    assert asking(PRESETS[agent], "mode", current, values) == instead


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (["claude-agent-acp"], "claude"),
        (["/opt/bin/codex-acp"], "codex"),
        (["npx", "-y", "gemini-cli"], "gemini"),
        (["env", "node", "--max-old-space-size=4096", "qwen.js"], "qwen"),
        (["mine", "claude"], None),
        (["node", "server.js", "goose"], None),
        (["npx"], None),
        ([], None),
    ],
)
def test_the_program_decides_which_agent_it_is(command: list[str], kind: str | None) -> None:
    assert kind_of(Program(command=command)) == kind


# -- the session's own tools -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("update", "name"),
    [
        ({"title": "job_true"}, "job_true"),
        ({"title": "portico-job_true"}, "job_true"),
        ({"title": "mcp__portico__job_true"}, "job_true"),
        ({"title": "mcp.portico.job_true"}, "job_true"),
        ({"title": "portico/job_true"}, "job_true"),
        ({"title": "Tool: portico/job_true"}, "job_true"),
        ({"title": "functions.mcp__portico__job_true"}, "job_true"),
        ({"title": "job_true (portico MCP Server)"}, "job_true"),
        ({"title": "job_true()"}, "job_true"),
        ({"title": "x", "_meta": {"claude": {"toolName": "mcp__portico__job_true"}}}, "job_true"),
        ({"title": "x", "rawInput": {"server": "portico", "tool": "job_true"}}, "job_true"),
        ({"title": "other-job_true"}, None),
        ({"title": "job_true2"}, None),
        ({"title": "run job_true"}, None),
        ({"title": "x", "rawInput": {"tool": "job_true"}}, None),
        ({"title": "x", "_meta": {"toolName": 7}}, None),
        ({}, None),
    ],
)
def test_a_tool_of_ours_is_known_under_every_name_that_agents_give_it(update: dict[str, Any], name: str | None) -> None:
    assert OwnTools(["job_true"], "portico").name({"toolCallId": "1", **update}) == name


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({"rawInput": {"a": 1}}, {"a": 1}),
        ({"rawInput": {"server": "s", "tool": "t", "arguments": {"a": 1}}}, {"a": 1}),
        ({"rawInput": {"server": "s", "tool": "t"}}, {"server": "s", "tool": "t"}),
        ({"content": [{"content": {"type": "text", "text": '{"a": 1}'}}]}, {"a": 1}),
        ({"content": [{"content": {"type": "text", "text": "no"}}, {"content": {"type": "text", "text": "7"}}]}, 7),
        ({"content": [7, {"content": None}]}, None),
        ({"content": "no"}, None),
        ({}, None),
    ],
)
def test_the_input_of_a_call_stands_in_one_of_three_places(update: dict[str, Any], expected: Any) -> None:
    assert input_of(update) == expected


def test_names_of_tools_are_found_at_any_depth() -> None:
    assert list(tool_names({"a": {"toolName": "x", "b": {"toolName": "y"}}, "toolName": ["no"]})) == ["x", "y"]
    assert list(tool_names("toolName")) == []


@pytest.mark.parametrize(
    ("reported", "asked", "expected"),
    [
        ({}, {}, True),
        (None, None, True),
        ({}, {"argument": "x"}, False),
        ({"argument": "x"}, {}, False),
        ({"argument": "x"}, None, False),
    ],
)
def test_a_permission_for_our_tool_without_its_input_shows_nothing(
    reported: object, asked: object, expected: bool
) -> None:
    """opencode asks before it sends the input: the card had none, and the call was shown twice."""
    own = OwnTools(["job_done"])
    update = {"toolCallId": "c", "title": "portico_job_done", "status": "pending"}
    assert own.hides({**update, "rawInput": reported})
    assert own.is_without_input({**update, "rawInput": asked}) is expected
    assert not own.is_without_input({**update, "toolCallId": "d", "title": "bash", "rawInput": {}})
