"""One word for one thing, and words that an engineer would search for."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.test_imports import ROOT, modules, name_of

REPOSITORY = ROOT.parents[1]
GENERATED = {"portico.doors.ahp.wire.types", "portico.doors.ahp.wire.types_v1"}
"""After the protocol, which has a name in each of its versions."""
PUBLISHED = {"Model", "Check"}
"""Of entries, whose published schema has these names, and of agents, whose plugins import them."""
METAPHORS = re.compile(r"\b(house|deeds?|tellers?|breath|retelling|patience|strike)\b")
OLD_NAMES = {"docs/guide/upgrade.md"}
"""Says what things were called."""
TEXTS = ("src/portico/**/*.py", "web/src/**/*.ts", "docs/**/*.md", "*.md")


def test_a_class_name_is_that_of_one_class() -> None:
    found = defaultdict[str, list[str]](list)
    for path in modules():
        if name_of(path) not in GENERATED:
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(name_of(path))
    assert {name: where for name, where in found.items() if len(where) > 1 and name not in PUBLISHED} == {}


def test_no_file_is_named_after_what_was_done() -> None:
    """`stored.py`, `held.py`, `spoken.py`: whoever searches for what is inside does not find it."""
    nouns = {"feed", "markdown", "speed", "token", "scripted", "embedded"}  # an agent, and a term
    stems = {path.stem for path in (*modules(), *(REPOSITORY / "web/src").rglob("*.ts"))}
    assert {stem for stem in stems - nouns if re.fullmatch(r"[a-z]+(ed|ten|ken|told|held|kept|wn)", stem)} == set()


def test_no_metaphors() -> None:
    paths = [path for pattern in TEXTS for path in REPOSITORY.glob(pattern) if path.name != "CHANGELOG.md"]
    found = [
        f"{path.relative_to(REPOSITORY)}: {word[0]}"
        for path in paths
        if str(path.relative_to(REPOSITORY)) not in OLD_NAMES
        for word in METAPHORS.finditer(path.read_text())
    ]
    assert found == []


def test_pages_are_styled_by_files_that_are_there() -> None:
    pages, public = REPOSITORY / "web", REPOSITORY / "web/public"
    named = {
        Path(href).name for page in pages.glob("*.html") for href in re.findall(r'href="(\S+\.css)"', page.read_text())
    }
    assert named
    assert {name for name in named if not (public / name).exists()} == set()
