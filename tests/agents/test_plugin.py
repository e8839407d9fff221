"""A stranger's package brings an agent through the entry point, as docs/guide/agents.md says."""

import sys
import tomllib
from pathlib import Path

import pytest

from portico.agents.agent import AgentContext
from portico.agents.registry import discover
from portico.kernel.errors import NotFound
from portico.kernel.events import Message
from portico.testing.fixtures import HostOpener
from tests.agents.acp_agent import said, waiting_approval

PLUGIN = Path(__file__).with_name("plugin")
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "agents.md"


def copied_from_the_guide(folder: Path) -> Path:
    """The two files that a reader of the guide writes."""
    _, _, text = GUIDE.read_text().partition("## Writing an agent")
    folder.mkdir()
    for name, language in (("pyproject.toml", "toml"), ("portico_echo.py", "python")):
        (folder / name).write_text(text.partition(f"```{language}\n")[2].partition("```")[0])
    return folder


@pytest.fixture(params=["package", "guide"])
def installed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an installer leaves: the module on the path, and the metadata that names its entry points."""
    plugin = PLUGIN if request.param == "package" else copied_from_the_guide(tmp_path / "plugin")
    project = tomllib.loads((plugin / "pyproject.toml").read_text())["project"]
    info = tmp_path / "site" / f"portico_echo-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = project["entry-points"]["portico.agents"].items()
    (info / "entry_points.txt").write_text("[portico.agents]\n" + "".join(f"{name} = {to}\n" for name, to in points))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.syspath_prepend(str(plugin))
    monkeypatch.delitem(sys.modules, "portico_echo", raising=False)


@pytest.mark.usefixtures("installed")
async def test_a_strangers_agent_is_found_and_answers(open_host: HostOpener, tmp_path: Path) -> None:
    context = AgentContext(tmp_path, {"echo": {"greeting": "I heard"}})
    assert "echo" in [agent.id for agent in discover(context)]
    host = await open_host(*discover(context, ["echo"]))
    session = await host.start(by="test", cwd=str(tmp_path))
    turn = await session.wait(await session.send(Message("hello you"), by="test"))
    assert said(turn) == "I heard: hello you "
    loud = await session.send(Message("hello", model="loud"), by="test")
    await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
    assert said(await session.wait(loud)) == "I heard: HELLO "


def test_without_the_package_there_is_no_such_agent(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        discover(AgentContext(tmp_path, {}), ["echo"])


def install_broken(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> None:
    info = folder / "aaa_broken-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: aaa-broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[portico.agents]\n{name} = aaa_broken:make\n")
    (folder / "aaa_broken.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "aaa_broken", raising=False)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("make = 1", "TypeError"),
        ("def make(context): raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("def other(context): return []", "AttributeError"),
        ("def make(context: return []", "SyntaxError"),
    ],
)
async def test_a_plugin_that_cannot_be_loaded_is_listed_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    """One that raised something else than ImportError kept the host from starting; one that did was a line in a log."""
    install_broken(tmp_path / "site", monkeypatch, "aaa", code)
    found = {agent.id: agent for agent in discover(AgentContext(tmp_path, {}))}
    info = await found["aaa"].describe()
    assert info.missing is not None
    assert words in info.missing
    assert "'aaa-broken'" in info.missing
    ids = list(found)
    assert ids.index("loop") < ids.index("aaa") < ids.index("demo"), "no name puts a plugin first"


def test_a_plugin_does_not_take_a_name_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install_broken(tmp_path / "site", monkeypatch, "demo", "import no_such_module")
    assert [agent.id for agent in discover(AgentContext(tmp_path, {}), ["demo"])] == ["demo"]
    assert "aaa_broken:make is left out" in caplog.text
