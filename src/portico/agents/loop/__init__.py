"""The built-in agent `loop`: works with any OpenAI-compatible chat model, also weak ones.

extract and protocol are plain functions; endpoint, discovery and asking reach models; tools and roots act on files;
conversation and run put them together. Imports the agents' interface, the workspace and the local models.
"""

from portico.agents.loop.agent import LoopAgent, loop

__all__ = ["LoopAgent", "loop"]
