"""This store beside what chat developers use today, in one run on one disk: `python3 benches/sessions/run.py [FOLDER]`.

A turn is a user's text of 200 bytes and an answer of 800 bytes. Each store appends turns so that they survive a power cut, to a
conversation of 10 messages and to one of 10,000; and it loads a conversation of 1,000 messages as the values that a program
works with. The stores take turns in short rounds. The tables have the medians, in milliseconds: one of the stores in files, one of
those in a PostgreSQL server, which is started for them and makes each commit durable.

Needs PostgreSQL's programs, and what requirements.txt names: `python3 -m venv target/sessions && target/sessions/bin/pip install -r
benches/sessions/requirements.txt && target/sessions/bin/python benches/sessions/run.py`.
"""

import asyncio
import contextlib
import glob
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.metadata import version

ROOT = pathlib.Path(__file__).parents[2]
ROUNDS, APPENDS, LOADS = 10, 20, 5
SHORT, LONG, LOADED = 10, 10_000, 1_000
USER, ANSWER = "u" * 200, "a" * 800


def texts(messages):
    """Who says what: a user and an assistant in turns."""
    return [("user", USER) if at % 2 == 0 else ("assistant", ANSWER) for at in range(messages)]


class Timed:
    """A store whose calls are timed here."""

    def append(self, name, times):
        return [self.timed(lambda: self.add(name, texts(2))) for _ in range(times)]

    def load(self, name, times, messages):
        def whole():
            got = len(self.read(name))
            assert got == messages, f"{self.title}: {got} messages in place of {messages}"

        return [self.timed(whole) for _ in range(times)]

    def fill(self, name, messages):
        self.add(name, texts(messages))

    def timed(self, work):
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) * 1e6


class Postgres:
    """A PostgreSQL server, with a database for each store. It does not run as root."""

    def __init__(self, folder):
        initdb = shutil.which("initdb") or sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[-1]
        self.bin = os.path.dirname(os.path.realpath(initdb))
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="postgres-", dir=folder))
        self.user = {"user": "postgres"} if os.getuid() == 0 else {}
        if self.user:
            pathlib.Path(folder).chmod(0o755)
            shutil.chown(self.dir, "postgres")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.run("initdb", "-D", self.dir / "data", "-U", "postgres", "--auth=trust", "--locale=C", "-E", "UTF8")
        options = f"-p {self.port} -k {self.dir} -c listen_addresses=127.0.0.1"
        self.run("pg_ctl", "-D", self.dir / "data", "-w", "-l", self.dir / "log", "-o", options, "start")

    def run(self, program, *arguments):
        subprocess.run([f"{self.bin}/{program}", *arguments], check=True, stdout=subprocess.DEVNULL, **self.user)

    def database(self, name):
        self.run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", name)
        return f"//postgres@127.0.0.1:{self.port}/{name}"

    def close(self):
        self.run("pg_ctl", "-D", self.dir / "data", "-m", "fast", "-w", "stop")


class Embedded:
    """This store in a Rust program."""

    def __init__(self, name, url):
        self.title = f"this store, {name}, in a Rust program"
        command = ["cargo", "bench", "--quiet", "--bench", "sessions", "--features", "fjall,postgres", "--", url]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def fill(self, name, messages):
        self.ask("fill", name, messages)

    def append(self, name, times):
        return self.ask("append", name, times)

    def load(self, name, times, _messages):
        return self.ask("load", name, times)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Server:
    """`convo serve` on a store of its own."""

    def __init__(self, url):
        command = [ROOT / "target/release/convo", "--store", url, "--json", "serve", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = json.loads(self.process.stdout.readline())["listening"]

    def close(self):
        self.process.terminate()
        self.process.wait()


class Native(Timed):
    def __init__(self, server):
        import httpx

        self.title = "this store, `convo serve`, native API, httpx"
        self.http = httpx.Client(base_url=f"{server.address}/api/v1/conversations", timeout=120)

    def add(self, name, said):
        for at in range(0, len(said), 1_000):
            messages = [{"role": role, "chunks": [{"type": "text", "text": text}]} for role, text in said[at : at + 1_000]]
            self.http.post(f"/{name}/messages", json=messages).raise_for_status()

    def read(self, name):
        messages, after = [], 0
        while True:
            page = self.http.get(f"/{name}/messages", params={"from": after, "limit": 1_000}).raise_for_status().json()
            messages += page["messages"]
            if not page.get("next"):
                return messages
            after = page["next"]


class AgentsSession(Timed):
    """A session of the OpenAI Agents SDK."""

    def __init__(self, title, make):
        self.title, self.make, self.sessions = title, make, {}
        self.loop = asyncio.new_event_loop()

    def session(self, name):
        if name not in self.sessions:
            self.sessions[name] = self.make(name)
        return self.sessions[name]

    def add(self, name, said):
        items = [{"role": role, "content": text} for role, text in said]
        self.loop.run_until_complete(self.session(name).add_items(items))

    def read(self, name):
        return self.loop.run_until_complete(self.session(name).get_items())


def sqlite_session(folder):
    from agents import SQLiteSession

    title = f"Agents SDK {version('openai-agents')}, `SQLiteSession`"
    return AgentsSession(title, lambda name: SQLiteSession(name, f"{folder}/agents.db"))


def sqlalchemy_session(url):
    from agents.extensions.memory import SQLAlchemySession

    title = f"Agents SDK {version('openai-agents')}, `SQLAlchemySession`, asyncpg"
    return AgentsSession(title, lambda name: SQLAlchemySession.from_url(name, url=f"postgresql+asyncpg:{url}", create_tables=True))


def conversations_session(server):
    from agents import OpenAIConversationsSession
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"{server.address}/v1", api_key="none")
    title = "this store, `convo serve`, Agents SDK's `OpenAIConversationsSession`"
    return AgentsSession(title, lambda _: OpenAIConversationsSession(openai_client=client))


class LangChain(Timed):
    def __init__(self, folder):
        from langchain_community.chat_message_histories import SQLChatMessageHistory
        from langchain_core.messages import AIMessage, HumanMessage

        self.title = f"langchain-community {version('langchain-community')}, `SQLChatMessageHistory` on SQLite"
        self.kinds = {"user": HumanMessage, "assistant": AIMessage}
        make = lambda name: SQLChatMessageHistory(name, connection=f"sqlite:///{folder}/langchain.db")
        self.histories = {name: make(name) for name in ("short", "long", "loaded")}

    def add(self, name, said):
        self.histories[name].add_messages([self.kinds[role](text) for role, text in said])

    def read(self, name):
        return self.histories[name].messages


class LangGraph(Timed):
    def __init__(self, name, saver):
        from langgraph.graph import END, START, MessagesState, StateGraph

        self.title = f"LangGraph {version('langgraph')}, {name}"
        graph = StateGraph(MessagesState)
        graph.add_node("answer", lambda _: {"messages": [("assistant", ANSWER)]})
        graph.add_edge(START, "answer")
        graph.add_edge("answer", END)
        self.graph = graph.compile(checkpointer=saver)

    def config(self, name):
        return {"configurable": {"thread_id": name}}

    def fill(self, name, messages):
        self.graph.update_state(self.config(name), {"messages": texts(messages)}, as_node="answer")

    def add(self, name, _said):
        self.graph.invoke({"messages": [("user", USER)]}, self.config(name))

    def read(self, name):
        return self.graph.get_state(self.config(name)).values["messages"]


def sqlite_saver(folder):
    import sqlite3

    from langgraph.checkpoint.sqlite import SqliteSaver

    connection = sqlite3.connect(f"{folder}/langgraph.db", check_same_thread=False)
    return LangGraph(f"`SqliteSaver` {version('langgraph-checkpoint-sqlite')}", SqliteSaver(connection))


def postgres_saver(url):
    import psycopg
    from langgraph.checkpoint.postgres import PostgresSaver

    saver = PostgresSaver(psycopg.connect(f"postgresql:{url}", autocommit=True, row_factory=psycopg.rows.dict_row))
    saver.setup()
    return LangGraph(f"`PostgresSaver` {version('langgraph-checkpoint-postgres')}", saver)


class Adk(Timed):
    def __init__(self, folder):
        from google.adk.events import Event
        from google.adk.sessions import DatabaseSessionService
        from google.genai.types import Content, Part

        self.title = f"Google ADK {version('google-adk')}, `DatabaseSessionService` on SQLite"
        self.event = lambda role, text: Event(
            author=role, content=Content(role={"assistant": "model"}.get(role, role), parts=[Part(text=text)])
        )
        self.service = DatabaseSessionService(f"sqlite+aiosqlite:///{folder}/adk.db")
        self.loop = asyncio.new_event_loop()
        self.sessions = {}

    def add(self, name, said):
        async def all_of_it():
            if name not in self.sessions:
                self.sessions[name] = await self.service.create_session(app_name="bench", user_id="u", session_id=name)
            for role, text in said:
                await self.service.append_event(self.sessions[name], self.event(role, text))

        self.loop.run_until_complete(all_of_it())

    def read(self, name):
        asked = self.service.get_session(app_name="bench", user_id="u", session_id=name)
        return self.loop.run_until_complete(asked).events


class Llm(Timed):
    def __init__(self, folder):
        import llm
        import sqlite_utils
        from llm.logs import LogStore
        from llm.migrations import migrate

        self.title = f"llm {version('llm')}, its log in SQLite"
        self.kinds = {"user": llm.user, "assistant": llm.assistant}
        database = sqlite_utils.Database(f"{folder}/llm.db")
        migrate(database)
        self.store = LogStore(database)
        self.threads = {}

    def add(self, name, said):
        if name not in self.threads:
            self.threads[name] = self.store.create_thread(name)
        self.store.append(self.threads[name], [self.kinds[role](text) for role, text in said])

    def read(self, name):
        return self.store.thread_messages(self.threads[name])


def measure(stores):
    """The median of each store's appends to a short and to a long conversation, and of its loads."""
    for store in stores:
        print(f"{store.title} is filled", file=sys.stderr)
        for name, messages in (("short", SHORT), ("long", LONG), ("loaded", LOADED)):
            store.fill(name, messages)
    took = {(store.title, work): [] for store in stores for work in ("short", "long", "load")}
    for at in range(ROUNDS):
        print(f"round {at + 1} of {ROUNDS}", file=sys.stderr)
        for store in stores:
            took[store.title, "short"] += store.append("short", APPENDS)
            took[store.title, "long"] += store.append("long", APPENDS)
            took[store.title, "load"] += store.load("loaded", LOADS, LOADED)
    return {key: statistics.median(values) / 1_000 for key, values in took.items()}


def table(title, stores):
    medians = measure(stores)
    print(f"| {title} | append to 10 messages, ms | append to 10,000 messages, ms | load of 1,000 messages, ms |")
    print("|---|---:|---:|---:|")
    for store in stores:
        figures = (medians[store.title, work] for work in ("short", "long", "load"))
        print(f"| {store.title} | {' | '.join(f'{figure:.2f}' for figure in figures)} |")
    print(flush=True)


def main():
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    program = ["cargo", "build", "--quiet", "--release", "--features", "server,postgres", "--bin", "convo"]
    subprocess.run(program, cwd=ROOT, check=True)
    parent = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sessions-", dir=parent))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        opened = lambda store: stack.enter_context(contextlib.closing(store))
        server = opened(Server(f"sled:{folder}/served"))
        in_files = [
            opened(Embedded("sled", f"sled:{folder}/sled")),
            opened(Embedded("fjall", f"fjall:{folder}/fjall")),
            Native(server),
            conversations_session(server),
            sqlite_session(folder),
            LangChain(folder),
            sqlite_saver(folder),
            Adk(folder),
            Llm(folder),
        ]
        table("in files", in_files)
        postgres = opened(Postgres(folder))
        server = opened(Server(f"postgres:{postgres.database('served')}"))
        in_postgres = [
            opened(Embedded("PostgreSQL", f"postgres:{postgres.database('embedded')}")),
            Native(server),
            sqlalchemy_session(postgres.database("agents")),
            postgres_saver(postgres.database("langgraph")),
        ]
        table("in PostgreSQL", in_postgres)


if __name__ == "__main__":
    main()
