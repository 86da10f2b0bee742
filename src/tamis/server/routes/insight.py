"""What the console shows besides subscriptions: words, the anatomy of the index, settings."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from tamis.broker.vocabulary import list_words
from tamis.server.archived import may_read_archive
from tamis.server.auth import Administrating, Reading
from tamis.server.context import context_of, in_thread
from tamis.server.misspelt import list_own

router = APIRouter(prefix="/v1", tags=["operations"])


class KnownWord(BaseModel):
    """An attribute."""

    name: str = Field(description="As expressions spell it.")
    type: str | None = Field(description="Null if no subscription uses it.")
    values: list[str] = Field(description="As expressions spell them, the most frequent first.")


class VocabularyAnswer(BaseModel):
    """The words that an expression can be written with."""

    attributes: list[KnownWord]
    functions: dict[str, str] = Field(description="Signatures by name, operators included.")
    keywords: list[str]


class SettingAnswer(BaseModel):
    """A setting."""

    name: str
    value: str = Field(description="As the settings file would have it; secrets are hidden.")
    text: str


class SettingsAnswer(BaseModel):
    """The settings that the server runs with."""

    settings: list[SettingAnswer]


@router.get("/vocabulary", summary="Words for expressions")
async def get_vocabulary(request: Request, caller: Reading) -> VocabularyAnswer:
    """Attributes with their types, functions and keywords. Without the role admin, the attributes
    are those of your own subscriptions. Whoever may read all events also gets the attributes and
    values of the newest ones.
    """
    context = context_of(request)
    server = context.match_server
    archive = server.archive if may_read_archive(context, caller) else None
    own = await in_thread(list_own, context, caller)
    found = await in_thread(list_words, server.live, archive, own)
    words = [KnownWord(**own._asdict()) for own in found.attributes]
    return VocabularyAnswer(attributes=words, functions=found.functions, keywords=found.keywords)


@router.get("/anatomy", summary="What the index is made of")
async def get_anatomy(request: Request, caller: Administrating) -> dict[str, Any]:
    """The parts, and the statistics of the largest one: nodes by level, how much is shared, the
    most shared subexpressions, and the tests that are evaluated for every event.
    """
    found: dict[str, Any] = await in_thread(context_of(request).anatomist.describe)
    return found


@router.get("/settings", summary="The settings of the server")
async def get_settings(request: Request, caller: Administrating) -> SettingsAnswer:
    """All settings, as `tamis serve --check` prints them."""
    described = context_of(request).settings.describe()
    return SettingsAnswer(
        settings=[
            SettingAnswer(name=name, value=value, text=text) for name, value, text in described
        ]
    )
