"""`portico acp`: Portico as an ACP agent on standard input and output, for editors."""

import logging
import sys
from typing import Annotated

import typer

from portico.cli.output import HomeOption, run
from portico.client import Client


def acp(
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="The agent of new sessions. [the host's first]")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="The model of new sessions.")] = None,
    home: HomeOption = None,
) -> None:
    """Serve an editor that speaks the Agent Client Protocol, with the sessions of the running host.

    Editors start this command themselves: Zed, JetBrains, Neovim and others take it as a custom agent.

    Example: portico acp --agent loop
    """
    from portico.client.acp.stdio import serve_stdio  # late: no other verb needs the protocol

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")

    async def serve() -> None:
        async with Client.local(home) as client:
            await client.about()  # fail early, so that the editor can report that no host is running
            await serve_stdio(client, agent, model)

    run(serve())
