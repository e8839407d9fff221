"""Estimates the cost of tokens if the agent does not report it, from `genai-prices` (extra `portico[prices]`).

An estimate is marked as one and names its price list. The cost of a model that is not in the list is "unknown",
never 0. The library takes a third of a second and 27 MB to import: a thread imports it when a price is first needed.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import Collection, Sequence
from datetime import date
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

logger = logging.getLogger("portico.usage")


_MODELS = 1_000
"""Cache size: model names. It is bounded because agents report arbitrary names."""


class TokenUse(NamedTuple):
    model: str
    input: int
    """Includes the cached tokens."""
    output: int
    cached: int


@cache
def source() -> str:
    """Return the name and release of the price list; empty: none is installed."""
    try:
        return f"genai-prices {version('genai-prices')}"
    except PackageNotFoundError:
        return ""


class PriceList(NamedTuple):
    """The price list used for estimates."""

    name: str = ""
    """Name and release; empty: none is installed."""
    date: str = ""
    """Date of its newest price that is valid today; empty: it was not used for an estimate."""
    matched: dict[str, str] = {}
    """The entries used for models that have another name in the list: `gpt-5.2-codex` is priced as `gpt-5.2`."""


async def price_list(estimated: Collection[str]) -> PriceList:
    """Return the price list to show with estimates of these models."""
    if not estimated or not source():
        return PriceList(source())
    return await asyncio.to_thread(_list_for, estimated)


def _list_for(models: Collection[str]) -> PriceList:
    found = {model: entry for model in models if (entry := _entry(model))}
    return PriceList(source(), newest_price(), {model: entry for model, entry in found.items() if entry != model})


@cache
def newest_price() -> str:
    """Return the newest start date of a price (YYYY-MM-DD). The list itself has no date."""
    from genai_prices.data_snapshot import get_snapshot

    priced = [model.prices for provider in get_snapshot().providers for model in provider.models]
    listed = [price.constraint for prices in priced if isinstance(prices, list) for price in prices]
    since = [day for each in listed if isinstance(day := getattr(each, "start_date", None), date)]
    return str(max((day for day in since if day <= date.today()), default=""))


@lru_cache(_MODELS)
def _entry(model: str) -> str:
    calculate, usage = _library()
    for name in _names(model):
        with contextlib.suppress(LookupError, ValueError):
            return str(calculate(usage(input_tokens=1, output_tokens=1), model_ref=name).model.id)
    return ""


async def dollars(used: Sequence[TokenUse]) -> list[float | None]:
    """Return the costs in the same order; None: unknown."""
    if not source() or not used:
        return [None] * len(used)
    return await asyncio.to_thread(lambda: [price(each) for each in used])


def price(used: TokenUse) -> float | None:
    if used.input + used.output == 0 or not source():
        return None
    return next((found for name in _names(used.model) if (found := _priced(name, used)) is not None), None)


@lru_cache(_MODELS)
def _names(model: str) -> tuple[str, ...]:
    """Return the model name, the name without the provider prefix, and the name with dashes instead of dots."""
    plain = model.rpartition("/")[2]
    dashed = re.sub(r"(?<=\d)\.(?=\d)", "-", plain)
    return tuple(dict.fromkeys(name for name in (model, plain, dashed) if name and name.lower() not in _NO_MODELS))


_NO_MODELS = frozenset({"default", "auto"})
"""Names that agents use for an automatic choice. The actual model is unknown."""


def _priced(name: str, used: TokenUse) -> float | None:
    try:
        calculate, usage = _library()
        counted = usage(
            input_tokens=max(used.input, used.cached), output_tokens=used.output, cache_read_tokens=used.cached or None
        )
        return float(calculate(counted, model_ref=name).total_price)
    except (LookupError, ValueError):
        return None
    except Exception:  # a broken or changed library must not fail the turn or the run
        logger.exception("no list price for %r", name)
        return None


@cache
def _library() -> tuple[Any, Any]:
    from genai_prices import Usage, calc_price

    return calc_price, Usage
