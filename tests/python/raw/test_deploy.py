"""What `deploy/` gives users: its compose file is one, and its nginx serves all three bindings, streams as they come."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from harness.jsonish import state_of
from harness.server import Server, free_port
from harness.wire import Wire, next_event, rest_of

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / 'deploy'
READY_TIMEOUT_SECONDS = 10.0


@pytest.fixture(scope='module')
def compose() -> dict:
    return yaml.safe_load((DEPLOY / 'docker-compose.yml').read_text())


def test_instances_wait_for_a_healthy_database_and_nginx_for_them(compose: dict) -> None:
    services = compose['services']
    assert set(services) == {'database', 'longhaul', 'nginx'}
    assert services['longhaul']['deploy']['replicas'] == 3
    for service, needs in (('longhaul', 'database'), ('nginx', 'longhaul')):
        assert services[service]['depends_on'][needs] == {'condition': 'service_healthy'}
        assert services[needs]['healthcheck']['test'][0] == 'CMD'
    # Only nginx can be reached from outside, and what the database keeps outlives its container.
    assert [name for name, service in services.items() if 'ports' in service] == ['nginx']
    (volume,) = services['database']['volumes']
    assert volume.split(':')[0] in compose['volumes']


def test_secrets_come_from_the_environment(compose: dict) -> None:
    services = compose['services']
    secrets = [services['database']['environment']['POSTGRES_PASSWORD'], services['longhaul']['environment']['PGPASSWORD']]
    # Compose refuses to start without one, and says what to do.
    assert all(re.fullmatch(r'\$\{POSTGRES_PASSWORD:\?.+}', secret) for secret in secrets), secrets
    assert ':' not in services['longhaul']['environment']['LONGHAUL_STORE'].split('@')[0].removeprefix('postgres://')


def test_variables_and_files_of_the_compose_file_are_there(compose: dict) -> None:
    text = (DEPLOY / 'docker-compose.yml').read_text()
    used = set(re.findall(r'(?<!\$)\$\{([A-Z_]+)', text))
    told = set(re.findall(r'^([A-Z_]+)=', (DEPLOY / '.env.example').read_text(), re.MULTILINE))
    assert used == told
    build = compose['services']['longhaul']['build']
    assert (DEPLOY / build['context']).resolve() == ROOT
    assert (ROOT / build['dockerfile']).is_file()
    for volume in compose['services']['nginx']['volumes']:
        assert (DEPLOY / volume.split(':')[0]).is_file()


def test_the_health_of_an_instance_is_asked_in_bash(compose: dict, server: Server) -> None:
    _, *command = compose['services']['longhaul']['healthcheck']['test']
    script = command[-1].replace('$$', '$')
    for port, healthy in ((server.port, True), (free_port(), False)):
        asked = subprocess.run([*command[:-1], script.replace('/4100', f'/{port}')], capture_output=True, timeout=10)
        assert (asked.returncode == 0) == healthy, asked


def nginx_program() -> str:
    """The machine's, or the one that `./test` unpacked."""
    unpacked = ROOT / 'tests' / '.work' / 'nginx' / 'usr' / 'sbin' / 'nginx'
    found = shutil.which('nginx') or (str(unpacked) if os.access(unpacked, os.X_OK) else None)
    assert found, 'there is no nginx: run ./test --only python once, which brings it, or install it'
    return found


def configuration(upstream: str, http: int, grpc: int) -> str:
    """`nginx.conf` for another upstream, and for older versions of nginx than that of the compose file: before 1.25.1 a port
    without TLS is for HTTP/1.1 or for HTTP/2."""
    changed = (DEPLOY / 'nginx.conf').read_text()
    for old, new in (
        ('set $longhaul longhaul:4100;', f'set $longhaul {upstream};'),
        ('listen 8080;\n        http2 on;', f'listen 127.0.0.1:{http};\n        listen 127.0.0.1:{grpc} http2;'),
        ('pid /tmp/nginx.pid;', 'pid nginx.pid;\ndaemon off;'),
    ):
        assert changed.count(old) == 1, old
        changed = changed.replace(old, new)
    # Else they would be those of the machine.
    temp = '\n'.join(
        f'    {kind}_temp_path {kind};' for kind in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi')
    )
    return changed.replace('http {', f'http {{\n{temp}', 1)


class Proxy:
    """Addresses of nginx, as those of a server."""

    def __init__(self, http: int, grpc: int) -> None:
        self.urls = {
            'JSONRPC': f'http://127.0.0.1:{http}',
            'HTTP+JSON': f'http://127.0.0.1:{http}',
            'GRPC': f'127.0.0.1:{grpc}',
        }

    def url_of(self, binding: str) -> str:
        return self.urls[binding]


@pytest.fixture
def proxy(server: Server, tmp_path: Path) -> Iterator[Proxy]:
    """nginx with the configuration of `deploy/` before a server."""
    http, grpc = free_port(), free_port()
    config = tmp_path / 'nginx.conf'
    config.write_text(configuration(f'127.0.0.1:{server.port}', http, grpc))
    command = [nginx_program(), '-p', str(tmp_path), '-c', str(config), '-e', 'stderr']
    tested = subprocess.run([*command, '-t'], capture_output=True, text=True)
    assert tested.returncode == 0, tested.stderr
    process = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        for port in (http, grpc):
            while True:
                assert process.poll() is None, 'nginx ended'
                try:
                    socket.create_connection(('127.0.0.1', port), timeout=1).close()
                    break
                except ConnectionRefusedError:
                    assert time.monotonic() < deadline, 'nginx does not listen'
                    time.sleep(0.02)
        yield Proxy(http, grpc)
    finally:
        process.terminate()
        process.wait(10)


async def test_nginx_hands_streams_on_as_they_come(
    proxy: Proxy, binding: str, connect: Callable[[object, str], Wire]
) -> None:
    wire = connect(proxy, binding)
    async with wire.stream('slow 3') as events:
        begun = time.monotonic()
        first = await next_event(events)
        assert 'task' in first.data
        # Long before the end, and not with it.
        assert time.monotonic() - begun < 2
        task_id = first.data['task']['id']
        assert (await wire.until(task_id, 'WORKING'))['id'] == task_id
        last = (await rest_of(events))[-1]
    assert state_of(last.data) == 'TASK_STATE_COMPLETED'
