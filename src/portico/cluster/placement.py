"""Chooses the host of a new session, job or terminal: one with the requested place and labels, else one that has its
folder, else this one; among several, the one with the most free capacity. Pure."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from portico.cluster.host_tables import Peer
from portico.kernel.errors import NotFound, PlaceAway


class Needs(NamedTuple):
    """Requirements for the host of a new session, job or terminal."""

    place: str = ""
    labels: tuple[str, ...] = ()
    """Empty ones do not count."""
    spread: bool = False
    """Several hosts of one place share the work, and each label may belong to a different one."""


def choose(needs: Needs, folder: str | None, me: Peer, peers: Sequence[Peer]) -> Peer:
    """`peers` are all hosts, this one included."""
    seeing = _seeing(needs, folder, me, peers)
    found = [peer for peer in seeing if serves(needs, peer, peers)]
    there = [peer for peer in found if peer.alive and peer.state == "up" and (peer.info.link or peer.id == me.id)]
    roomy = [peer for peer in there if _room(peer) > 0]
    if me in (roomy or there):
        return me
    if not there and me in found:
        return me  # it drains, and no other host of its place is available
    if not there:
        raise _unserved(needs, seeing, peers)
    return max(roomy or there, key=_room)


def serves(needs: Needs, peer: Peer, peers: Sequence[Peer]) -> bool:
    """Return whether a host has the place and the labels; if several hosts share a job, whether its place has them."""
    if needs.place not in ("", peer.place, *peer.info.labels):
        return False
    others = [each for each in peers if each.place == peer.place and each.alive] if needs.spread else []
    offered = {label for each in (peer, *others) for label in each.info.labels}
    return offered.issuperset(filter(None, needs.labels))


def offers(peers: Sequence[Peer]) -> set[tuple[int, str]]:
    """Return the labels of the hosts that accept new work."""
    there = (peer for peer in peers if peer.alive and peer.state == "up" and peer.info.link)
    return {(peer.id, label) for peer in there for label in peer.info.labels}


def listed(peers: Sequence[Peer]) -> str:
    """List the hosts with their labels, for error messages."""
    hosts = [peer.member(0) for peer in peers]
    return "; ".join(
        f"{each.name!r} at {each.place!r} ({', '.join((each.state, *map(repr, each.labels)))})" for each in hosts
    )


def _room(peer: Peer) -> int:
    return peer.info.capacity - peer.info.running


def _unserved(needs: Needs, seeing: Sequence[Peer], peers: Sequence[Peer]) -> NotFound | PlaceAway:
    known = {label for peer in peers for label in (peer.place, *peer.info.labels)}
    for wanted in filter(None, (needs.place, *needs.labels)):
        if wanted not in known:
            return NotFound("place or label", wanted, f"There are: {', '.join(map(repr, sorted(known)))}.")
    labels = " and ".join(repr(label) for label in needs.labels if label)
    places = " or ".join(sorted({repr(peer.place) for peer in seeing})) if not needs.place else repr(needs.place)
    wanted = f"{places} with the label {labels}" if labels else places
    return PlaceAway(f"No host of {wanted} is there. The hosts: {listed(peers)}.")


def _seeing(needs: Needs, folder: str | None, me: Peer, peers: Sequence[Peer]) -> list[Peer]:
    """Return the hosts that can access the folder. Hosts of one place see the same files. A folder that is no workspace
    of any host is expected here. The folder is ignored for a named place, or for a label without a folder."""
    if needs.place or (folder is None and any(needs.labels)):
        return list(peers)
    places = {peer.place for peer in peers if folder is not None and has_folder(peer.info.folders, folder)}
    if me.place in places or not places:
        places = {me.place}
    return [peer for peer in peers if peer.place in places]


def has_folder(workspaces: Sequence[str], folder: str) -> bool:
    return any(PurePath(folder).is_relative_to(each) for each in workspaces)
