"""The script of the guide does what the guide says."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.doors.ahp.conftest import Served

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "ahp.md"


@pytest.mark.parametrize("version", ["1", "0.9.0"])
async def test_the_script(served: Served, version: str, capsys: pytest.CaptureFixture[str]) -> None:
    [script] = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    module: dict[str, Any] = {"__name__": "talk"}
    exec(compile(script, str(GUIDE), "exec"), module)
    talk = module["Talk"](version)
    await talk.hello(served.url)
    await talk.converse("write something")
    assert talk.text == "done"
    await served.restart()
    result = await talk.come_back(served.url)
    assert result["type"] == "replay"
    assert "approving Write file?" in capsys.readouterr().out
    await talk.socket.close()
