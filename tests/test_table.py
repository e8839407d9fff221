"""Every command of the table can be reached: by a method of the client, a tool, and the command line."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from msgspec.structs import fields, replace
from tools import client_methods

from portico import command_shapes
from portico.cli import do as verb
from portico.client import Client
from portico.client.client import shaped
from portico.client.methods import Methods
from portico.doors.mcp.tools import FIXED, WITHOUT, HostTools
from portico.kernel import commands as c
from portico.kernel.commands import Caller
from portico.kernel.errors import BadRequest, NotFound
from tests.doors import sharing
from tests.doors.standing import TOOLS, Standing

anyio_backend, shared = sharing.anyio_backend, sharing.shared

SAMPLES: dict[Any, str] = {str: "x", bool: "true", int: "7", float: "1.5"}


def test_the_methods_are_as_the_table_makes_them() -> None:
    """`python -m tools.client_methods` and `ruff format` write them anew."""
    ruff = Path(sys.executable).with_name("ruff")
    formatted = subprocess.run(
        [ruff, "format", "--stdin-filename", client_methods.TARGET, "-"],
        input=client_methods.source(),
        capture_output=True,
        text=True,
        check=True,
        cwd=client_methods.TARGET.parents[3],
    ).stdout
    assert formatted == client_methods.TARGET.read_text()


@pytest.mark.parametrize("name", list(c.COMMANDS))
def test_the_client_has_a_method_that_takes_what_the_command_takes(name: str) -> None:
    kind = c.COMMANDS[name]
    method = getattr(Client, command_shapes.method_name(kind))
    takes = {each.name for each in command_shapes.public_fields(kind)}
    assert {*inspect.signature(method).parameters} == {"self", "request", *takes}
    assert method.__doc__ == c.sentence(kind)
    assert get_type_hints(getattr(Methods, command_shapes.method_name(kind)))["return"] is not None


@pytest.mark.parametrize("name", list(c.COMMANDS))
def test_a_tool_takes_what_the_command_takes(shared: Standing, name: str) -> None:
    kind = c.COMMANDS[name]
    offered = {
        spec.name: spec
        for spec in HostTools(shared.server.app, replace(Caller.inside("test"), tools=frozenset(TOOLS))).specs()
    }
    if name in WITHOUT or kind.as_tool is not True:
        assert WITHOUT.get(name) or kind.as_tool
        assert command_shapes.method_name(kind) not in offered
        return
    schema = offered[command_shapes.method_name(kind)].schema
    takes = {each.name for each in command_shapes.public_fields(kind)} - FIXED.get(kind, {}).keys()
    assert takes <= schema["properties"].keys()
    assert not kind.private & schema["properties"].keys()
    assert "$ref" not in str(schema)


def test_what_is_no_tool_is_a_command() -> None:
    assert WITHOUT.keys() <= c.COMMANDS.keys()


@pytest.mark.parametrize("name", list(c.COMMANDS))
def test_the_command_line_reads_every_command(name: str) -> None:
    kind = c.COMMANDS[name]
    said = [f"{each.name}={_sample(each.type)}" for each in fields(kind) if each.required]
    command = verb.parse(name, said)
    assert isinstance(command, kind)
    if said:
        with pytest.raises(BadRequest, match=f"{name} takes .*is missing") as raised:
            verb.parse(name, said[1:])
        assert raised.value.field == said[0].partition("=")[0]


def _sample(kind: Any) -> str:
    return SAMPLES.get(kind) or ("[]" if "list" in str(kind) else '{"text": "x"}')


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("session.rename", ["session=s", "title=t", "colour=red"], "'colour=red' is none of them"),
        ("session.rename", ["session"], "'session' is none of them"),
        ("message.send", ["session=s", "text=t", "origin=me"], "'origin=me' is none of them"),
        ("message.send", ["session=s", "text=t", "busy=later"], "busy='later'"),
        ("terminal.resize", ["terminal=t", "cols=wide", "rows=1"], "cols='wide'"),
    ],
)
def test_a_mistake_on_the_command_line_is_named(name: str, values: list[str], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        verb.parse(name, values)


def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(NotFound, match=r"Did you mean 'session\.rename'"):
        verb.parse("sesion.rename", [])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["text=[1] is the first"], {"text": "[1] is the first"}),
        (["text=a=b", "model=null"], {"text": "a=b", "model": "null"}),
        (["text=x", 'attachments=[{"a": 1}]', "busy=steer"], {"attachments": [{"a": 1}], "busy": "steer"}),
    ],
)
def test_values_are_read_as_their_fields_want_them(values: list[str], said: dict[str, Any]) -> None:
    command = verb.parse("message.send", ["session=s", *values])
    assert {name: getattr(command, name) for name in said} == said


@pytest.mark.parametrize(
    ("answer", "shape"),
    [
        (b'{"turn":"t1"}', c.TurnBegun("t1")),
        (b'{"queued":true,"pending":"p1","position":1}', c.Queued(True, "p1", 1)),
        (b'{"steered":true,"queued":false}', c.Steered(True, False)),
    ],
)
def test_an_answer_has_the_shape_whose_fields_it_has(answer: bytes, shape: object) -> None:
    assert shaped(c.SendMessage, answer) == shape
    assert shaped(c.DeleteSession, b"") == c.Deleted("")


async def test_a_command_of_the_client_is_done_once(shared: Standing) -> None:
    async with Client(shared.url, shared.home.token()) as client:
        first = await client.start_session(agent="scripted", title="a", request="r1")
        assert (await client.start_session(agent="scripted", title="a", request="r1")).id == first.id
        assert (await client.rename_session(first.id, "b")).title == "b"
        sent = await client.send_message(first.id, "[[say:hello]]")
        assert isinstance(sent, c.TurnBegun)
        await (await shared.server.host.get(first.id)).wait(sent.turn)
        assert await client.reorder_queue(first.id, []) == {"queue": [], "held": False}
        assert (await client.delete_session(first.id)).kept == ""
