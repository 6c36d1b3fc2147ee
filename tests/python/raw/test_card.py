"""The card and the health routes (§8, §14.3)."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from harness.server import Server

PATHS = ['/.well-known/agent-card.json', '/.well-known/agent.json']


@pytest.mark.parametrize('path', PATHS)
def test_card_can_be_cached_and_revalidated(server: Server, path: str) -> None:
    url = server.base_url + path
    first = httpx.get(url)
    assert first.status_code == 200
    assert 'max-age=' in first.headers['cache-control']
    etag, modified = first.headers['etag'], first.headers['last-modified']
    for headers in ({'If-None-Match': etag}, {'If-None-Match': f'"x", {etag}'}):
        again = httpx.get(url, headers=headers)
        assert again.status_code == 304
        assert again.content == b''
        assert again.headers['etag'] == etag
    assert httpx.get(url, headers={'If-Modified-Since': modified}).status_code == 304
    stale = {'If-None-Match': '"x"', 'If-Modified-Since': modified}
    assert httpx.get(url, headers=stale).status_code == 200


@pytest.mark.row(104)
def test_card_offers_json_rpc_first_and_grpc_as_host_and_port(server: Server) -> None:
    interfaces = server.card['supportedInterfaces']
    host = f'127.0.0.1:{server.port}'
    url = f'http://{host}'
    assert [
        (i['protocolVersion'], i['protocolBinding'], i['url'].removesuffix('/')) for i in interfaces
    ] == [
        ('1.0', 'JSONRPC', url),
        ('1.0', 'HTTP+JSON', url),
        ('1.0', 'GRPC', host),
        ('0.3', 'JSONRPC', url),
        ('0.3', 'HTTP+JSON', url),
        ('0.3', 'GRPC', host),
    ]


def test_addresses_come_from_configuration_and_not_from_the_request(server: Server) -> None:
    url = server.base_url + PATHS[0]
    answer = httpx.get(url, headers={'Host': 'evil.example', 'X-Forwarded-Host': 'evil.example'})
    assert answer.json() == server.card


def test_public_url_is_what_the_card_says(own_server: Callable[..., Server]) -> None:
    server = own_server('memory', '--public-url', 'https://agent.example')
    urls = [i['url'].removesuffix('/') for i in server.card['supportedInterfaces']]
    # Once for each version.
    assert urls == ['https://agent.example', 'https://agent.example', 'agent.example:443'] * 2


@pytest.mark.row(101)
def test_card_has_what_is_required(server: Server) -> None:
    card = server.card
    for member in ('name', 'description', 'version'):
        assert card[member], member
    for member in ('supportedInterfaces', 'defaultInputModes', 'defaultOutputModes', 'skills'):
        assert card[member], member
    for skill in card['skills']:
        assert skill['id'] and skill['name'] and skill['description'] and skill['tags']
    capabilities = card['capabilities']
    assert capabilities['streaming'] is True
    assert capabilities.get('pushNotifications') is True
    assert not capabilities.get('extendedAgentCard')


def test_extensions_are_declared(server: Server) -> None:
    uris = {extension['uri'] for extension in server.card['capabilities']['extensions']}
    assert uris >= {
        'urn:longhaul:ext:artifact-versions:v1',
        'urn:longhaul:ext:stream-resume:v1',
        'urn:longhaul:ext:idempotent-send:v1',
    }
    assert not any(e.get('required') for e in server.card['capabilities']['extensions'])


@pytest.mark.parametrize('path', ['/healthz', '/readyz', *PATHS])
def test_card_and_health_ask_for_no_version(server: Server, path: str) -> None:
    for headers in ({}, {'A2A-Version': '9.9'}):
        assert httpx.get(server.base_url + path, headers=headers).status_code == 200
