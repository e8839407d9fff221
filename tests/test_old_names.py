"""Plugins that were written for 0.2 import the old names of modules."""

import subprocess
import sys
import warnings
from importlib import import_module

import pytest

from portico import limits
from portico.kernel import limits as kernel_limits
from portico.old_names import MOVED, new_name

OLD = {
    "portico.host.agent": "portico.kernel.agent",
    "portico.host.host": "portico.kernel.host",
    "portico.host.decide.turn": "portico.kernel.decide.turn",
    "portico.events": "portico.kernel.events",
    "portico.commands": "portico.kernel.commands",
    "portico.errors": "portico.kernel.errors",
    "portico.log.log": "portico.kernel.log.log",
    "portico.log.sqlite": "portico.kernel.log.sqlite",
    "portico.doors.door": "portico.server.door",
    "portico.doors.route": "portico.server.route",
    "portico.doors.app": "portico.server.app",
    "portico.approvals.policy": "portico.features.approvals.policy",
    "portico.automation.automations": "portico.features.automations.automations",
    "portico.jobs": "portico.features.jobs",
    "portico.settings": "portico.server.settings",
    "portico.home": "portico.server.home",
}


@pytest.mark.parametrize("old", OLD)
def test_an_old_name_is_the_same_module(old: str) -> None:
    new = import_module(OLD[old])
    sys.modules.pop(old, None)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert import_module(old) is new
    assert f"{old} is now {OLD[old]}." in [str(each.message) for each in seen]
    assert new.__spec__ is not None
    assert (new.__name__, new.__spec__.name) == (OLD[old], OLD[old])


NEVER = ["portico.nothing", "portico.host.nothing", "portico.doors.nothing", "portico.kernel.nothing"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NEVER)
def test_a_name_that_never_existed_is_not_found(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=name.rpartition(".")[2]):
        import_module(name)


def test_a_plugin_in_a_fresh_process() -> None:
    """The order of the imports does not matter: classes exist once."""
    code = """
from portico.host.agent import AgentInfo
from portico.errors import AgentError
import portico.events as e
import portico.kernel.agent, portico.kernel.errors, portico.kernel.events
kernel = portico.kernel
print(AgentInfo is kernel.agent.AgentInfo, AgentError is kernel.errors.AgentError, e is kernel.events)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True True True\n"


def test_all_limits_are_found_where_they_were() -> None:
    assert (limits.TERMINALS, vars(limits)["__getattr__"]("MESSAGE_BYTES")) == (100, kernel_limits.MESSAGE_BYTES)
    with pytest.raises(AttributeError, match="NOTHING"):
        _ = limits.NOTHING  # type: ignore[attr-defined]


def test_every_old_name_leads_to_a_module() -> None:
    for old in MOVED:
        assert import_module(new_name(f"portico.{old}") or "") is not None
