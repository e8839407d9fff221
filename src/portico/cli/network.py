"""The hosts of a session or a job as a table."""

from portico.cli.output import plain, print_table, when
from portico.features.sandboxes.shapes import HostUse

COLUMNS = ["host", "connections", "refused or failed", "sent", "received", "first", "last", "allowed by", "refused by"]


def print_hosts(hosts: list[HostUse]) -> None:
    print_table(
        COLUMNS, [_row(use) for use in hosts], "No connections: none were made from a sandbox or by an 'http' step."
    )


def _row(use: HostUse) -> list[str]:
    name = "other hosts" if use.host == "*" else f"{use.host}:{use.port}"
    by = [plain(", ".join(names)) for names in (use.allowed_by, use.refused_by)]
    return [
        name,
        str(use.count),
        str(use.refused),
        size(use.sent),
        size(use.received),
        when(use.first),
        when(use.last),
        *by,
    ]


def size(count: int) -> str:
    """Bytes in the usual units: `512 B`, `3.2 MB`."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError("unreachable")
