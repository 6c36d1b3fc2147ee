"""The kinds of parts, there and back through the official client of v0.3, and as v1.0 sees them."""

from __future__ import annotations

import base64

import pytest
from a2a.client import Client
from a2a.types import DataPart, FilePart, FileWithBytes, FileWithUri, Part, TaskQueryParams, TextPart

from harness.wire import Wire
from words import run

pytestmark = pytest.mark.one_and_many

BYTES = bytes(range(256))
BASE64 = base64.b64encode(BYTES).decode()

PARTS = {
    'text': TextPart(text='plain words'),
    'empty text': TextPart(text=''),
    'unicode': TextPart(text='héllo 🌍 漢字 \u2028 \u2029 \U0010ffff e\u0301 "\\'),
    'bytes': FilePart(
        file=FileWithBytes(bytes=BASE64, name='all.bin', mime_type='application/octet-stream')
    ),
    'uri': FilePart(
        file=FileWithUri(uri='https://example.com/a%20b?c=d', name='ü.txt', mime_type='text/plain')
    ),
    'data': DataPart(data={'a': [1, 2.5, 'x', None, {'b': {}}], 'c': False, 'd': ''}),
    'empty data': DataPart(data={}),
    'metadata': TextPart(text='x', metadata={'k': None, 'n': {'deep': [0]}}),
}
# What v1.0 has for them, where that is to be told by both.
IN_V1 = {
    'text': {'text': 'plain words'},
    'unicode': {'text': PARTS['unicode'].text},
    'uri': {
        'url': 'https://example.com/a%20b?c=d',
        'filename': 'ü.txt',
        'mediaType': 'text/plain',
    },
    'data': {'data': {'a': [1, 2.5, 'x', None, {'b': {}}], 'c': False, 'd': ''}},
    'metadata': {'text': 'x', 'metadata': {'k': None, 'n': {'deep': [0]}}},
}


@pytest.mark.parametrize('kind', PARTS)
async def test_part_comes_back_as_it_was_sent(client: Client, kind: str) -> None:
    part = Part(root=PARTS[kind])
    task = await run(client, parts=[Part(root=TextPart(text='anything')), part])
    assert task.history[0].parts[1] == part
    (artifact,) = task.artifacts
    assert artifact.parts[1] == part
    stored = await client.get_task(TaskQueryParams(id=task.id))
    assert stored.artifacts[0].parts[1] == part
    assert stored.history[0].parts[1] == part


@pytest.mark.parametrize('kind', IN_V1)
async def test_part_is_read_by_v1(client: Client, newer: Wire, kind: str) -> None:
    task = await run(client, parts=[Part(root=TextPart(text='anything')), Part(root=PARTS[kind])])
    stored = await newer.get(task.id)
    assert stored['artifacts'][0]['parts'][1] == IN_V1[kind]
    assert stored['history'][0]['parts'][1] == IN_V1[kind]


@pytest.mark.bindings('JSONRPC')
async def test_bytes_are_the_same_in_v1(client: Client, newer: Wire) -> None:
    task = await run(client, parts=[Part(root=TextPart(text='x')), Part(root=PARTS['bytes'])])
    part = (await newer.get(task.id))['artifacts'][0]['parts'][1]
    assert part == {
        'raw': BASE64,
        'filename': 'all.bin',
        'mediaType': 'application/octet-stream',
    }


# Over these this client sends the base64 itself as the bytes, and takes the bytes that come for base64. Nobody can tell
# from outside: what it sends it gets back, and others see the base64.
@pytest.mark.bindings('HTTP+JSON', 'GRPC')
async def test_bytes_of_this_client_are_base64_to_others(client: Client, newer: Wire) -> None:
    task = await run(client, parts=[Part(root=TextPart(text='x')), Part(root=PARTS['bytes'])])
    part = (await newer.get(task.id))['artifacts'][0]['parts'][1]
    assert base64.b64decode(base64.b64decode(part['raw'])) == BYTES
