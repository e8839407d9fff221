"""New sessions begin where they ask to, where their folder is, or where there is room."""

import pytest

from portico.cluster.host_tables import Info, Peer
from portico.cluster.placement import Needs, choose
from portico.kernel import commands as c
from portico.kernel.errors import NotFound, PlaceAway
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
    ("peers", "place", "labels", "folder", "chosen"),
    [
        (ONE, "", (), None, "h1"),
        (ONE, "", (), "/srv/a/x", "h1"),
        (ONE, "", (), "/elsewhere", "h1"),
        (ONE, "attic", (), None, "h1"),
        (FULL, "", (), None, "h3"),
        ([each for each in FULL if each.id < 3], "", (), None, "h1"),
        (DRAINS, "", (), None, "h3"),
        (LEFT_ALONE, "", (), None, "h1"),
        (TWO, "", (), "/srv/b", "h3"),
        (TWO, "", (), "/srv/b/deep/er", "h3"),
        (TWO, "", (), "/srv/bb", "h1"),
        (TWO, "cellar", (), None, "h3"),
        (TWO, "cellar", (), "/srv/a", "h3"),
        (TWO, "gpu", (), None, "h3"),
        (TWO, "big", (), None, "h3"),
        (TWO, "small", (), None, "h1"),
        (TWO, "moon", (), None, "There is no place or label 'moon'. There are: 'attic', 'barn', 'big', 'cellar'"),
        (TWO, "barn", (), None, "No host of 'barn' is there. The hosts: 'h1' at 'attic' (up, 'small'); 'h2' at"),
        (TWO, "tape", (), None, "No host of 'tape' is there."),
        (TWO, "", (), "/srv/c", "No host of 'barn' is there."),
        (TWO, "", ("",), None, "h1"),
        (TWO, "", ("gpu",), None, "h3"),
        (TWO, "", ("gpu", "big"), None, "h3"),
        (TWO, "", ("small",), None, "h1"),
        (TWO, "cellar", ("gpu",), "/srv/a", "h3"),
        (TWO, "", ("gpu",), "/srv/b", "h3"),
        (TWO, "", ("gpu",), "/srv/a", "No host of 'attic' with the label 'gpu' is there. The hosts: 'h1' at 'attic'"),
        (TWO, "cellar", ("small",), None, "No host of 'cellar' with the label 'small' is there."),
        (TWO, "", ("small", "gpu"), None, "with the label 'small' and 'gpu' is there."),
        (TWO, "", ("tape",), None, "with the label 'tape' is there. The hosts: 'h1' at 'attic' (up, 'small')"),
        (TWO, "", ("moon",), None, "There is no place or label 'moon'."),
        (TWO, "moon", ("gpu",), None, "There is no place or label 'moon'."),
    ],
)
def test_something_new_is_placed(
    peers: list[Peer], place: str, labels: tuple[str, ...], folder: str | None, chosen: str
) -> None:
    try:
        found = choose(Needs(place, labels), folder, peers[0], peers).name
    except (NotFound, PlaceAway) as refused:
        found = refused.message
    assert chosen in found


SHARED = [
    peer(1, "attic", folders=["/srv/a"], labels=["small"]),
    peer(2, "attic", labels=["gpu"], running=1),
    peer(3, "cellar", labels=["gpu", "big"]),
    peer(4, "cellar", labels=["tape"], state="away"),
]


@pytest.mark.parametrize(
    ("place", "labels", "chosen"),
    [
        ("", ("gpu",), "h1"),
        ("", ("gpu", "small"), "h1"),
        ("attic", ("gpu", "small"), "h1"),
        ("cellar", ("gpu", "big"), "h3"),
        ("cellar", ("small",), "No host of 'cellar' with the label 'small' is there."),
        ("cellar", ("tape",), "'h4' at 'cellar' (away, 'tape')"),
    ],
)
def test_hosts_of_one_place_share_a_job_with_their_labels(place: str, labels: tuple[str, ...], chosen: str) -> None:
    """Each work goes to a host with its label; one host need not have them all."""
    try:
        found = choose(Needs(place, labels, spread=True), "/srv/a", SHARED[0], SHARED).name
    except PlaceAway as refused:
        found = refused.message
    assert chosen in found


async def test_a_session_begins_at_the_host_it_asks_for(nodes: Nodes) -> None:
    a, b = await nodes("a"), await nodes("b", place="cellar", labels=["gpu"])
    for place, there in (("", a), ("here", a), ("cellar", b), ("gpu", b)):
        made = await a.host.do(c.StartSession(agent="play", place=place), ADA)
        assert there.host.members.owns(f"session/{made.id}"), place
        assert a.host.has(made.id)
    with pytest.raises(NotFound, match="'cellar', 'gpu', 'here'"):
        await a.host.do(c.StartSession(agent="play", place="moon"), ADA)
