"""A server of its own for tests and notebooks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

from ._client import AsyncClient, Client
from ._errors import ConversationStoreError


class local:
    """`with local() as client` starts `convo serve` with a store that goes with it; `async with` gives an `AsyncClient`.
    The program is that of `CONVO_BIN`, or is on the PATH. `folder` keeps the store there."""

    def __init__(self, *, folder: str | os.PathLike[str] | None = None, settings: str = "", program: str | None = None) -> None:
        self._program = program or os.environ.get("CONVO_BIN") or "convo"
        self._given = folder
        self._settings = settings

    def start(self) -> str:
        """Starts the server, and gives its address. `with` does this."""
        if shutil.which(self._program) is None:
            raise FileNotFoundError(f"there is no program {self._program}: install it, or name it in CONVO_BIN")
        self._folder = Path(self._given or tempfile.mkdtemp(prefix="convo-"))
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "convo.toml").write_text(self._settings)
        log = self._folder / "log"
        command = [self._program, "--store", f"sled:{self._folder / 'store'}", "--json", "serve", "--listen", "127.0.0.1:0"]
        with log.open("a") as errors:
            self._process = subprocess.Popen(
                [*command, "--config", str(self._folder / "convo.toml")],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            words = log.read_text()
            self.stop()
            raise ConversationStoreError(f"convo serve did not start: {words}")
        return str(json.loads(line)["listening"])

    def stop(self) -> None:
        """Stops the server. Its store goes, unless a folder was given."""
        self._process.terminate()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._given is None:
            shutil.rmtree(self._folder)

    def __enter__(self) -> Client:
        self._client = Client(self.start())
        return self._client

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._client.close()
        self.stop()

    async def __aenter__(self) -> AsyncClient:
        self._async_client = AsyncClient(self.start())
        return self._async_client

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        await self._async_client.close()
        self.stop()
