"""The scripted model: real agents connect to it in their own wire format and get the answers of a script.

A request is parsed into a neutral `ModelRequest`, a `Step` of the script becomes a neutral `Answer`, and one small
encoder per wire format encodes it. `ModelServer` is the loopback server around that.
"""

from portico.testing.model.request import ModelRequest, RequestMessage
from portico.testing.model.script import Error, First, ModelRule, Script, ScriptedCall, ScriptedUsage, Step, load
from portico.testing.model.server import ModelServer, Received, serve

__all__ = [
    "Error",
    "First",
    "ModelRequest",
    "ModelRule",
    "ModelServer",
    "Received",
    "RequestMessage",
    "Script",
    "ScriptedCall",
    "ScriptedUsage",
    "Step",
    "load",
    "serve",
]
