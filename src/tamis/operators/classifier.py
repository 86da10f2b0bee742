"""What is a text about? A text classifier as an example of a model: it takes a batch of events and
returns labels.

    topics = Classifier.train(texts, labels)
    topics.register("topic(?string)")       topic(?label): the likeliest label of each text
    topics.register("is_about(string)")     is_about('sport'): whether that is its likeliest label

The model is multinomial naive Bayes over the words of an analyser: small, reproducible, trained in
one pass and saved as JSON. A neural network can replace it by providing the same two functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from tamis.errors import InputError
from tamis.language.names import parse_path
from tamis.language.signatures import parse_signature, read_as_text
from tamis.logic.evaluate import value_at
from tamis.operators.registry import operator
from tamis.operators.views import column_at
from tamis.text.analysers import ANY_WORD, get_analyser

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Classifier:
    """Labels, words, and the probability of each word given each label."""

    labels: list[str]
    words: dict[str, int]
    priors: np.ndarray  # float64[n_labels], logarithms
    likelihoods: np.ndarray  # float64[n_words, n_labels], logarithms
    analyser: str = "standard"
    attribute: str = "text"

    @classmethod
    def train(
        cls,
        texts: Sequence[str],
        labels: Sequence[str],
        *,
        analyser: str = "standard",
        attribute: str = "text",
    ) -> Classifier:
        """A classifier trained on labelled texts; `attribute` is the event's attribute that holds
        the text.
        """
        if not texts or len(texts) != len(labels):
            raise InputError(
                f"{len(texts)} texts and {len(labels)} labels; the numbers must be equal and at "
                "least 1"
            )
        names = sorted(set(labels))
        numbers = np.searchsorted(names, labels)
        words: dict[str, int] = {}
        found = [
            [words.setdefault(word, len(words)) for word in read_words(analyser, text)]
            for text in texts
        ]
        counts = np.ones((len(words), len(names)))  # Laplace smoothing
        for number, own in zip(numbers, found, strict=True):
            np.add.at(counts, (own, number), 1)
        priors = np.log(np.bincount(numbers) / len(texts))
        return cls(names, words, priors, np.log(counts / counts.sum(axis=0)), analyser, attribute)

    def scores(self, texts: Iterable[str]) -> np.ndarray:
        """The probability of each label for each text: float64[n_texts, n_labels]."""
        rows = [self._score(text) for text in texts]
        scores = np.array(rows).reshape(-1, len(self.labels))
        scores = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def _score(self, text: str) -> np.ndarray:
        words = read_words(self.analyser, text)
        own = [number for word in words if (number := self.words.get(word)) is not None]
        return np.asarray(self.priors + self.likelihoods[own].sum(axis=0))

    # ── operators ──────────────────────────────────────────────────────────────────────────

    def register(self, signature: str, **options: Any) -> Callable[..., Any]:
        """Register an operator of that signature, which returns the label if it binds a variable,
        and otherwise whether the given label is the likeliest. `options` are those of
        `tamis.operator`.
        """
        options = {"reads": [read_as_text(self.attribute)], "batch": True, **options}
        if parse_signature(signature).bound:
            return operator(signature, **options)(self.label_batch)
        options.setdefault("check", self.expect_label)
        return operator(signature, **options)(self.is_batch)

    def label_batch(self, events: pa.Table) -> pa.Array:
        """The likeliest label of each row; null if the row has no text."""
        import pyarrow as pa

        texts = column_at(events, parse_path(self.attribute)).to_pylist()
        known = [text for text in texts if text is not None]
        best = iter(self.scores(known).argmax(axis=1).tolist() if known else [])
        return pa.array(
            [None if text is None else self.labels[next(best)] for text in texts], pa.string()
        )

    def is_batch(self, events: pa.Table, label: str) -> pa.Array:
        """Whether the label is the likeliest one of each row; null if the row has no text."""
        import pyarrow.compute as pc

        self.expect_label(label)
        return pc.equal(self.label_batch(events), label)

    def label(self, event: Mapping[str, Any]) -> str | None:
        """The likeliest label of one event."""
        text = value_at(event, parse_path(self.attribute))
        return None if text is None else self.labels[int(self.scores([text]).argmax())]

    def expect_label(self, label: str) -> None:
        """Raise an error for a label that no training text has."""
        if label not in self.labels:
            raise InputError(f'unknown label "{label}"; allowed: {", ".join(self.labels)}')

    # ── on disk ────────────────────────────────────────────────────────────────────────────

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the classifier as JSON."""
        kept = {
            "labels": self.labels,
            "words": list(self.words),
            "priors": self.priors,
            "likelihoods": self.likelihoods,
            "analyser": self.analyser,
            "attribute": self.attribute,
        }
        Path(path).write_bytes(orjson.dumps(kept, option=orjson.OPT_SERIALIZE_NUMPY))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Classifier:
        """Load a saved classifier."""
        try:
            kept = orjson.loads(Path(path).read_bytes())
            words = {word: number for number, word in enumerate(kept["words"])}
            priors = np.array(kept["priors"], dtype=np.float64)
            likelihoods = np.array(kept["likelihoods"], dtype=np.float64)
            likelihoods = likelihoods.reshape(-1, len(kept["labels"]))
            reading = (kept["analyser"], kept["attribute"])
            loaded = cls(kept["labels"], words, priors, likelihoods, *reading)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}: not a valid classifier: {error}") from error
        if loaded.likelihoods.shape != (len(words), len(loaded.labels)):
            raise InputError(
                f"{path}: not a valid classifier: its tables do not fit its words and labels"
            )
        return loaded


def read_words(analyser: str, text: str) -> list[str]:
    """The words of a text, without the analyser's stop words."""
    return [word for word in get_analyser(analyser).words(text) if word != ANY_WORD]
