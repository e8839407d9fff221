"""Naming tools across agents."""

from typing import Any

import jsonschema
import pytest

from portico.testing.model import ScriptedCall
from portico.testing.model.request import RequestTool
from portico.testing.model.tools import ToolChoice, choose, example

TEXT = {"type": "string"}


def tool(name: str, *required: str, **properties: Any) -> RequestTool:
    return RequestTool(name=name, parameters={"type": "object", "properties": properties, "required": list(required)})


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (tool("bash", "command", "description", command=TEXT, description=TEXT),
         {"command": "ls", "description": "scripted"}),
        (tool("Bash", "command", command=TEXT), {"command": "ls"}),
        (tool("exec_command", "cmd", cmd=TEXT), {"cmd": "ls"}),
        (tool("run_shell_command", "command", "is_background", command=TEXT, is_background={"type": "boolean"}),
         {"command": "ls", "is_background": False}),
        (tool("shell", "command", command={"type": "array"}), {"command": ["bash", "-lc", "ls"]}),
        (tool("developer__shell", "command", command=TEXT), {"command": "ls"}),
    ],
    ids=lambda value: value.name if isinstance(value, RequestTool) else "",
)  # fmt: skip
def test_a_command_reaches_every_agents_shell(declared: RequestTool, expected: dict[str, Any]) -> None:
    call = ScriptedCall(kind="execute", args={"command": "ls"})

    assert choose(call, [tool("other"), declared]) == ToolChoice(declared.name, expected)


@pytest.mark.parametrize("name", ["path", "file_path", "filePath", "absolute_path"])
def test_a_path_is_passed_under_the_tools_own_name(name: str) -> None:
    call = ScriptedCall(kind="write", args={"path": "/a", "content": "hi"})

    choice = choose(call, [tool("write_file", **{name: TEXT, "content": TEXT})])

    assert choice == ToolChoice("write_file", {name: "/a", "content": "hi"})


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (ScriptedCall(kind="write", args={"path": "/a", "content": "one\ntwo\n"}), "*** Add File: /a\n+one\n+two"),
        (
            ScriptedCall(kind="edit", args={"path": "/a", "old": "x", "new": "y\nz"}),
            "*** Update File: /a\n@@\n-x\n+y\n+z",
        ),
    ],
    ids=["write", "edit"],
)
def test_files_are_written_by_a_patch_where_that_is_the_way(call: ScriptedCall, expected: str) -> None:
    tools = [tool("exec_command"), RequestTool(name="apply_patch", freeform=True)]

    assert choose(call, tools) == ToolChoice("apply_patch", f"*** Begin Patch\n{expected}\n*** End Patch\n", True)
    assert choose(call, [*tools, tool("write"), tool("edit")]) == ToolChoice(str(call.kind), call.args)


def test_without_a_tool_that_reads_the_shell_does() -> None:
    call = ScriptedCall(kind="read", args={"path": "/a b"})
    shell = tool("exec_command", "cmd", cmd=TEXT)

    assert choose(call, [shell]) == ToolChoice("exec_command", {"cmd": "cat '/a b'"})
    assert choose(call, [shell, tool("read", path=TEXT)]) == ToolChoice("read", {"path": "/a b"})
    assert choose(call, [tool("other")]) is None


def test_the_first_alternative_that_is_declared_wins() -> None:
    call = ScriptedCall(
        name=["Bash", "bash"],
        args={"command": "ls"},
        alternatives=[ScriptedCall(name="exec_command", args={"cmd": "ls"}), ScriptedCall(match=".*shell.*")],
    )

    assert choose(call, [tool("exec_command"), tool("bash")]) == ToolChoice("bash", {"command": "ls"})
    assert choose(call, [tool("my_shell"), tool("exec_command")]) == ToolChoice("exec_command", {"cmd": "ls"})
    assert choose(call, [tool("my_shell")]) == ToolChoice("my_shell", {"command": "ls"})


def test_a_tool_nobody_declares() -> None:
    assert choose(ScriptedCall(name="nope", args={"a": 1}), [tool("bash")]) == ToolChoice("nope", {"a": 1})
    assert choose(ScriptedCall(match="nope"), [tool("bash")]) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
        {"anyOf": [{"type": "null"}, {"type": "string"}]},
        {"type": ["number", "null"]},
        {"type": "number", "maximum": 0.5},
        {"$defs": {"kind": {"enum": ["x", "y"]}}, "type": "object", "properties": {"k": {"$ref": "#/$defs/kind"}},
         "required": ["k"]},
        {"const": {"fixed": True}},
        {},
    ],
)  # fmt: skip
def test_an_example_fits_its_schema(schema: dict[str, Any]) -> None:
    jsonschema.validate(example(schema), schema)


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"type": "object", "properties": {"child": {"$ref": "#"}}, "required": ["child"]}

    assert example(schema)["child"]["child"]
