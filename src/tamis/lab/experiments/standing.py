"""The product's standing: compared with the best of the others, setting by setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.lab.experiments.experiment import (
    ALGORITHM,
    BATCH,
    HANDED,
    MICROSECONDS,
    PRODUCT,
    SINGLE,
)
from tamis.lab.experiments.sentences import spread

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Experiment, Row


class Standing(NamedTuple):
    """The product's rows by setting, and those of the best of the others."""

    experiment: Experiment
    ours: dict[Any, Row]
    rivals: dict[Any, Row]
    singles: dict[Any, Row]  # one event at a time

    def ratios(self, rows: dict[Any, Row]) -> dict[Any, float]:
        """The ratios of these rows to the rival's."""
        measure = self.experiment.measure
        return {at: row[measure] / self.rivals[at][measure] for at, row in rows.items()}

    @property
    def leaders(self) -> str:
        """The names of the rivals."""
        return "; ".join(dict.fromkeys(str(row[ALGORITHM]) for row in self.rivals.values()))

    @property
    def behind(self) -> list[Any]:
        """The settings at which another is better."""
        return [at for at, ratio in self.ratios(self.ours).items() if ratio > 1]

    def describe(self) -> list[str]:
        """The product's lead; where it is behind, and why."""
        ratios, measure = self.ratios(self.ours).values(), self.experiment.measure
        if measure != MICROSECONDS:
            name = "Tamis" if self.experiment.ours == BATCH else self.experiment.ours
            least = f"{spread(ratios)} the {measure} of the best of the others ({self.leaders})"
            return [f"{name} has {least}."]
        ahead = f"{spread(1 / ratio for ratio in ratios)} as fast as the fastest of the others"
        sentences = [f"Tamis in batches is {ahead} ({self.leaders})."]
        sentences += [self._explain()] if self.behind else []
        if self.singles:
            longer = spread(self.ratios(self.singles).values())
            sentences.append(
                f"With single events it takes {longer} as long as the fastest of the others; this "
                "includes reading the event and finding its true leaves, which the others get as "
                "input"
                f"{self._describe_handed()}."
            )
        return sentences

    def _describe_handed(self) -> str:
        """The cost of reading events and finding leaves, if measured."""
        known = [row[HANDED] for row in self.singles.values() if HANDED in row]
        low, high = (f"{end(known):,.0f}" if known else "" for end in (min, max))
        return f" ({low if low == high else f'{low} to {high}'} µs)" if known else ""

    def _explain(self) -> str:
        """Where the product is behind, and why at the worst setting."""
        ratios = self.ratios(self.ours)
        worst = max(self.behind, key=lambda at: ratios[at])
        ours, rival = self.ours[worst], self.rivals[worst]
        places = ", ".join(map(str, self.behind))
        most = f", most at {worst}" if len(self.behind) > 1 else ""
        return (
            f"It is slower at {self.experiment.columns[0]} {places}{most}: "
            f"{ours[MICROSECONDS]:.1f} µs, {rival[ALGORITHM]} {rival[MICROSECONDS]:.1f}. "
            f"{self.experiment.behind(ours, rival)}"
        )


def stand(experiment: Experiment, rows: list[Row]) -> Standing | None:
    """The standing in a sweep; none if the compared measures are missing."""
    x, measure = experiment.columns[0], experiment.measure
    known = [row for row in rows if row.get(measure)]
    ours = {row[x]: row for row in known if row[ALGORITHM] == experiment.ours}
    singles = {row[x]: row for row in known if row[ALGORITHM] == SINGLE}
    rivals: dict[Any, Row] = {}
    for row in known:
        is_other = row[ALGORITHM] not in (experiment.ours, *PRODUCT)
        if is_other and (row[x] not in rivals or row[measure] < rivals[row[x]][measure]):
            rivals[row[x]] = row
    if not rivals or ours.keys() != rivals.keys():
        return None
    return Standing(experiment, ours, rivals, singles)
