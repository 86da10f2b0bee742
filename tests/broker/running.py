"""Runs a machine of random lives on new databases."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.effort import examples
from tests.subscriptions.places import new_folder


def run_lives(
    make: Callable[[str], RuleBasedStateMachine],
    kind: str,
    n_lives: int,
    request: pytest.FixtureRequest,
) -> None:
    """Let machines live, each in a place of its own."""
    folders = []

    def make_in_new_place() -> RuleBasedStateMachine:
        if kind == "postgres":
            return make(request.getfixturevalue("postgres").new_place())
        folders.append(new_folder())
        return make(str(folders[-1]))

    try:
        run_state_machine_as_test(
            make_in_new_place,
            settings=settings(max_examples=examples(n_lives), stateful_step_count=30),
        )
    finally:
        for folder in folders:
            shutil.rmtree(folder)
