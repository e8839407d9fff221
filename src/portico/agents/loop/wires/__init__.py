"""The wire formats of model endpoints: chat completions, OpenAI Responses and Anthropic Messages.

Each is a small codec between the neutral steps of a conversation (`transcript.py`, `reply.py`) and the bytes of its
endpoint. They import nothing else of the loop.
"""
