"""The site of the documentation: every page can be reached, and nothing is fetched from elsewhere."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


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
    front = (tmp_path / "site" / "index.html").read_text("utf-8")
    for path in (ROOT / "docs").rglob("*.md"):
        address = str(path.relative_to(ROOT / "docs").with_suffix(".html"))
        assert address == "index.html" or f'"./{address}"' in front, f"{address} is not in the menu"
    assert (tmp_path / "site" / "search.json").stat().st_size > 100_000
