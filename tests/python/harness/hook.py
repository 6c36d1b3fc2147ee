"""A receiver of push notifications, as somebody would write it with an official SDK's types."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

WAIT_SECONDS = 15.0


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    event: Any


@dataclass
class Hook:
    """Reads each request's body with `read`, keeps it, and answers with `status`."""

    read: Callable[[bytes], Any]
    status: int = 200
    received: list[Received] = field(default_factory=list)
    _server: asyncio.Server | None = None

    async def __aenter__(self) -> Hook:
        self._server = await asyncio.start_server(self._serve, '127.0.0.1', 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def url(self, path: str) -> str:
        return f'http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/{path}'

    def of(self, path: str) -> list[Received]:
        return [received for received in self.received if received.path == f'/{path}']

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
        while not holds():
            assert asyncio.get_running_loop().time() < deadline, self.received
            await asyncio.sleep(0.02)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                path = line.decode().split(' ')[1]
                headers = {}
                while pair := (await reader.readline()).decode().strip():
                    name, value = pair.split(':', 1)
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers['content-length']))
                self.received.append(Received(path, headers, self.read(body)))
                writer.write(f'HTTP/1.1 {self.status} x\r\nContent-Length: 0\r\n\r\n'.encode())
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
