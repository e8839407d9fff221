"""The built-in agent `loop`: works with any model behind chat completions, Responses or Messages, also weak ones.

protocol, arguments, written_calls, extract and thoughts read answers; wires has the codecs; endpoint, refusal,
discovery, windows and model_call reach models; transcript, record and compaction hold the conversation; tools, roots
and act do the work; conversation and run put them together. Imports the agents' interface, the workspace and the local
models.
"""

from portico.agents.loop.agent import LoopAgent, loop

__all__ = ["LoopAgent", "loop"]
