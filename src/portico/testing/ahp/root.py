"""The root channel, alike in both dialects: `root/…` over RootState."""

from portico.testing.ahp.record import Handler, config_changed, setter

HANDLERS: dict[str, Handler] = {
    "root/agentsChanged": setter("agents"),
    "root/activeSessionsChanged": setter("activeSessions"),
    "root/terminalsChanged": setter("terminals"),
    "root/configChanged": config_changed,
}
