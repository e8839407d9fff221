"""The AHP door stands in floors: what runs on one may import those below it, never those above."""

import ast
from pathlib import Path

import portico.doors.ahp

AHP = Path(portico.doors.ahp.__file__).parent
FLOORS = ("wire", "view", "act", "connection")
HOST_FREE = ("portico.host", "portico.log", "portico.kernel.commands")


def imported(path: Path) -> set[str]:
    """What is imported when the code runs; `if TYPE_CHECKING` is for the reader."""
    found: set[str] = set()
    tree = ast.parse(path.read_text())
    typed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in typed and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_each_floor_imports_only_those_below() -> None:
    wrong = [
        (path.relative_to(AHP).as_posix(), name)
        for at, floor in enumerate(FLOORS)
        for path in (AHP / floor).glob("*.py")
        for name in imported(path)
        if name.startswith(tuple(f"portico.doors.ahp.{above}." for above in FLOORS[at + 1 :]))
    ]
    assert wrong == []


def test_the_wire_knows_no_host() -> None:
    found = {path.name: imported(path) for path in (AHP / "wire").glob("*.py")}
    assert {name for names in found.values() for name in names if name.startswith(HOST_FREE)} == set()


def test_every_module_stands_on_a_floor() -> None:
    assert {path.name for path in AHP.glob("*.py")} == {"__init__.py", "door.py"}
