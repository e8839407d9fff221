"""docs/guide/agents.md says what there is: every setting, preset and MCP tool, and an example that is really run."""

import re
import tomllib
from pathlib import Path

import msgspec

from portico.agents.acp.program import PRESETS, Program, programs
from portico.agents.agent import AgentContext
from portico.agents.copilot.option import CopilotOptions, read
from portico.agents.registry import discover
from portico.agents.servers import mcp_servers
from portico.doors.mcp import tools
from portico.features.jobs.load import load_entry, parse
from portico.features.jobs.models import model_id

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "agents.md").read_text("utf-8")
PLUGIN = Path(__file__).with_name("plugin")


def test_every_setting_and_every_preset_is_described() -> None:
    for shape in (Program, CopilotOptions):
        for field in msgspec.structs.fields(shape):
            assert f"`{field.name}`" in PAGE or f"{field.name} =" in PAGE or field.name in ("install", "provider")
    for name, preset in PRESETS.items():
        assert f"`acp:{name}`" in PAGE
        assert preset.command[0] in PAGE


def test_every_mcp_tool_is_described() -> None:
    source = Path(tools.__file__).read_text("utf-8")
    for name in re.findall(r'^ +"(\w+)": Offer\(', source, re.MULTILINE):
        assert f"`{name}`" in PAGE


def test_the_settings_in_the_page_are_valid(tmp_path: Path) -> None:
    """Reported: a host with the page's own `[agents.mcp.NAME]` did not start ("no such agent is installed")."""
    for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL):
        settings = tomllib.loads(block).get("agents", {})
        assert [agent.id for agent in discover(AgentContext(tmp_path, settings), ["demo"])] == ["demo"]
        programs({"acp": settings.get("acp", {})})
        mcp_servers(settings)
        read(settings)


def test_the_job_in_the_page_is_a_valid_entry() -> None:
    block = next(block for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL) if '"jobs"' in block)
    entry = load_entry(parse(block))
    agents = {model_id(entry, task.model).partition("/")[0] for task in entry.tasks.values() if task.model is not None}
    assert agents == {"copilot", "acp:goose", "acp:gemini"}


def test_the_example_is_the_plugin_of_the_tests() -> None:
    """Without types and remarks, to be short; the words are the same."""
    example = next(block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "EchoAgent" in block)
    real = (PLUGIN / "portico_echo.py").read_text("utf-8")
    lines = [line.split("  #")[0].split(" # ")[0].strip() for line in example.splitlines()]
    for line in lines:
        if line and not line.startswith(("from", "def", "async def")):
            assert line in real, line
