"""Every bound has a reason, is used, and is passed by one in a test."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UNITS = {"KIB", "MIB"}


def constants() -> dict[str, str]:
    """Name -> the text that stands right behind it (or behind the group it belongs to)."""
    found: dict[str, str] = {}
    for path in ("kernel/limits.py", "limits.py"):
        new = _constants(ROOT / "src/portico" / path)
        assert not found.keys() & new.keys(), "a limit is in one of the two files"
        found |= new
    return found


def _constants(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    group: list[str] = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            group.append(node.targets[0].id)
            found[group[-1]] = ""
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.update(dict.fromkeys(group, str(node.value.value)))
            group = []
    return found


def text_of(folder: str) -> str:
    skipped = {"limits.py", "test_limits.py"}
    return "\n".join(path.read_text() for path in sorted((ROOT / folder).rglob("*.py")) if path.name not in skipped)


@pytest.mark.parametrize("name", sorted(set(constants()) - UNITS))
def test_a_bound_has_a_reason(name: str) -> None:
    assert len(constants()[name]) > 20, f"{name} says nothing about its figure"


def test_every_bound_is_used() -> None:
    text = text_of("src/portico")
    unused = {name for name in set(constants()) - UNITS if not re.search(rf"limits\.{name}\b", text)}
    assert unused == set()


def test_every_bound_of_the_log_and_the_host_is_tried() -> None:
    """Each is set to something small, or the clock is moved, and it is passed by one."""
    features = ("approvals", "board", "changes", "files", "projects", "search", "terminals", "transcripts")
    folders = ("kernel", "cluster/postgres", *(f"features/{name}" for name in features))
    texts = {folder: text_of(f"src/portico/{folder}") for folder in folders}
    assert [folder for folder, text in texts.items() if not text] == []
    inner = "".join(texts.values())
    tests = text_of("tests")
    used = {name for name in set(constants()) - UNITS if re.search(rf"limits\.{name}\b", inner)}
    untried = {name for name in used if not re.search(rf'"{name}"|limits\.{name}\b', tests)}
    assert untried == set()


def test_the_kernel_has_the_limits_that_it_reads_and_no_others() -> None:
    """Everything else belongs to a feature or a door (`portico.limits`)."""
    read = set(re.findall(r"\blimits\.([A-Z_]+)", text_of("src/portico/kernel")))
    assert set(_constants(ROOT / "src/portico/kernel/limits.py")) - UNITS - read == set()
