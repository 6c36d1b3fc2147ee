"""One `longhaul` server process, started on a free port and stopped by its own process id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx

READY_TIMEOUT_SECONDS = 30.0
STOP_TIMEOUT_SECONDS = 20.0
POLL_SECONDS = 0.02
PORT_TRIES = 5


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def environment() -> dict[str, str]:
    """Our environment without what would change the server's settings."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith(('LONGHAUL_', 'RUST_LOG'))}
    return {**ours, 'RUST_BACKTRACE': '1', 'NO_COLOR': '1'}


class ServerFailed(AssertionError):
    """The process ended, or never became ready; the message holds the end of its log."""


class Server:
    """A server process with a folder of its own: for its data, or to run in.

    The folder and the port outlive the process, so that `kill()` followed by `start()` is a
    restart as its callers see it.
    """

    def __init__(
        self,
        binary: Path,
        folder: Path,
        store: str,
        extra: tuple[str, ...] = (),
        command: str = 'demo-server',
    ) -> None:
        self.binary = binary
        self.data = folder / 'data'
        self.data.mkdir(parents=True, exist_ok=True)
        self.log = folder / 'server.log'
        self.store = store
        self.extra = extra
        self.command = command
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._card: dict | None = None

    @property
    def base_url(self) -> str:
        return f'http://127.0.0.1:{self.port}'

    @property
    def card(self) -> dict:
        """The public card, fetched once for each start."""
        if self._card is None:
            answer = httpx.get(f'{self.base_url}/.well-known/agent-card.json')
            answer.raise_for_status()
            self._card = answer.json()
        return self._card

    def url_of(self, binding: str) -> str:
        """The card's first address for a binding: what a client would use."""
        for interface in self.card['supportedInterfaces']:
            if interface['protocolBinding'] == binding:
                return interface['url']
        raise AssertionError(f'the card offers no {binding} interface')

    def start(self) -> Server:
        """Starts the process and returns when it says that it is ready."""
        first = not self.log.exists()
        for attempt in range(PORT_TRIES):
            try:
                self._start_once()
                return self
            except ServerFailed:
                # Somebody may have taken the port between our look and the server's bind. After
                # the first start the port is part of the contract, and no other may be tried.
                if not first or not self._port_was_taken() or attempt + 1 == PORT_TRIES:
                    raise
                self.port = free_port()
        raise AssertionError('unreachable')

    def _start_once(self) -> None:
        assert self.process is None, 'the server runs already'
        command = [
            str(self.binary),
            self.command,
            '--listen',
            f'127.0.0.1:{self.port}',
            '--store',
            self.store,
            *(() if self.store.startswith('postgres:') else ('--data', str(self.data))),
            *self.extra,
        ]
        with self.log.open('ab') as log:
            log.write(f'--- {" ".join(command)}\n'.encode())
            log.flush()
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(),
                # A configuration file of somebody else's folder must not be read.
                cwd=self.data,
            )
        self._card = None
        self._wait_ready()

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        with httpx.Client(base_url=self.base_url, timeout=5.0) as http:
            while time.monotonic() < deadline:
                code = self.process.poll()
                if code is not None:
                    self.process = None
                    raise ServerFailed(f'the server ended with {code}:\n{self.log_tail()}')
                try:
                    if all(http.get(path).status_code == 200 for path in ('/healthz', '/readyz')):
                        return
                except httpx.TransportError:
                    pass
                time.sleep(POLL_SECONDS)
        self.kill()
        raise ServerFailed(f'the server never became ready:\n{self.log_tail()}')

    def _port_was_taken(self) -> bool:
        return 'in use' in self.log_tail().lower()

    def stop(self) -> None:
        """Ends the process with SIGTERM, and fails when that is not enough."""
        if self.process is None:
            return
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ServerFailed(f'SIGTERM did not end the server:\n{self.log_tail()}') from None
        assert code == 0, f'SIGTERM ended the server with {code}:\n{self.log_tail()}'

    def kill(self) -> None:
        """Ends the process with SIGKILL: nothing that it had not stored survives."""
        if self.process is None:
            return
        process, self.process = self.process, None
        process.kill()
        process.wait()

    def restart(self) -> None:
        """An orderly stop, and a start on the same port and data."""
        self.stop()
        self.start()

    def assert_healthy(self) -> None:
        """The process has not ended by itself and no part of it has panicked."""
        if self.process is not None:
            code = self.process.poll()
            assert code is None, f'the server ended with {code}:\n{self.log_tail()}'
        log = self.log.read_text(errors='replace') if self.log.exists() else ''
        assert 'panicked at' not in log, f'the server panicked:\n{self.log_tail()}'

    def log_tail(self, characters: int = 4000) -> str:
        if not self.log.exists():
            return '(no log)'
        return self.log.read_text(errors='replace')[-characters:]
