"""The official Python client, set up as its documentation says and otherwise left alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import pytest
from a2a.client import Client, ClientConfig, ClientFactory

from harness.server import Server

Connect = Callable[..., Awaitable[Client]]


@pytest.fixture
async def clients(server: Server, binding: str) -> AsyncIterator[Connect]:
    """Makes clients of one binding: `await clients(streaming=False)`."""
    made: list[Client] = []

    async def make(**config: object) -> Client:
        factory = ClientFactory(
            ClientConfig(
                supported_protocol_bindings=[binding],
                grpc_channel_factory=grpc.aio.insecure_channel,
                **config,
            )
        )
        made.append(await factory.create_from_url(server.base_url))
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
