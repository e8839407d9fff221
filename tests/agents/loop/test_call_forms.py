"""Calls as models write them: odd JSON, odd types, fields and tools of other agents. What is judged, what is shown and
what runs are the same call."""

import json
from typing import Any

import pytest

from portico.agents.loop import lenient_json
from portico.agents.loop.arguments import NoArguments, parse
from portico.agents.loop.fields import fitted
from portico.agents.loop.other_tools import translated
from portico.agents.loop.protocol import ModelAction
from portico.agents.loop.tools import TOOLS
from portico.agents.loop.toolset.choice import EXTRAS, NAMES
from portico.kernel.events import Json
from tests.agents.loop.conftest import Desk, calls, texts
from tests.agents.loop.vendor import call, stream, vendor

SPECS = {tool.name: tool for tool in (*TOOLS, *(each.spec for each in EXTRAS.values()))}
FREE = '[agents.loop]\nretries = 0\n[agent]\nrequire_approval = "none"\n'

# -- JSON ------------------------------------------------------------------------------------------------------

FORMS: dict[str, tuple[str, Json]] = {
    "line comments": ('{"a": 1, // one\n "b": 2 # two\n}', {"a": 1, "b": 2}),
    "a block comment": ('{/* first */ "a": 1}', {"a": 1}),
    "no comment in a string": ('{"a": "http://x/*y*/ # z",}', {"a": "http://x/*y*/ # z"}),
    "names without quotes": ("{a: 1, b_c: 'x', $d: 2}", {"a": 1, "b_c": "x", "$d": 2}),
    "single quotes and JSON's constants": (
        "{'a': true, 'b': null, 'c': [false]}",
        {"a": True, "b": None, "c": [False]},
    ),
    "single quotes and Python's constants": ("{'a': True, 'b': None}", {"a": True, "b": None}),
    "quotes in quotes": ("{'a': 'say \"x\"', 'b': 'it\\'s'}", {"a": 'say "x"', "b": "it's"}),
    "trailing commas": ('{"a": [1, 2,],}', {"a": [1, 2]}),
    "a comma before a bracket in a string": ('{"content": "[1,] {x: 1,}",}', {"content": "[1,] {x: 1,}"}),
    "line breaks in strings": ("{a: 'x\ny',}", {"a": "x\ny"}),
    "backquotes": ("{a: `x\ny`}", {"a": "x\ny"}),
    "escapes": ("{a: '\\u00e9\\ud83d\\ude00\\x41\\n',}", {"a": "é😀A\n"}),
    "half a pair": ('{"a": "\\ud83d",}', {"a": "\ufffd"}),
    "numbers": ("{a: 0x1f, b: -.5, c: +3, d: 1e3,}", {"a": 31, "b": -0.5, "c": 3, "d": 1000.0}),
    "a byte order mark": ('\ufeff{"a": 1}', {"a": 1}),
    "a Python tuple": ("{'a': (1, 2)}", {"a": (1, 2)}),
    "in a fence": ("```json\n{a: 1}\n```", {"a": 1}),
}


@pytest.mark.parametrize(("text", "meant"), FORMS.values(), ids=FORMS)
def test_odd_json(text: str, meant: Json) -> None:
    assert parse(text) == meant


CUT = [
    '{"command": "rm -rf build',
    '{"command": "rm -rf build"',
    "{command: 'rm -rf build'",
    "{'path': 'a', 'content': 'half",
    '{"a": 1 "b": 2}',
    "{path: a.txt}",
    '{"a": 1} and more',
    "{'a': 'x'} {'a': 'y'}",
    '{"a": /* no end',
    "{a: " * 80 + "1" + "}" * 80,
    "[" * 100_000,
    "",
]


@pytest.mark.parametrize("text", CUT[:-1], ids=range(len(CUT) - 1))
def test_half_a_call_is_no_call(text: str) -> None:
    with pytest.raises(NoArguments):
        parse(text)
    with pytest.raises(ValueError):
        lenient_json.loads(text)


@pytest.mark.parametrize("size", [4 * 1024 * 1024 + 1])
def test_a_text_over_the_limit_is_not_read(size: int) -> None:
    with pytest.raises(ValueError, match="too long"):
        lenient_json.loads(" " * size)


# -- types and fields ------------------------------------------------------------------------------------------

FITS: dict[str, tuple[str, Json, Json]] = {
    "a list as JSON": ("readFiles", {"files": '["a", "b"]'}, {"files": ["a", "b"]}),
    "a list as odd JSON": ("readFiles", {"files": "['a',]"}, {"files": ["a"]}),
    "one for a list": ("readFiles", {"files": "a b.txt"}, {"files": ["a b.txt"]}),
    "objects with paths": ("readFiles", {"files": [{"path": "a"}, "b"]}, {"files": ["a", "b"]}),
    "numbers as strings": ("readFiles", {"files": ["a"], "range": ["1", "20"]}, {"files": ["a"], "range": [1, 20]}),
    "a list of numbers as JSON": ("readFiles", {"files": ["a"], "range": "[1, 2]"}, {"files": ["a"], "range": [1, 2]}),
    "a whole float": ("search", {"pattern": "x", "max": 5.0}, {"pattern": "x", "max": 5}),
    "booleans as strings": ("search", {"pattern": "x", "regex": "True"}, {"pattern": "x", "regex": True}),
    "no as a string": ("editFile", {"path": "a", "all": "no"}, {"path": "a", "all": False}),
    "a number as a pattern": ("search", {"pattern": 404}, {"pattern": "404"}),
    "JSON as content": ("createFile", {"path": "a", "content": {"x": 1}}, {"path": "a", "content": '{\n  "x": 1\n}\n'}),
    "edits as JSON": (
        "editFile",
        {"path": "a", "edits": '[{"search": "x", "replace": "y"}]'},
        {"path": "a", "edits": [{"search": "x", "replace": "y"}]},
    ),
    "one edit": (
        "editFile",
        {"path": "a", "edits": {"old_string": "x", "new_string": "y", "description": "z"}},
        {"path": "a", "edits": [{"search": "x", "replace": "y"}]},
    ),
    "a command as JSON": ("runCommand", {"command": '["ls", "-l"]'}, {"command": ["ls", "-l"]}),
    "a test command": ("runCommand", {"command": "[ -f a ] && ls"}, {"command": "[ -f a ] && ls"}),
    "words about a call": (
        "runCommand",
        {
            "command": "ls",
            "description": "Lists",
            "explanation": "x",
            "security_risk": "LOW",
            "requires_approval": False,
        },
        {"command": "ls"},
    ),
    "nulls and empty fields": ("runCommand", {"command": "ls", "env": {}, "stdin": "", "cwd": None}, {"command": "ls"}),
    "empty fields of ours": ("runCommand", {"command": "ls", "cwd": "", "timeout": 0}, {"command": "ls"}),
    "every field filled in": (
        "editFile",
        {"path": "a", "search": "x", "replace": "", "all": False, "edits": [], "content": "", "diff": ""},
        {"path": "a", "search": "x", "replace": "", "all": False},
    ),
    "wrapped": ("readFiles", {"arguments": {"files": ["a"]}}, {"files": ["a"]}),
    "wrapped as JSON": ("readFiles", {"input": '{"files": ["a"]}'}, {"files": ["a"]}),
    "a reader with fields of others": ("search", {"pattern": "x", "output_mode": "content"}, {"pattern": "x"}),
    "steps of a plan": (
        "plan",
        {"steps": [{"content": "a", "status": "done", "id": "1", "activeForm": "x"}, "b"]},
        {"steps": [{"text": "a", "status": "completed"}, {"text": "b"}]},
    ),
    "deleting all of a file": ("editFile", {"path": "a", "content": ""}, {"path": "a", "content": ""}),
}


@pytest.mark.parametrize(("tool", "given", "meant"), FITS.values(), ids=FITS)
def test_arguments_in_the_form_of_the_tool(tool: str, given: Json, meant: Json) -> None:
    reads = tool in ("readFiles", "search", "listFiles", "plan")
    assert fitted(given, SPECS[tool].schema, reads=reads) == meant


MEANS_SOMETHING: dict[str, tuple[str, Json]] = {
    "input of a command": ("runCommand", {"command": "make build", "stdin": "rm -rf ~"}),
    "another command": ("runCommand", {"command": "make build", "cmd": "rm -rf ~"}),
    "variables": ("runCommand", {"command": "make build", "env": {"X": "1"}}),
    "in the background": ("runCommand", {"command": "make build", "background": True}),
    "appending": ("createFile", {"path": "new.txt", "content": "x", "append": True}),
    "a line": ("editFile", {"path": "a.txt", "content": "x", "line": 3}),
    "another command in the background": ("startCommand", {"command": "make build", "script": "rm -rf ~"}),
}


@pytest.mark.parametrize(("tool", "arguments"), MEANS_SOMETHING.values(), ids=MEANS_SOMETHING)
async def test_a_field_with_a_meaning_is_rejected_and_nothing_runs(desk: Desk, tool: str, arguments: Json) -> None:
    (desk.project / "a.txt").write_text("before\n")
    (desk.project / "Makefile").write_text("build:\n\ttouch built\n")
    answers = (stream(call(tool, json.dumps(arguments)), finish="tool_calls"), stream({"content": "Done."}))
    async with vendor(desk, *answers, settings=FREE):
        turn = await desk.run("Do it.")
    (found,) = calls(turn)
    assert (found.ok, found.tool, "unknown field" in found.output) == (False, tool, True), found.output
    assert sorted(path.name for path in desk.project.iterdir()) == [".git", "Makefile", "a.txt"]
    assert (desk.project / "a.txt").read_text() == "before\n"


# -- tools of other agents -------------------------------------------------------------------------------------

PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@ def f\n one\n-two\n+2\n*** End Patch"
OTHERS: dict[str, tuple[str, Json, str, Json]] = {
    "Bash": ("Bash", {"command": "ls", "description": "x"}, "runCommand", {"command": "ls"}),
    "shell of Codex": (
        "shell",
        {"command": ["bash", "-lc", "ls | wc"], "workdir": "src", "timeout_ms": 10_000},
        "runCommand",
        {"command": "ls | wc", "cwd": "src", "timeout": 10.0},
    ),
    "exec_command": ("exec_command", {"cmd": "ls"}, "runCommand", {"command": "ls"}),
    "execute_command": (
        "execute_command",
        {"command": "ls", "requires_approval": False},
        "runCommand",
        {"command": "ls"},
    ),
    "developer__shell": ("developer__shell", {"command": "ls"}, "runCommand", {"command": "ls"}),
    "run_in_terminal": ("functions.run_in_terminal", {"command": "ls"}, "runCommand", {"command": "ls"}),
    "Read": (
        "Read",
        {"file_path": "a.txt", "offset": 2, "limit": 1},
        "readFiles",
        {"files": ["a.txt"], "range": [2, 2]},
    ),
    "read_file": ("read_file", {"path": "a.txt"}, "readFiles", {"files": ["a.txt"]}),
    "view with lines": (
        "view",
        {"path": "a.txt", "view_range": [1, 2]},
        "readFiles",
        {"files": ["a.txt"], "range": [1, 2]},
    ),
    "Write": ("Write", {"file_path": "new.txt", "content": "x"}, "createFile", {"path": "new.txt", "content": "x"}),
    "Write over a file": (
        "Write",
        {"file_path": "a.txt", "content": "x"},
        "editFile",
        {"path": "a.txt", "content": "x"},
    ),
    "write_to_file": ("write_to_file", {"path": "n", "content": "x"}, "createFile", {"path": "n", "content": "x"}),
    "Edit": (
        "Edit",
        {"file_path": "a.txt", "old_string": "two", "new_string": "2", "replace_all": False},
        "editFile",
        {"path": "a.txt", "search": "two", "replace": "2", "all": False},
    ),
    "MultiEdit": (
        "MultiEdit",
        {"file_path": "a.txt", "edits": [{"old_string": "two", "new_string": "2"}]},
        "editFile",
        {"path": "a.txt", "edits": [{"search": "two", "replace": "2"}]},
    ),
    "str_replace": (
        "str_replace_editor",
        {"command": "str_replace", "path": "a.txt", "old_str": "two", "new_str": "2"},
        "editFile",
        {"path": "a.txt", "search": "two", "replace": "2"},
    ),
    "str_replace without a text": (
        "str_replace_based_edit_tool",
        {"command": "str_replace", "path": "a.txt", "old_str": "two\n"},
        "editFile",
        {"path": "a.txt", "search": "two\n", "replace": ""},
    ),
    "view of an editor": (
        "text_editor",
        {"command": "view", "path": "a.txt"},
        "readFiles",
        {"files": ["a.txt"]},
    ),
    "create of an editor": (
        "str_replace_editor",
        {"command": "create", "path": "new.txt", "file_text": "x"},
        "createFile",
        {"path": "new.txt", "content": "x"},
    ),
    "insert of an editor": (
        "str_replace_editor",
        {"command": "insert", "path": "a.txt", "insert_line": 1, "new_str": "and"},
        "editFile",
        {"path": "a.txt", "diff": "@@ -1,0 +2,1 @@\n+and\n"},
    ),
    "apply_patch": ("apply_patch", {"input": PATCH}, "editFile", {"path": "a.txt", "diff": "@@\n one\n-two\n+2\n"}),
    "apply_patch, a new file": (
        "apply_patch",
        {"patch": "*** Begin Patch\n*** Add File: n.txt\n+x\n+y\n*** End Patch\n"},
        "createFile",
        {"path": "n.txt", "content": "x\ny\n"},
    ),
    "LS": ("LS", {"path": "."}, "listFiles", {}),
    "list_dir": ("list_dir", {"target_directory": "src"}, "listFiles", {"glob": "src"}),
    "Glob": ("Glob", {"pattern": "**/*.py", "path": "src"}, "listFiles", {"glob": "src/**/**/*.py"}),
    "Grep": (
        "Grep",
        {"pattern": "x", "path": "src", "output_mode": "content"},
        "search",
        {"pattern": "x", "glob": "src"},
    ),
    "search_files": (
        "search_files",
        {"path": "src", "regex": "x", "file_pattern": "*.py"},
        "search",
        {"pattern": "x", "glob": "src/**/*.py"},
    ),
    "TodoWrite": (
        "TodoWrite",
        {"todos": [{"content": "a", "status": "in_progress", "activeForm": "b"}]},
        "plan",
        {"steps": [{"text": "a", "status": "in_progress"}]},
    ),
    "update_plan": (
        "update_plan",
        {"explanation": "x", "plan": [{"step": "a", "status": "pending"}]},
        "plan",
        {"steps": [{"text": "a", "status": "pending"}]},
    ),
    "WebFetch": ("WebFetch", {"url": "http://x/", "prompt": "y"}, "webFetch", {"url": "http://x/"}),
    "Task": (
        "Task",
        {"description": "Look", "prompt": "Find it", "subagent_type": "x"},
        "delegate",
        {"title": "Look", "task": "Find it"},
    ),
    "AskUserQuestion": (
        "AskUserQuestion",
        {"questions": [{"question": "Which?", "header": "x", "options": [{"label": "a", "description": "b"}, "c"]}]},
        "askUser",
        {"question": "Which?", "choices": ["a", "c"]},
    ),
    "ask_followup_question": ("ask_followup_question", {"question": "a?"}, "askUser", {"question": "a?"}),
    "attempt_completion": ("attempt_completion", {"result": "Done."}, "finish", {"finalSummary": "Done."}),
    "snake case": ("edit_file", {"path": "a", "content": "x"}, "editFile", {"path": "a", "content": "x"}),
}


@pytest.mark.parametrize(("name", "given", "tool", "meant"), OTHERS.values(), ids=OTHERS)
def test_tools_of_other_agents(name: str, given: Json, tool: str, meant: Json) -> None:
    made = translated(ModelAction(name, given, "c1"), NAMES, lambda path: path == "a.txt")
    assert (made.tool, made.id, made.problem) == (tool, "c1", "")
    schema = SPECS[tool].schema if tool in SPECS else {"properties": {"finalSummary": {"type": "string"}}}
    assert fitted(made.arguments, schema, reads=tool in ("readFiles", "listFiles", "search", "plan")) == meant


NONE: dict[str, tuple[str, Json]] = {
    "an unknown name": ("frobnicate", {"x": 1}),
    "a name of ours that is off": ("readFiles", {"files": ["a"]}),
    "a name of others for a tool that is off": ("Read", {"file_path": "a"}),
}


@pytest.mark.parametrize(("name", "given"), NONE.values(), ids=NONE)
def test_a_call_that_means_nothing_stays(name: str, given: Json) -> None:
    action = ModelAction(name, given, "c1")
    assert translated(action, ["runCommand"], lambda path: True) == action


PATCHES = {
    "two files": "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** Update File: b\n@@\n-x\n+y\n*** End Patch",
    "a deletion": "*** Begin Patch\n*** Delete File: a\n*** End Patch",
    "a move": "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** End Patch",
    "no file": "*** Begin Patch\n@@\n-x\n+y\n*** End Patch",
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
def test_a_patch_for_more_than_one_file_is_explained(patch: str) -> None:
    made = translated(ModelAction("apply_patch", {"input": patch}, "c1"), NAMES, lambda path: True)
    assert "one file per call" in made.problem


async def test_the_call_of_another_agent_is_judged_shown_and_run_as_ours(desk: Desk) -> None:
    """The card, the record of the call and the command that runs have the same line."""
    arguments = {"command": "echo one > made.txt", "description": "Only looks", "requires_approval": False}
    answers = (stream(call("Bash", json.dumps(arguments)), finish="tool_calls"), stream({"content": "Done."}))
    async with vendor(desk, *answers) as endpoint:
        turn = await desk.run("Do it.", allow=False)
        (found,) = calls(turn)
        assert (found.tool, found.outcome, json.loads(found.input)) == (
            "runCommand",
            "cancelled",
            {"command": "echo one > made.txt"},
        )
        assert not (desk.project / "made.txt").exists()
        endpoint.answers = list(answers)
        turn = await desk.run("Do it.")
    (found,) = calls(turn)
    assert (found.ok, (desk.project / "made.txt").read_text()) == (True, "one\n")
    sent = endpoint.bodies[-1]["messages"][-2]["tool_calls"][0]["function"]
    assert (sent["name"], json.loads(sent["arguments"])) == ("Bash", arguments)


async def test_a_finish_of_another_agent_ends_the_run(desk: Desk) -> None:
    answers = (stream(call("attempt_completion", '{"result": "All done."}'), finish="tool_calls"),)
    async with vendor(desk, *answers) as endpoint:
        turn = await desk.run("Do it.")
    assert (turn.outcome, texts(turn), len(endpoint.bodies)) == ("completed", "All done.", 1)


WRITTEN: dict[str, str] = {
    "Hermes": '<tool_call>\n{"name": "bash", "arguments": {"command": "touch made"}}\n</tool_call>',
    "invoke": '<function_calls><invoke name="Bash"><parameter name="command">touch made</parameter></invoke>'
    "</function_calls>",
    "function": "<function=shell><parameter=command>touch made</parameter></function>",
    "JSON": '{"name": "execute_command", "arguments": {"command": "touch made"}}',
    "a step": '{"actions": [{"tool": "bash", "command": "touch made"}], "done": false}',
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
async def test_tools_of_other_agents_in_a_text(desk: Desk, text: str) -> None:
    async with vendor(desk, stream({"content": text}), stream({"content": "Done."})):
        turn = await desk.run("Do it.")
    assert ([found.tool for found in calls(turn)], turn.outcome) == (["runCommand"], "completed")
    assert (desk.project / "made").exists()


async def test_an_unknown_tool_gets_the_list_of_tools(desk: Desk) -> None:
    answers: tuple[Any, ...] = (stream(call("frobnicate", "{}"), finish="tool_calls"), stream({"content": "Done."}))
    async with vendor(desk, *answers):
        turn = await desk.run("Do it.")
    assert "There is no tool 'frobnicate'; there are: listFiles" in calls(turn)[0].output
    assert turn.outcome == "completed"
