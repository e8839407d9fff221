"""The attack: a token that may drive but not approve sends `/yolo`, and the agent asks nobody from then on."""

import pytest

from portico.agents.acp.autonomy import classify
from portico.agents.acp.program import Program
from portico.kernel import commands as c
from portico.kernel.autonomy import Answering, Autonomy, commanded
from portico.kernel.commands.caller import SCOPES
from portico.kernel.customization import PLUGIN
from portico.kernel.errors import Forbidden
from portico.kernel.events import Audited, Json, Message
from portico.kernel.host import Host
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.plays import hang

DRIVER = c.Caller("1", "driver", scopes=frozenset({"read", "drive"}))
OWNER = c.Caller("2", "owner", scopes=frozenset(SCOPES))


class Classed(PlayAgent):
    def autonomy(self, option: str, value: object) -> Autonomy:
        return classify(Program(command=["copilot"], asks={"/fix": ["*"]}), option, value)


class Deaf(PlayAgent):
    def autonomy(self, option: str, value: object) -> Autonomy:
        return Autonomy.ASKS


LOOSE = [
    "/yolo",
    "/allow-all",
    "/ALLOW-ALL on",
    " \n/yolo",
    "/mode auto",
    "/permissions",
    "/add-dir /",
    "/fix-all",
    "/mcp:x",
]
FREE = [
    "/help",
    "/compact now",
    "/fix it",
    "hello /yolo",
    "/",
    "//",
    "/etc/hosts is wrong",
    "/* a comment */",
    "- /yolo",
]


@pytest.mark.parametrize("text", LOOSE + FREE)
def test_what_is_a_command_that_loosens(text: str) -> None:
    agents = {"it": Classed(hang), "deaf": Deaf(hang)}
    assert bool(commanded(agents, text, Answering("it", {}))) is (text in LOOSE)
    assert commanded(agents, text, Answering("deaf", {})) == []
    fallen = commanded(agents, text, Answering("deaf", {"fallback": ["it"]}))
    assert bool(fallen) is (text in LOOSE), "a fallback may have to answer it"


@pytest.mark.parametrize("text", ["/yolo", "/help"])
def test_who_classes_nothing_has_unknown_commands_only(text: str) -> None:
    assert commanded({"it": PlayAgent(hang)}, text, Answering("it", {}))


def test_an_announced_name_with_a_slash_is_a_command() -> None:
    config = {"commands": [{"name": "skills/yolo", "description": ""}]}
    assert commanded({"it": Classed(hang)}, "/skills/yolo", Answering("it", config))


@pytest.fixture
async def host(open_host: HostOpener) -> Host:
    return await open_host(Classed(hang, "classed"))


async def test_every_way_to_say_it_needs_approve(host: Host) -> None:
    session = await host.start(by="test", cwd="/", agent="classed")
    ident = session.id
    await host.do(c.SendMessage(session=ident, text="/help"), DRIVER)
    queued: c.Queued = await host.do(c.QueueMessage(session=ident, message=Message("later")), DRIVER)
    prompt: Json = {"type": "prompt", "id": "p", "name": "quick"}
    plugin: Json = {"id": "x", "children": [prompt], "texts": {"p": "/yolo"}}
    await session.keep(f"{PLUGIN}x", plugin, by="test")
    ways: list[c.Command] = [
        c.SendMessage(session=ident, text="/yolo"),
        c.SendMessage(session=ident, text="/yolo", busy="steer"),
        c.SendMessage(session=ident, text="/quick"),
        c.QueueMessage(session=ident, message=Message("/yolo")),
        c.EditQueued(session=ident, pending=queued.pending, text="/yolo"),
    ]
    for way in ways:
        with pytest.raises(Forbidden) as refused:
            await host.do(way, DRIVER)
        assert (refused.value.field, "'/yolo' (classed is not known to ask)" in refused.value.message) == ("text", True)
    assert [each.message.text for each in session.state.queue] == ["later"]
    for way in ways:
        await host.do(way, OWNER)
    records = await host.log.read("host", limit=100)
    audits = [record.event for record in records if isinstance(record.event, Audited)]
    assert [each.by for each in audits if each.action == "approval.loosened"] == ["token:owner"] * len(ways)
