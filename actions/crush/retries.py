"""How often CRUSH tries again: the map's tunables, as a rule's own `set_` steps change them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from predrain.actions.crush.map import RuleStep, Tunables

_AT_LEAST_ONCE = frozenset({"choose_tries", "chooseleaf_tries"})


@dataclass(frozen=True, slots=True)
class Retries:
    """What holds for the next choose step; the names are those of the steps that set them, without `set_`."""

    choose_tries: int
    chooseleaf_tries: int
    """0: one with `chooseleaf_descend_once` or indep, else `choose_tries`."""
    choose_local_tries: int
    choose_local_fallback_tries: int
    chooseleaf_vary_r: int
    chooseleaf_stable: int

    @property
    def local(self) -> bool:
        """Whether firstn tries again within a bucket before it descends anew, as before Bobtail."""
        return self.choose_local_tries > 0 or self.choose_local_fallback_tries > 0

    def after(self, step: RuleStep) -> Retries:
        """A value that mapper.c passes over changes nothing."""
        name = step.op.removeprefix("set_")
        least = 1 if name in _AT_LEAST_ONCE else 0
        return replace(self, **{name: step.item}) if step.item >= least else self


def retries_of(tunables: Tunables) -> Retries:
    """What holds where a rule starts; `choose_total_tries` counts retries, hence one more try."""
    return Retries(
        choose_tries=tunables.choose_total_tries + 1,
        chooseleaf_tries=0,
        choose_local_tries=tunables.choose_local_tries,
        choose_local_fallback_tries=tunables.choose_local_fallback_tries,
        chooseleaf_vary_r=tunables.chooseleaf_vary_r,
        chooseleaf_stable=tunables.chooseleaf_stable,
    )


SETTERS = frozenset(f"set_{name}" for name in Retries.__slots__)
"""The steps that `Retries.after` knows."""
