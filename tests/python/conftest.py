"""Fixtures: the binary, one running server for each store, and clients that are closed again."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from harness.grpc_wire import Grpc
from harness.http_wire import HttpJson, JsonRpc
from harness.server import Server
from harness.wire import BINDINGS, Wire

ROOT = Path(__file__).resolve().parents[2]
STORES = ('memory', 'sqlite')


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs each test over the bindings and stores that it names."""
    if 'store' in metafunc.fixturenames:
        each = metafunc.definition.get_closest_marker('each_store')
        metafunc.parametrize('store', STORES if each else ('sqlite',))
    if 'binding' in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker('bindings')
        metafunc.parametrize('binding', marker.args if marker else BINDINGS)


@pytest.fixture(scope='session')
def binary() -> Path:
    """The program under test: `LONGHAUL_BIN`, or the debug build."""
    path = Path(os.environ.get('LONGHAUL_BIN', ROOT / 'target' / 'debug' / 'longhaul'))
    if not os.access(path, os.X_OK):
        pytest.exit(f'there is no binary at {path}: run `cargo build` first', returncode=2)
    return path


@pytest.fixture(scope='session')
def pool(
    binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Server]]:
    """The servers that tests share: one for each store, started when first asked for."""
    servers: dict[str, Server] = {}

    def of(store: str) -> Server:
        if store not in servers:
            folder = tmp_path_factory.mktemp(f'server-{store}')
            servers[store] = Server(binary, folder, store).start()
        return servers[store]

    yield of
    failures = []
    for server in servers.values():
        try:
            server.assert_healthy()
            server.stop()
        except AssertionError as failure:
            server.kill()
            failures.append(failure)
    if failures:
        raise failures[0]


@pytest.fixture
def server(pool: Callable[[str], Server], store: str) -> Iterator[Server]:
    """A shared server. Tests keep apart by using contexts and tasks of their own."""
    server = pool(store)
    server.assert_healthy()
    yield server
    server.assert_healthy()


@pytest.fixture
def own_server(binary: Path, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Makes servers that only this test uses: to be killed, restarted, or set up differently."""
    servers: list[Server] = []

    def make(store: str = 'sqlite', *extra: str, command: str = 'demo-server') -> Server:
        folder = tmp_path / f'server-{len(servers)}'
        folder.mkdir()
        servers.append(Server(binary, folder, store, extra, command))
        return servers[-1].start()

    yield make
    for server in servers:
        server.assert_healthy()
        server.kill()


@pytest.fixture
async def connect() -> AsyncIterator[Callable[[Server, str], Wire]]:
    """Opens raw bindings and closes them when the test ends."""
    wires: list[Wire] = []

    def to(server: Server, binding: str) -> Wire:
        kind = {'JSONRPC': JsonRpc, 'HTTP+JSON': HttpJson, 'GRPC': Grpc}[binding]
        wires.append(kind(server.url_of(binding)))
        return wires[-1]

    yield to
    for wire in wires:
        await wire.close()


@pytest.fixture
def wire(server: Server, binding: str, connect: Callable[[Server, str], Wire]) -> Wire:
    """One raw binding of a shared server."""
    return connect(server, binding)
