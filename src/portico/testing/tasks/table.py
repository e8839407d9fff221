"""The results of tasks as a table in Markdown, one row for each agent."""

from statistics import median

from portico.testing.tasks.run import Played


def line(each: Played) -> str:
    return f"{each.agent}  {each.task}  {'ok' if each.ok else each.problem}  {each.seconds} s"


def table(played: list[Played]) -> str:
    agents = list(dict.fromkeys(each.agent for each in played))
    kinds = list(dict.fromkeys(each.kind for each in played))
    rows = [["agent", *kinds, "all", "tokens in / out", "requests", "KB sent", "seconds p50", "beside the first"]]
    shares = {agent: _share([each for each in played if each.agent == agent]) for agent in agents}
    for agent in agents:
        own = [each for each in played if each.agent == agent]
        passed = [_passed([each for each in own if each.kind == kind]) for kind in kinds]
        beside = f"{shares[agent] / shares[agents[0]]:.2f}x" if shares[agents[0]] else "-"
        seconds = f"{median(each.seconds for each in own):g}"
        asked = [_mean([each.requests for each in own]), _mean([each.sent for each in own], 1000)]
        rows.append([agent, *passed, _passed(own), _tokens(own), *asked, seconds, beside])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in padded]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _share(played: list[Played]) -> float:
    return sum(each.ok for each in played) / len(played)


def _passed(played: list[Played]) -> str:
    return f"{sum(each.ok for each in played)}/{len(played)}"


def _mean(values: list[int | None], unit: int = 1) -> str:
    known = [each for each in values if each is not None]
    return f"{sum(known) / len(known) / unit:.1f}" if known else "unknown"


def _tokens(played: list[Played]) -> str:
    told = [each for each in played if each.input is not None and each.output is not None]
    if not told:
        return "unknown"
    read, written = sum(each.input or 0 for each in told), sum(each.output or 0 for each in told)
    return f"{read // len(told)} / {written // len(told)}"
