"""The set of working directories of a session or a chat: ordered, without repeats.

An emptied set stays as an empty list: to a chat "no directory" and "all of the session's" are different things.
"""

from portico.doors.ahp.wire.record import Json, items, put
from portico.doors.ahp.wire.versions import Dialect


def set_directory(state: Json, action: Json, _: Dialect) -> Json:
    directories, directory = items(state, "workingDirectories"), action.get("directory")
    if directory is None or directory in directories:
        return state
    return put(state, workingDirectories=[*directories, directory])


def removed_directory(state: Json, action: Json, _: Dialect) -> Json:
    directories, directory = items(state, "workingDirectories"), action.get("directory")
    if directory not in directories:
        return state
    return put(state, workingDirectories=[entry for entry in directories if entry != directory])


def replaced_directory(state: Json, action: Json, _: Dialect) -> Json:
    """Put `replacement` where `directory` was; the set stays a set when it already holds the replacement."""
    directories, replacement = items(state, "workingDirectories"), action.get("replacement")
    if action.get("directory") not in directories or replacement is None:
        return state
    replaced = [replacement if entry == action["directory"] else entry for entry in directories]
    return put(state, workingDirectories=list(dict.fromkeys(replaced)))
