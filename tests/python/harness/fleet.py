"""Several `longhaul` servers on one PostgreSQL database, which look like one to their callers."""

from __future__ import annotations

import os
import random
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.balancer import Balancer
from harness.server import Server

INSTANCES = 3
# So many that each instance has had one, unless the lots are false.
CONNECTIONS_ENOUGH = 50
VARIABLE = 'LONGHAUL_TEST_POSTGRES'


@contextmanager
def postgres(binary: Path) -> Iterator[str]:
    """The address of the server that tests share: `./test` names it, else it is started here."""
    if address := os.environ.get(VARIABLE):
        yield address
        return
    program = binary.with_name('longhaul-pgtest')
    assert program.exists(), f'there is no {program}: run `cargo build`, or set {VARIABLE}'
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            address = process.stdout.readline().decode().strip()
            assert address, 'PostgreSQL did not start'
            yield address
        finally:
            # It ends with its input.
            process.stdin.close()


class Fleet:
    """Three servers behind one port, used like one `Server`.

    Each request goes to any of them. Their tables are in a schema of their own, so that fleets
    share a database.
    """

    def __init__(self, binary: Path, folder: Path, address: str) -> None:
        self.seed = int(os.environ.get('LONGHAUL_SEED', random.getrandbits(32)))
        self.balancer = Balancer(self.seed)
        schema = f'test_{uuid.uuid4().hex}'
        extra = ('--public-url', self.base_url)
        self.servers = [
            Server(binary, folder / f'instance-{number}', f'{address}/postgres', extra)
            for number in range(INSTANCES)
        ]
        for server in self.servers:
            settings = f'[store.postgres]\nschema = "{schema}"\n'
            (server.data / 'longhaul.toml').write_text(settings)

    @property
    def base_url(self) -> str:
        return f'http://127.0.0.1:{self.balancer.port}'

    @property
    def card(self) -> dict:
        """The public card, the same at each instance."""
        cards = [server.card for server in self.servers]
        assert all(card == cards[0] for card in cards), 'the instances show different cards'
        return cards[0]

    def url_of(self, binding: str) -> str:
        """The card's address for a binding, which is that of them all."""
        return self.servers[0].url_of(binding)

    def start(self) -> Fleet:
        for server in self.servers:
            server.start()
        self.balancer.targets = [server.port for server in self.servers]
        return self

    def stop(self) -> None:
        self.balancer.close()
        taken = self.balancer.taken
        few = taken.total() < CONNECTIONS_ENOUGH
        assert few or len(taken) == INSTANCES, f'not every instance was asked: {taken}'
        for server in self.servers:
            server.stop()

    def kill(self) -> None:
        self.balancer.close()
        for server in self.servers:
            server.kill()

    def assert_healthy(self) -> None:
        for server in self.servers:
            server.assert_healthy()

    def log_tail(self, characters: int = 2000) -> str:
        tails = [server.log_tail(characters) for server in self.servers]
        return '\n---\n'.join([f'LONGHAUL_SEED={self.seed}', *tails])
