"""The site of the documentation: every page can be reached, and nothing is fetched from elsewhere."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
CONFIG = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]


def pages(nav: list[Any]) -> list[str]:
    found: list[str] = []
    for entry in nav:
        for value in entry.values():
            found += pages(value) if isinstance(value, list) else [value]
    return found


def test_every_page_is_in_the_menu_once() -> None:
    docs = ROOT / CONFIG["docs_dir"]
    assert sorted(pages(CONFIG["nav"])) == sorted(str(path.relative_to(docs)) for path in docs.rglob("*.md"))


@pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="needs the extra portico[docs]: make docs")
def test_the_site_is_built_without_a_broken_link_and_asks_nobody_else(tmp_path: Path) -> None:
    config = (ROOT / "zensical.toml").read_text("utf-8")
    (tmp_path / "zensical.toml").write_text(config)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    command = [str(Path(sys.executable).parent / "zensical"), "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    html = [path.read_text("utf-8") for path in (tmp_path / "site").rglob("*.html")]
    assert len(html) > 20
    for text in html:
        assert not re.findall(r'<(?:link|script|img|iframe)[^>]+(?:href|src)="?(?:https?:)?//[^" >]+', text)
    assert (tmp_path / "site" / "search.json").stat().st_size > 100_000
