"""The registry of ACP agents, what is installed of it, forms that agents show, and what their settings may say."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from portico.agents.acp.catalogue import AgentSource, Distribution, Listed, Package, read, source
from portico.agents.acp.program import PRESETS, Program, folder, programs
from portico.agents.agent import Turn
from portico.agents.copilot.conversation import action_of, attachments
from portico.agents.copilot.option import read as read_copilot
from portico.agents.copilot.option import thinking
from portico.agents.elicitation import elicit
from portico.agents.loop.roots import Roots, nowhere
from portico.agents.loop.settings import EndpointSettings, SettingsFile
from portico.agents.servers import customizations, mcp_servers
from portico.kernel.action import Action
from portico.kernel.errors import BadRequest, Forbidden
from portico.kernel.events import Json, Message
from portico.kernel.question import Answer


def listed(**distribution: Any) -> Listed:
    return Listed("acme", repository="https://example.org/acme", distribution=Distribution(**distribution))


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("acme", "acme"),
        ("acme@1.2.3", "acme"),
        ("@scope/acme", "@scope/acme"),
        ("@scope/acme@1.2.3-rc.1", "@scope/acme"),
        ("acme-acp@latest", "acme-acp"),
    ],
)
def test_a_package_of_npm(package: str, name: str) -> None:
    found = source(listed(npx=Package(package, ["--acp"], {"A": "1"})))
    assert found == AgentSource("npm", package, ["--acp"], {"A": "1"})
    assert found.name == name


@pytest.mark.parametrize(
    ("package", "wanted", "name"),
    [
        ("acme", "acme", "acme"),
        ("acme==1.2", "acme==1.2", "acme"),
        ("acme@1.2", "acme==1.2", "acme"),
        ("acme@latest", "acme", "acme"),
        ("acme[acp]==1.2", "acme[acp]==1.2", "acme"),
        ("Acme_ACP.x", "Acme_ACP.x", "Acme_ACP.x"),
    ],
)
def test_a_package_of_pypi(package: str, wanted: str, name: str) -> None:
    found = source(listed(uvx=Package(package)))
    assert (found.kind, found.package, found.name) == ("pypi", wanted, name)


@pytest.mark.parametrize("kind", ["npx", "uvx"])
@pytest.mark.parametrize(
    "package",
    [
        "",
        "-g",
        "--registry=http://evil",
        "../evil",
        "/tmp/evil",
        "http://evil/x.tgz",
        "a b",
        "git+https://evil",
        "a;b",
        "a@b@c",
        "é",
    ],
)
def test_what_is_no_name_of_a_package_is_never_installed(kind: str, package: str) -> None:
    with pytest.raises(BadRequest, match="names a package that is none"):
        source(listed(**{kind: Package(package)}))


def test_npm_comes_before_pypi_and_a_program_to_download_is_told() -> None:
    assert source(listed(npx=Package("a"), uvx=Package("b"))).kind == "npm"
    with pytest.raises(BadRequest, match=r"See https://example.org/acme.*portico agents add acme -- COMMAND"):
        source(listed(binary={"linux": {}}))
    assert listed(npx=Package("a"), binary={"x": 1}).distribution.kinds == "npm, binary"
    assert listed().distribution.kinds == ""


def test_a_registry_leaves_out_what_it_does_not_understand(tmp_path: Path) -> None:
    file = tmp_path / "registry.json"
    agents = [{"id": "zed"}, {"id": "../evil"}, {"id": 7}, "no", {"id": "acme", "future": True}, {"name": "nameless"}]
    file.write_text(json.dumps({"agents": agents}))
    assert [each.id for each in read(str(file))] == ["acme", "zed"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"agents": 7}', "[" * 5000])
def test_what_is_no_registry(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(BadRequest, match="is not a registry of ACP agents"):
        read(str(tmp_path / "r.json"))


def test_a_registry_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="cannot be read: No such file"):
        read(str(tmp_path / "none.json"))


# -- tables of the settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "field", "words"),
    [
        ({"acp": 7}, "agents.acp", "one table per agent"),
        ({"acp": {"mine": 7}}, "agents.acp.mine", "Expected `object`"),
        ({"acp": {"mine": {}}}, "agents.acp.mine.command", "needs a command"),
        ({"acp": {"mine": {"command": "x"}}}, "agents.acp.mine", "Expected `array`"),
        ({"acp": {"mine": {"command": ["x"], "colour": 1}}}, "agents.acp.mine", "unknown field `colour`"),
        ({"acp": {"mine": {"command": ["x"], "idle_timeout": -1}}}, "agents.acp.mine", "`float` >= 0"),
    ],
)
def test_a_wrong_table_of_an_agent_is_named(table: Json, field: str, words: str) -> None:
    with pytest.raises(BadRequest) as refused:
        programs(table)
    assert refused.value.field == field
    assert words in refused.value.message


def test_a_table_changes_a_preset_and_keeps_what_makes_it_ask() -> None:
    found = programs(
        {
            "acp": {
                "goose": {"env": {"A": "1"}},
                "mine": {"command": ["sh"]},
                "off": {"command": ["x"], "enabled": False},
            }
        }
    )
    assert found["goose"].env == {"GOOSE_MODE": "approve", "A": "1"}
    assert found["goose"].command == PRESETS["goose"].command
    assert found["mine"].name == ""
    assert "off" not in found
    loose = programs({"acp": {"goose": {"env": {"GOOSE_MODE": "auto"}}}})
    assert loose["goose"].env == {"GOOSE_MODE": "auto"}


@pytest.mark.parametrize(
    ("command", "said", "separate", "in_folder"),
    [
        (["opencode", "acp"], {}, True, False),
        (["/opt/opencode-dev"], {}, True, False),
        (["opencode"], {"process_per_session": False}, False, False),
        (["gemini", "--acp"], {}, False, True),
        (["gemini"], {"process_in_folder": False}, False, False),
        (["npx", "gemini-cli"], {}, False, True),
        (["mine"], {"process_per_session": True, "process_in_folder": True}, True, True),
        (["mine"], {}, False, False),
    ],
)
def test_which_programs_want_a_process_of_their_own(
    command: list[str], said: dict[str, bool], separate: bool, in_folder: bool
) -> None:
    program = Program(command=command, **said)  # type: ignore[arg-type]
    assert (program.separate, program.in_folder) == (separate, in_folder)


def test_an_agents_folder_is_below_the_home_whatever_its_name() -> None:
    assert folder(Path("/h"), "mine") == Path("/h/agents/acp/mine")
    assert folder(Path("/h"), "../../etc") == Path("/h/agents/acp/etc")


def test_servers_of_tools_can_be_switched_off() -> None:
    [found] = customizations(mcp_servers({"mcp": {"tickets": {"url": "http://x"}}}))
    assert found == {
        "type": "mcpServer",
        "id": "mcp:tickets",
        "uri": "portico-settings:/agents.mcp.tickets",
        "name": "tickets",
    }


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"copilot": 7}, "agents.copilot"),
        ({"copilot": {"colour": 1}}, "agents.copilot"),
        ({"copilot": {"provider": {}}}, "agents.copilot"),
        ({"copilot": {"provider": {"base_url": "http://x"}}}, "agents.copilot.models"),
        ({"copilot": {"idle_timeout": -1}}, "agents.copilot"),
    ],
)
def test_a_wrong_table_of_copilot_is_named(settings: Json, field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read_copilot(settings)
    assert refused.value.field == field


def test_how_long_a_model_may_think() -> None:
    assert thinking([]) == {}
    assert thinking(["low", "high"])["properties"]["reasoningEffort"]["enum"] == ["low", "high"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[agents.loop]\ntimeout = 0", "timeout is more than 0, retries is 0 to 10"),
        ("[agents.loop]\nretries = 11", "timeout is more than 0, retries is 0 to 10"),
        ("[agents.loop]\nretries = -1", "timeout is more than 0, retries is 0 to 10"),
        ("[agents.loop]\nunload_minutes = -1", "unload_minutes is 0 to 10000"),
        ("[agents.loop]\nunload_minutes = 10001", "unload_minutes is 0 to 10000"),
        ("[agents.loop]\nprotocol = 'smoke'", "is not as expected"),
        ("[agents.loop]\ncolour = 1", "is not as expected"),
    ],
)
def test_a_wrong_table_of_the_built_in_agent_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "settings.toml").write_text(text)
    with pytest.raises(BadRequest, match=words) as refused:
        SettingsFile(tmp_path).current()
    assert refused.value.field == "agents.loop"


def test_a_broken_edit_keeps_the_values_and_a_right_one_counts_at_once(tmp_path: Path) -> None:
    file, settings = tmp_path / "settings.toml", SettingsFile(tmp_path)
    assert settings.current().loop.retries == 2
    file.write_text("[agents.loop]\nretries = 5\n")
    assert settings.current().loop.retries == 5
    file.write_text("[agents.loop]\nretries = 'many'\n")
    assert settings.current().loop.retries == 5
    file.write_text("[agents.loop]\nretries = 7 \n")
    assert settings.current().loop.retries == 7


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ({}, ""),
        ({"api_key": "k"}, "k"),
        ({"api_key_env": "E"}, "e"),
        ({"api_key_env": "NONE"}, ""),
        ({"api_key": "k", "api_key_env": "E"}, "k"),
    ],
)
def test_where_a_key_comes_from(said: dict[str, Any], key: str) -> None:
    assert EndpointSettings("http://x", **said).key({"E": "e"}) == key


# -- forms -----------------------------------------------------------------------------------------------------


class Asked:
    """A turn in which a person answers."""

    def __init__(self, response: str = "accept", **answers: Any) -> None:
        self._answer = Answer(response, answers, "me")  # type: ignore[arg-type]
        self.said: tuple[Any, ...] = ()

    async def ask(self, text: str, fields: list[Json], url: str | None) -> Answer:
        self.said = (text, fields, url)
        return self._answer


async def shown(shape: Any, required: list[str] | None = None) -> Json:
    turn = Asked()
    schema = {"properties": {"x": shape}, "required": required or []}
    await elicit({"message": "Which?", "requestedSchema": schema}, cast(Turn, turn))
    text, [field], url = turn.said
    assert (text, url, field["id"]) == ("Which?", None, "x")
    return dict(field)


FIELDS: dict[str, tuple[Json, Json]] = {
    "a text": ({"type": "string"}, {"kind": "text", "title": "x", "message": "x", "required": False}),
    "with words": ({"title": "T", "description": "D"}, {"kind": "text", "title": "T", "message": "D"}),
    "a switch": ({"type": "boolean"}, {"kind": "boolean"}),
    "a number": ({"type": "number"}, {"kind": "number"}),
    "a whole number": ({"type": "integer"}, {"kind": "number"}),
    "values": (
        {"enum": ["a", 2]},
        {"kind": "single-select", "options": [{"id": "a", "label": "a"}, {"id": 2, "label": "2"}]},
    ),
    "values with titles": (
        {"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]},
        {"kind": "single-select", "options": [{"id": "a", "label": "A"}, {"id": "b", "label": "b"}]},
    ),
    "several of them": (
        {"type": "array", "items": {"anyOf": [{"const": "a"}]}},
        {"kind": "multi-select", "options": [{"id": "a", "label": "a"}]},
    ),
    "several of nothing": ({"type": "array", "items": 7}, {"kind": "multi-select"}),
    "values that are none": ({"enum": 7}, {"kind": "text"}),
}


@pytest.mark.parametrize(("shape", "expected"), FIELDS.values(), ids=FIELDS)
async def test_a_field_of_a_form(shape: Json, expected: Json) -> None:
    field = await shown(shape)
    assert {key: field.get(key) for key in expected} == expected
    assert ("options" in field) is ("options" in expected)


async def test_a_field_that_has_to_be_filled() -> None:
    assert (await shown({}, ["x"]))["required"] is True


@pytest.mark.parametrize(
    ("turn", "result"),
    [
        (Asked(x="a"), {"action": "accept", "content": {"x": "a"}}),
        (Asked(x={"state": "s", "value": {"value": 7}}), {"action": "accept", "content": {"x": 7}}),
        (Asked(x={"other": 1}), {"action": "accept", "content": {"x": {"other": 1}}}),
        (Asked("decline"), {"action": "decline"}),
        (Asked("cancel", x="a"), {"action": "cancel"}),
    ],
)
async def test_what_a_person_answers(turn: Asked, result: Json) -> None:
    assert await elicit({"url": "http://x", "requestedSchema": 7}, cast(Turn, turn)) == result
    assert turn.said == ("The agent asks.", [], "http://x")


# -- what Copilot asks permission for --------------------------------------------------------------------------


def request(kind: str, **fields: Any) -> Any:
    return SimpleNamespace(kind=kind, **fields)


ASKED: dict[str, tuple[Any, Action]] = {
    "a command": (
        request("shell", full_command_text="ls", resolved_working_directory="/w"),
        Action("shell", "ls", cwd="/w"),
    ),
    "a command that is not told": (request("shell"), Action("shell")),
    "a command under another kind": (request("read", full_command_text="rm x"), Action("shell", "rm x")),
    "a read": (request("read", path="a"), Action("read", files=("a",))),
    "a write": (request("write", file_name="a"), Action("write", files=("a",))),
    "a write of several": (
        request(
            "write",
            file_name="a",
            file_edits=[SimpleNamespace(file_name="b"), SimpleNamespace(path="c"), SimpleNamespace(path="a")],
        ),
        Action("write", files=("a", "b", "c")),
    ),
    "a path and what it leads to": (
        request("read", path="a", resolved_path="/etc/x"),
        Action("read", files=("a", "/etc/x")),
    ),
    "edits that are none": (request("write", path="a", file_edits="b"), Action("write", files=("a",))),
    "an address": (request("url", url="http://x"), Action("other")),
    "more than the call": (
        request("shell", full_command_text="ls", request_sandbox_bypass=True),
        Action("shell", "ls", unclear="it wants more: request_sandbox_bypass"),
    ),
    "not more than the call": (request("read", path="a", sandbox_path_grant=None), Action("read", files=("a",))),
}


@pytest.mark.parametrize(("asked", "action"), ASKED.values(), ids=ASKED)
def test_what_a_permission_is_for(asked: Any, action: Action) -> None:
    assert action_of(asked) == action


@pytest.mark.parametrize(
    ("attached", "sent"),
    [
        ({"uri": "file:///a/b%20c.txt"}, {"type": "file", "path": "/a/b c.txt", "displayName": "b c.txt"}),
        ({"path": "/a/b"}, {"type": "file", "path": "/a/b", "displayName": "b"}),
        (
            {"path": "/a/b", "type": "directory", "label": "L"},
            {"type": "directory", "path": "/a/b", "displayName": "L"},
        ),
        ({"path": "/a/b", "displayName": "D"}, {"type": "file", "path": "/a/b", "displayName": "D"}),
        (
            {"data": "eA==", "contentType": "image/png"},
            {"type": "blob", "data": "eA==", "mimeType": "image/png", "displayName": "attachment"},
        ),
        (
            {"data": "eA==", "uri": "file:///p.bin"},
            {"type": "blob", "data": "eA==", "mimeType": "application/octet-stream", "displayName": "p.bin"},
        ),
        ({"label": "nothing"}, None),
    ],
)
def test_an_attachment_in_copilots_words(attached: Json, sent: Json | None) -> None:
    assert attachments(Message("x", attachments=[attached])) == ([sent] if sent is not None else [])


# -- what the built-in agent may touch -------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "p/src/deep").mkdir(parents=True)
    (tmp_path / "p/docs").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "p/out").symlink_to(tmp_path / "other")
    return tmp_path / "p"


@pytest.mark.parametrize(
    ("allowed", "path", "name"),
    [
        (["*"], "src/a.py", "src/a.py"),
        (["*"], "./src/../docs", "docs"),
        (["src"], "src/deep/a", "src/deep/a"),
        (["src", "docs"], "docs/x", "docs/x"),
        (["src", "none", "../other"], "src", "src"),
        (["*"], "../other", None),
        (["*"], "out/x", None),
        (["*"], "/etc/passwd", None),
        (["src"], "docs/x", None),
        (["src"], ".", None),
    ],
)
def test_a_path_that_may_be_touched(project: Path, allowed: list[str], path: str, name: str | None) -> None:
    roots = Roots(str(project), allowed)
    if name is None:
        with pytest.raises(Forbidden):
            roots.check(path)
    else:
        assert roots.check(path) == name


@pytest.mark.parametrize("allowed", [[], ["../other"], ["out"], ["/etc"]])
def test_where_nothing_is_allowed_nothing_is_open(project: Path, allowed: list[str]) -> None:
    with pytest.raises(Forbidden, match=r"agent\.allowed_roots allows"):
        Roots(str(project), allowed)


@pytest.mark.parametrize(
    ("allowed", "absent"),
    [
        (["*"], ""),
        (["src", "docs"], ""),
        (["src", "srcc"], "'srcc'"),
        (["*", "srcc"], "'srcc'"),
        (["none", "../other", "out", "/etc"], "'none', '../other', 'out', '/etc'"),
    ],
)
def test_what_is_allowed_and_nowhere_is_told(project: Path, allowed: list[str], absent: str) -> None:
    told = nowhere(allowed, [project, project / "docs"])
    assert told.startswith(f"agent.allowed_roots: no folder {absent} in {project}, ") if absent else told == ""
    assert nowhere(allowed, []) == ""


def test_folders_of_the_session_are_open_by_their_whole_paths(project: Path) -> None:
    other = str(project.parent / "other")
    roots = Roots(str(project), ["src"], [str(project), other, "/no/such/folder"])
    assert roots.check(f"{other}/x") == f"{other}/x"
    assert [prefix for prefix, _ in roots.parts()] == ["src/", f"{other}/"]
    assert [prefix for prefix, _ in Roots(str(project), ["*"]).parts()] == [""]
    alone = Roots(str(project), ["*"], [other])
    with pytest.raises(Forbidden):
        alone.check("src/a.py")
