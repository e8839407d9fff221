"""New sessions begin where they ask to, where their folder is, or where there is room."""

import pytest

from portico import commands as c
from portico.cluster.host_tables import Info, Peer
from portico.cluster.placement import choose
from portico.errors import NotFound, PlaceAway, PorticoError
from tests.cluster.conftest import Nodes
from tests.cluster.test_cluster import ADA


def peer(number: int, place: str, *, running: int = 0, state: str = "up", **more: object) -> Peer:
    info = Info(f"http://10.0.0.{number}", running=running, capacity=10, **more)  # type: ignore[arg-type]
    return Peer(number, f"h{number}", place, state, state != "away", 0, 0, info)


ONE = [peer(1, "attic", folders=["/srv/a"]), peer(2, "attic", running=3), peer(3, "attic", running=1)]
FULL = [peer(1, "attic", running=10), peer(2, "attic", running=10), peer(3, "attic", running=9)]
DRAINS = [peer(1, "attic", state="draining"), peer(2, "attic", running=3), peer(3, "attic", running=1)]
LEFT_ALONE = [peer(1, "attic", state="draining"), peer(2, "cellar")]
TWO = [
    peer(1, "attic", folders=["/srv/a"], labels=["small"]),
    peer(2, "cellar", folders=["/srv/b"], labels=["gpu"], running=5),
    peer(3, "cellar", labels=["gpu", "big"], running=2),
    peer(4, "barn", folders=["/srv/c"], labels=["tape"], state="away"),
]


@pytest.mark.parametrize(
    ("peers", "wanted", "folder", "chosen"),
    [
        (ONE, "", None, "h1"),
        (ONE, "", "/srv/a/x", "h1"),
        (ONE, "", "/elsewhere", "h1"),
        (ONE, "attic", None, "h1"),
        (FULL, "", None, "h3"),
        ([each for each in FULL if each.id < 3], "", None, "h1"),
        (DRAINS, "", None, "h3"),
        (LEFT_ALONE, "", None, "h1"),
        (TWO, "", "/srv/b", "h3"),
        (TWO, "", "/srv/b/deep/er", "h3"),
        (TWO, "", "/srv/bb", "h1"),
        (TWO, "cellar", None, "h3"),
        (TWO, "cellar", "/srv/a", "h3"),
        (TWO, "gpu", None, "h3"),
        (TWO, "big", None, "h3"),
        (TWO, "small", None, "h1"),
        (TWO, "moon", None, NotFound),
        (TWO, "barn", None, PlaceAway),
        (TWO, "tape", None, PlaceAway),
        (TWO, "", "/srv/c", PlaceAway),
    ],
)
def test_a_new_session_is_placed(
    peers: list[Peer], wanted: str, folder: str | None, chosen: str | type[PorticoError]
) -> None:
    if isinstance(chosen, str):
        assert choose(wanted, folder, peers[0], peers).name == chosen
        return
    with pytest.raises(chosen):
        choose(wanted, folder, peers[0], peers)


async def test_a_session_begins_at_the_host_it_asks_for(nodes: Nodes) -> None:
    a, b = await nodes("a"), await nodes("b", place="cellar", labels=["gpu"])
    for place, there in (("", a), ("here", a), ("cellar", b), ("gpu", b)):
        made = await a.host.do(c.StartSession(agent="play", place=place), ADA)
        assert there.host.members.owns(f"session/{made.id}"), place
        assert a.host.has(made.id)
    with pytest.raises(NotFound, match="'cellar', 'gpu', 'here'"):
        await a.host.do(c.StartSession(agent="play", place="moon"), ADA)
