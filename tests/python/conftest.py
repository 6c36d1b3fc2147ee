"""Fixtures: raw clients of each binding, which are closed again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import pytest

from harness.grpc_wire import Grpc
from harness.http_wire import HttpJson, JsonRpc
from harness.wire import Wire

if TYPE_CHECKING:
    from harness.fixtures import Running

pytest_plugins = ('harness.fixtures',)


@pytest.fixture
async def connect() -> AsyncIterator[Callable[[Running, str], Wire]]:
    """Opens raw bindings and closes them when the test ends."""
    wires: list[Wire] = []

    def to(server: Running, binding: str) -> Wire:
        kind = {'JSONRPC': JsonRpc, 'HTTP+JSON': HttpJson, 'GRPC': Grpc}[binding]
        wires.append(kind(server.url_of(binding)))
        return wires[-1]

    yield to
    for wire in wires:
        await wire.close()


@pytest.fixture
def wire(server: Running, binding: str, connect: Callable[[Running, str], Wire]) -> Wire:
    """One raw binding of a shared server."""
    return connect(server, binding)
