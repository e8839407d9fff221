"""`portico model-server`: a scripted model for developing without spending money."""

from pathlib import Path
from typing import Annotated

import typer


def model_server(
    port: Annotated[int, typer.Option("--port", "-p", help="The port; 0 picks a free one.")] = 8899,
    script: Annotated[
        Path | None, typer.Option(help="Rules (JSON or YAML); see docs/reference/model-server.md.")
    ] = None,
) -> None:
    """Serve scripted answers in the wire formats of the well-known model APIs.

    Example: portico model-server --script answers.yaml
    """
    from portico.testing.model import load, serve

    serve(load(script) if script else None, port=port)
