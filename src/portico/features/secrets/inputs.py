"""Secret inputs of jobs: the values that people give when they start a job. The log contains references to them.

The attack: a reader of the log, an export or a page sees a value, or a job names the reference of another one to get
its value. So values are in a private file of the home folder, a reference is random, and a caller can only pass on the
references that its own job has.
"""

from collections.abc import Collection, Iterable, Mapping
from secrets import token_hex

from msgspec import Struct

from portico import limits
from portico.features.secrets.private_file import PrivateFile
from portico.features.secrets.store import check_value
from portico.kernel.errors import BadRequest, Conflict, NotFound
from portico.server.home import Home

FILE = "input-secrets.json"
_DAY = 24 * 3600 * 1000


class _Input(Struct):
    name: str
    used: int
    """When a job was started with it, in milliseconds since the epoch."""
    value: str

    def __repr__(self) -> str:
        return f"_Input({self.name!r})"


class InputStore:
    def __init__(self, home: Home) -> None:
        self._file = PrivateFile(home, FILE, dict[str, _Input])

    def keep(
        self, fresh: Mapping[str, str], known: Collection[str], now: int, in_use: Collection[str]
    ) -> dict[str, str]:
        """Store values by the names of their inputs and return their references. `known`: references that are used
        again. `in_use`: references of unfinished jobs, which are not removed."""
        for name, value in fresh.items():
            try:
                check_value(value)
            except BadRequest as error:
                raise BadRequest(f"The input {name!r}: {error.message}", field="inputs") from None
        with self._file.editing() as entries:
            for reference in known:
                _entry(entries, reference).used = now
            found = {name: _reference_of(entries, name, value) for name, value in fresh.items()}
            for name, reference in found.items():
                entries[reference] = _Input(name, now, fresh[name])
            self._remove(entries, _expired(entries, now), in_use)
            oldest = sorted(entries, key=lambda reference: entries[reference].used)
            free = [each for each in oldest if each not in {*in_use, *known, *found.values()}]
            if len(entries) - len(free) > limits.INPUT_SECRETS:
                words = f"{limits.INPUT_SECRETS} secret inputs of unfinished jobs are stored, which is the most."
                raise Conflict(f"{words} Stop some of those jobs, or use 'portico secrets set'.")
            self._remove(entries, free[: max(0, len(entries) - limits.INPUT_SECRETS)], ())
        return found

    def read(self, references: Iterable[str]) -> list[str]:
        entries = self._file.read()
        return [_entry(entries, each).value for each in references]

    def values(self) -> dict[str, list[str]]:
        """All values by the names of their inputs, for masking."""
        found: dict[str, list[str]] = {}
        for each in self._file.read().values():
            found.setdefault(each.name, []).append(each.value)
        return found

    def expired(self, now: int) -> list[str]:
        return _expired(self._file.read(), now)

    def remove(self, references: Collection[str], now: int) -> None:
        """Remove values that are still expired."""
        with self._file.editing() as entries:
            self._remove(entries, [each for each in _expired(entries, now) if each in references], ())

    def stamp(self) -> object:
        """A value that changes with the file."""
        return self._file.stamp()

    @staticmethod
    def _remove(entries: dict[str, _Input], references: Iterable[str], in_use: Collection[str]) -> None:
        for each in references:
            if each not in in_use:
                del entries[each]


def _expired(entries: Mapping[str, _Input], now: int) -> list[str]:
    return [key for key, each in entries.items() if now - each.used > limits.INPUT_SECRET_DAYS * _DAY]


def _entry(entries: Mapping[str, _Input], reference: str) -> _Input:
    found = entries.get(reference)
    if found is None:
        name = reference.partition(":")[2].rpartition("-")[0] or reference
        why = "This host does not have it (any more): start the job again with its value."
        raise NotFound("secret input", name, why)
    return found


def _reference_of(entries: Mapping[str, _Input], name: str, value: str) -> str:
    """Equal values of one name are stored once: a job that is started every hour does not fill the file."""
    same = (key for key, each in entries.items() if (each.name, each.value) == (name, value))
    return next(same, f"secret:{name}-{token_hex(8)}")
