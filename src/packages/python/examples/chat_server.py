"""A chat server: answers stream into the store, and any number of pages follow them from there.

    pip install conversation-store fastapi uvicorn openai
    convo --store sled:chats.db serve &
    OPENAI_API_KEY=... uvicorn chat_server:app

`OPENAI_BASE_URL`, `MODEL` and `TARGET` name another model, `CONVO_URL` and `CONVO_KEY` another store.
"""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import openai
from conversation_store import AsyncClient, Conflict, ConversationStoreError, NotFound, StaleHead
from fastapi import FastAPI, Header, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

MODEL = os.environ.get("MODEL", "gpt-5")
TARGET = os.environ.get("TARGET", "openai-chat")


class Said(BaseModel):
    #: Made by the page: a message that is sent twice is stored once.
    id: str
    text: str
    #: The last seq that the page has seen: another page may have said something meanwhile.
    seen: int | None = None


@asynccontextmanager
async def life(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncClient() as store, openai.AsyncOpenAI() as model:
        app.state.store, app.state.model, app.state.answers = store, model, set()
        yield
        for answer in app.state.answers:
            answer.cancel()
        await asyncio.gather(*app.state.answers, return_exceptions=True)


app = FastAPI(lifespan=life)


async def answer(chat: str) -> None:
    """Lets the model answer. What arrives is stored at once, also if this program ends."""
    store: AsyncClient = app.state.store
    call = app.state.model.chat.completions.with_streaming_response.create
    try:
        prompt = await store.prompt(chat, TARGET, model=MODEL)
        async with call(**prompt["request"], model=MODEL, stream=True) as response:
            await store.ingest(chat, TARGET, response.iter_bytes(), model=MODEL)
    except openai.APIError as error:
        said = {"type": "error", "message": str(error)}
        await store.append(chat, {"role": "assistant", "chunks": [said], "finish_reason": "error"})
    except ConversationStoreError as error:
        # The store has what arrived, marked as interrupted.
        logging.warning("the answer was cut, or did not begin: %s", error)


@app.post("/chats/{chat}", status_code=202)
async def say(chat: str, said: Said) -> dict[str, int]:
    message = {"role": "user", "id": said.id, "chunks": [{"type": "text", "text": said.text}]}
    try:
        stored = await app.state.store.append(chat, message, expect=said.seen, idempotency_key=said.id)
    except (StaleHead, Conflict):
        raise HTTPException(409, "there is something new in this chat") from None
    is_open = not stored["duplicate"]
    if not is_open:
        # It came again: was it stored before without its answer being begun?
        waits = (await app.state.store.next_step(chat))["step"] == "call_model"
        is_open = waits and chat not in {task.get_name() for task in app.state.answers}
    if is_open:
        task = asyncio.create_task(answer(chat), name=chat)
        app.state.answers.add(task)
        task.add_done_callback(app.state.answers.discard)
    return {"seq": stored["last_seq"]}


@app.get("/chats/{chat}")
async def read(chat: str) -> list[dict[str, object]]:
    try:
        return [message async for message in app.state.store.messages(chat)]
    except NotFound:
        return []


@app.get("/chats/{chat}/events")
async def follow(chat: str, since: int = 0, last_event_id: Annotated[int | None, Header()] = None) -> StreamingResponse:
    """What happens in a chat after the last seq that a page has seen. An `EventSource` goes on by itself after a cut."""

    async def events() -> AsyncIterator[str]:
        async with app.state.store.follow(chat, since=since if last_event_id is None else last_event_id) as entries:
            async for entry in entries:
                yield f"id: {entry['seq']}\ndata: {json.dumps(entry)}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


@app.post("/chats/{chat}/stop")
async def stop(chat: str) -> dict[str, int]:
    return {"stopped": (await app.state.store.stop(chat))["ingests"]}
