"""The certainty of a forecast in words: the same on the page, in messages and in alerts."""

from __future__ import annotations

from predrain.data.outlook import Life, Outlook


def describe_failure_chance(outlook: Outlook) -> str:
    """Describe the chance of failure: a probability always with its horizon, and no probability for a rule."""
    if outlook.p_fail_30d is None:
        evidence = "" if outlook.rule_score is None else f", evidence {outlook.rule_score:.2f} of 1"
        return f"By rule ({outlook.rule or outlook.source}){evidence}, no probability."
    told = f"{format_bounded_probability(outlook.p_fail_30d)} within 30 days"
    return f"{told}, likely {format_life_expectancy(outlook.life)}" if outlook.life is not None else told


def format_life_expectancy(life: Life) -> str:
    """Format the life expectancy from p10 to p90 in whole days, "over a year" beyond that: "9 days to over a
    year".
    """
    short, long = _format_days(life.p10_days), _format_days(life.p90_days)
    if short == long:
        return short
    return f"{short.split()[0]} to {long}" if long[0].isdigit() else f"{short} to {long}"


def _format_days(days: float | None) -> str:
    if days is None or days > 365:
        return "over a year"
    return f"{days:.0f} {'day' if round(days) == 1 else 'days'}"


def format_bounded_probability(p: float) -> str:
    """Format a probability in whole percents, with one decimal below 1 %, bounded at both ends."""
    if p < 0.001:
        return "under 0.1 %"
    if p > 0.95:
        return "over 95 %"
    return f"{p * 100:.1f} %" if p < 0.0095 else f"{p * 100:.0f} %"
