"""The official Python client of v0.3, set up as its documentation says and otherwise left alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import grpc
import httpx
import pytest
from a2a.client import Client, ClientConfig, ClientFactory

from harness.hook import Hook
from harness.http_wire import HttpJson, JsonRpc
from harness.server import Server
from harness.wire import Wire
from words import pushed

pytest_plugins = ('harness.fixtures',)

Connect = Callable[..., Awaitable[Client]]


@pytest.fixture
async def clients(server: Server, binding: str) -> AsyncIterator[Connect]:
    """Makes clients of one transport: `await clients(streaming=False)`."""
    made: list[Client] = []
    async with httpx.AsyncClient() as http:

        async def make(**config: object) -> Client:
            made.append(
                await ClientFactory.connect(
                    server.base_url,
                    ClientConfig(
                        supported_transports=[binding],
                        grpc_channel_factory=grpc.aio.insecure_channel,
                        httpx_client=http,
                        **config,
                    ),
                )
            )
            return made[-1]

        yield make
        for client in made:
            await client.close()


@pytest.fixture
async def client(clients: Connect) -> Client:
    """A client that waits for answers."""
    return await clients(streaming=False)


@pytest.fixture
async def streamer(clients: Connect) -> Client:
    """A client that streams."""
    return await clients(streaming=True)


@pytest.fixture(params=[JsonRpc, HttpJson], ids=['1.0 JSONRPC', '1.0 HTTP+JSON'])
async def newer(server: Server, request: pytest.FixtureRequest) -> AsyncIterator[Wire]:
    """A caller of v1.0 at the same server."""
    wire = request.param(server.base_url)
    yield wire
    await wire.close()


@pytest.fixture(scope='module')
def pushing(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that may send to this machine."""
    flags = ('--push-allow', '127.0.0.0/8', '--push-allow-http')
    server = Server(binary, tmp_path_factory.mktemp('pushing'), 'sqlite', flags).start()
    yield server
    server.assert_healthy()
    server.kill()


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    async with Hook(pushed) as hook:
        yield hook
