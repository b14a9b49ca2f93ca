"""Client of a conversation store: `Client`, `AsyncClient`, and `local()` for tests."""

from ._client import AsyncClient, AsyncFollower, Client, Follower
from ._errors import (Busy, Conflict, ConversationStoreError, InvalidRequest, KeyReused, LimitExceeded, NameTaken, NotFound, NothingToSend,
                      NotPermitted, OutcomeUnknown, ServerFailed, StaleCursor, StaleHead, Unreachable)
from ._local import local
from ._types import (Checked, Chunk, Conversation, Entries, Entry, Exchange, Ingested, NextStep, Open, Parent, Place, Prompt, Receipt, Redaction, Repaired, Role,
                     Stopped, StoredMessage, Usage)

__all__ = [
    "AsyncClient", "AsyncFollower", "Busy", "Checked", "Chunk", "Client", "Conflict", "Conversation", "ConversationStoreError", "Entries",
    "Entry", "Exchange", "Follower", "Ingested", "InvalidRequest", "KeyReused", "LimitExceeded", "NameTaken", "NextStep", "NotFound", "NotPermitted",
    "NothingToSend", "Open", "OutcomeUnknown", "Parent", "Place", "Prompt", "Receipt", "Redaction", "Repaired", "Role", "ServerFailed", "StaleCursor",
    "StaleHead", "Stopped", "StoredMessage", "Unreachable", "Usage", "local",
]
