"""Fixtures for every suite of Python tests: the binary, and a running server for each store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.fleet import Fleet, postgres
from harness.server import Server
from harness.wire import BINDINGS

ROOT = Path(__file__).resolve().parents[3]
STORES = ('memory', 'sqlite')

# To a test, the three instances on PostgreSQL are one server.
PLACES = (*STORES, 'postgres')
Running = Server | Fleet


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs each test over the bindings and stores that it names."""
    if 'store' in metafunc.fixturenames:
        marked = metafunc.definition.get_closest_marker
        stores = STORES if marked('each_store') else ('sqlite',)
        if marked('one_and_many'):
            stores = ('sqlite', 'postgres')
        metafunc.parametrize('store', PLACES if marked('each_place') else stores)
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
) -> Iterator[Callable[[str], Running]]:
    """What tests share: for each store a server, or instances, started when first asked for."""
    servers: dict[str, Running] = {}
    with ExitStack() as stack:

        def of(store: str) -> Running:
            if store not in servers:
                folder = tmp_path_factory.mktemp(f'server-{store}')
                if store == 'postgres':
                    address = stack.enter_context(postgres(binary))
                    servers[store] = Fleet(binary, folder, address).start()
                else:
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
def server(pool: Callable[[str], Running], store: str) -> Iterator[Running]:
    """A shared server. Tests keep apart by using contexts and tasks of their own."""
    server = pool(store)
    server.assert_healthy()
    if isinstance(server, Fleet):
        print(f'LONGHAUL_SEED={server.seed}')  # Shown when the test fails.
    yield server
    server.assert_healthy()


@pytest.fixture(scope='module')
def silent(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that does not push."""
    server = Server(binary, tmp_path_factory.mktemp('silent'), 'sqlite')
    (server.data / 'longhaul.toml').write_text('[push]\nenabled = false\n')
    server.start()
    yield server
    server.assert_healthy()
    server.kill()


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
