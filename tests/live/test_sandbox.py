"""Real agents inside a sandbox: they answer, and a command that they run leaves it nowhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from portico.features.sandboxes.feature import Sandboxes
from portico.sandbox import egress
from portico.server.settings import SandboxSettings
from portico.testing.model import ModelServer
from tests.agents.acp_agent import said
from tests.features import feature
from tests.live.host import agent_of, hosting, play
from tests.live.programs import LIVE, QWEN, Live
from tests.live.test_acp import TITLES
from tests.sandboxes.attack import Attacked, attacked
from tests.sandboxes.later import Planted
from tests.sandboxes.test_host_git import PLACES, visited

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some agents contact their vendor, which the policy allows: no name has an address here."""

    async def nowhere(host: str, port: int) -> list[str]:
        raise OSError(f"{host!r} has no address in tests")

    monkeypatch.setattr(egress, "_system", lambda: nowhere)


@pytest.fixture
def attack(tmp_path: Path) -> Iterator[Attacked]:
    with attacked(tmp_path) as found:
        yield found


@pytest.mark.parametrize("live", [*LIVE, QWEN], ids=lambda live: live.name)
async def test_an_agent_works_in_a_sandbox_and_does_not_leave_it(live: Live, tmp_path: Path, attack: Attacked) -> None:
    result = attack.work / "result.json"
    planted = Planted(attack.work)
    (attack.work / "attack.sh").write_text(f"{attack.line} > {result}; sh later.sh\n")
    run = {"calls": [{"kind": "execute", "args": {"command": "sh attack.sh"}}]}
    async with ModelServer(TITLES) as model, hosting(tmp_path, agent_of(tmp_path, live, model.url)) as host:
        port = int(model.url.rpartition(":")[2])
        feature(host, Sandboxes).configure(SandboxSettings(ports=[port]))
        mode = "strict" if live is QWEN else "project"  # it contacts a host of its own, about which a person is asked
        session = await host.start(by="test", cwd=str(attack.work), config={"sandbox": mode})
        turn = await play(session, {"say": "hello"})
        assert (turn.outcome, said(turn)) == ("completed", "hello"), turn.error
        turn = await play(session, run, {"say": "done"}, allow=True)
        assert turn.outcome == "completed", turn.error
        for folder in (attack.work, attack.work / "new", attack.work / "module"):
            assert await visited(host, folder, planted.marks, PLACES) == {}
    attack.check(result.read_text())
    planted.check()
