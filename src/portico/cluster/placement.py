"""Where a new session, job or terminal begins: at a host of the place or with the label it asks for, else where its
folder is, else here; and of several the one with the most room. Pure."""

from collections.abc import Sequence
from pathlib import PurePath

from portico.cluster.host_tables import Peer
from portico.errors import NotFound, PlaceAway


def choose(wanted: str, folder: str | None, me: Peer, peers: Sequence[Peer]) -> Peer:
    """`peers` are all hosts, this one included."""
    found = _asked(wanted, peers) if wanted else _seeing(folder, me, peers)
    there = [peer for peer in found if peer.alive and peer.state == "up" and (peer.info.link or peer.id == me.id)]
    roomy = [peer for peer in there if _room(peer) > 0]
    if me in (roomy or there):
        return me
    if not there and me in found:
        return me  # it drains, and nobody else of its place is there
    if not there:
        names = ", ".join(repr(each.name) for each in found)
        raise PlaceAway(f"None of the hosts that could take this session ({names}) is there; start one of them.")
    return max(roomy or there, key=_room)


def _room(peer: Peer) -> int:
    return peer.info.capacity - peer.info.running


def _asked(wanted: str, peers: Sequence[Peer]) -> list[Peer]:
    found = [peer for peer in peers if wanted == peer.place or wanted in peer.info.labels]
    if not found:
        known = sorted({peer.place for peer in peers} | {label for peer in peers for label in peer.info.labels})
        raise NotFound("place or label", wanted, f"There are: {', '.join(map(repr, known))}.")
    return found


def _seeing(folder: str | None, me: Peer, peers: Sequence[Peer]) -> list[Peer]:
    """Hosts of one place see the same files. A folder that nobody has as a workspace is looked for here."""
    places = {peer.place for peer in peers if folder is not None and has_folder(peer.info.folders, folder)}
    if me.place in places or not places:
        places = {me.place}
    return [peer for peer in peers if peer.place in places]


def has_folder(workspaces: Sequence[str], folder: str) -> bool:
    return any(PurePath(folder).is_relative_to(each) for each in workspaces)
