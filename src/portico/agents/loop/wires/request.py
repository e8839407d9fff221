"""One request to a model, in neutral terms and with the messages of its wire format."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from portico.agents.loop.reply import Feature, WireName
from portico.kernel.events import Json, ToolSpec


class CompletionRequest(Struct, frozen=True):
    """`tools` and `schema` are asked for only where the endpoint is believed to know them."""

    model: str
    messages: Sequence[Json]
    tools: Sequence[ToolSpec] = ()
    schema: Json | None = None
    usage: bool = True
    temperature: float | None = None
    max_tokens: int | None = None
    wire: WireName = "chat"
    system: str = ""
    """For wire formats that have a field for it."""
    pictures: bool = False
    """Whether the messages contain some."""
    lacks: Collection[Feature] = ()
    """What the endpoint has rejected lately."""
    cache: str = ""
    """The same for all requests of one session: endpoints route them to the same prompt cache."""
