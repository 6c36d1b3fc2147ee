"""The two HTTP bindings, on httpx alone."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

import httpx

from harness.errors import ApiError
from harness.sse import Comment, read_items
from harness.wire import CALL_TIMEOUT_SECONDS, OPERATIONS, VERSION, Event, Reply, Wire, encode

JSON_TYPE = 'application/json'
A2A_TYPE = 'application/a2a+json'
STREAM_TYPE = 'text/event-stream'


def media_type(answer: httpx.Response) -> str:
    return answer.headers.get('content-type', '').partition(';')[0].strip().lower()


def path_segment(value: str) -> str:
    """A value as one segment of a path; dots alone would be resolved by the client."""
    escaped = quote(value, safe='')
    return escaped.replace('.', '%2E') if escaped in ('.', '..') else escaped


class HttpWire(Wire):
    """What the two HTTP bindings share."""

    def __init__(self, url: str) -> None:
        self.url = url
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
        self.http = httpx.AsyncClient(limits=limits, trust_env=False)

    async def close(self) -> None:
        await self.http.aclose()

    def request(
        self, operation: str, params: dict, headers: dict[str, str], timeout: float | None
    ) -> httpx.Request:
        raise NotImplementedError

    def result(self, answer: httpx.Response, body: bytes) -> dict:
        raise NotImplementedError

    def item(self, text: str) -> dict:
        raise NotImplementedError

    async def ask(
        self,
        operation,
        params,
        *,
        version=VERSION,
        extensions=None,
        timeout=CALL_TIMEOUT_SECONDS,
    ):
        headers = {} if version is None else {'A2A-Version': version}
        if extensions is not None:
            headers['A2A-Extensions'] = extensions
        request = self.request(operation, params, headers, timeout)
        answer = await self.http.send(request)
        data = self.result(answer, answer.content)
        return Reply(data, answer.content, dict(answer.headers))

    @asynccontextmanager
    async def open(
        self,
        operation,
        params,
        *,
        version=VERSION,
        last_event_id=None,
        timeout=CALL_TIMEOUT_SECONDS,
    ):
        headers = {'Accept': STREAM_TYPE}
        if version is not None:
            headers['A2A-Version'] = version
        if last_event_id is not None:
            headers['Last-Event-ID'] = str(last_event_id)
        request = self.request(operation, params, headers, timeout)
        answer = await self.http.send(request, stream=True)
        try:
            if media_type(answer) != STREAM_TYPE:
                # A stream that is refused before its first item is a plain answer.
                data = self.result(answer, await answer.aread())
                raise AssertionError(f'a stream was answered with one result: {data}')
            assert answer.status_code == 200, answer.status_code
            yield self._events(answer)
        finally:
            await answer.aclose()

    async def _events(self, answer: httpx.Response) -> AsyncIterator[Event]:
        async for item in read_items(answer.aiter_bytes()):
            if isinstance(item, Comment):
                continue
            sequence = int(item.id) if item.id else None
            yield Event(self.item(item.data), sequence)


class JsonRpc(HttpWire):
    """JSON-RPC 2.0 (§9)."""

    name = 'JSONRPC'

    def request(self, operation, params, headers, timeout):
        self.last_id = str(uuid.uuid4())
        body = {'jsonrpc': '2.0', 'id': self.last_id, 'method': operation, 'params': params}
        return self.http.build_request(
            'POST',
            self.url,
            content=encode(body),
            headers={'Content-Type': JSON_TYPE, **headers},
            timeout=timeout,
        )

    def result(self, answer, body):
        return self.unwrap(body, answer.status_code)

    def item(self, text):
        return self.unwrap(text, 200)

    def unwrap(self, body: bytes | str, status: int) -> dict:
        envelope = json.loads(body)
        assert envelope.get('jsonrpc') == '2.0', envelope
        assert 'id' in envelope, envelope
        assert len(envelope.keys() & {'result', 'error'}) == 1, envelope
        if 'error' not in envelope:
            return envelope['result']
        error = envelope['error']
        raise ApiError(
            self.name,
            error['message'],
            error.get('data', []),
            json_rpc=error['code'],
            http=status,
            body=envelope,
        )


class HttpJson(HttpWire):
    """HTTP+JSON (§11)."""

    name = 'HTTP+JSON'

    def request(self, operation, params, headers, timeout):
        op = OPERATIONS[operation]
        rest = dict(params)
        path = op.path
        for member in ('taskId', 'id'):
            if f'{{{member}}}' in path:
                path = path.replace(f'{{{member}}}', path_segment(rest.pop(member)))
        url = self.url.removesuffix('/') + path
        if op.verb == 'POST':
            headers = {'Content-Type': A2A_TYPE, **headers}
            options = {'content': encode(rest)}
        else:
            options = {'params': {k: self._query(v) for k, v in rest.items()}}
        return self.http.build_request(op.verb, url, headers=headers, timeout=timeout, **options)

    @staticmethod
    def _query(value: object) -> str:
        return value if isinstance(value, str) else json.dumps(value)

    def result(self, answer, body):
        if answer.is_success:
            assert media_type(answer) == A2A_TYPE, answer.headers.get('content-type')
            return json.loads(body)
        raise self.error(json.loads(body), answer.status_code)

    def item(self, text):
        value = json.loads(text)
        if 'error' in value:
            raise self.error(value, value['error']['code'])
        return value

    def error(self, body: dict, status: int) -> ApiError:
        """The `google.rpc.Status` of §11.6."""
        error = body['error']
        assert error['code'] == status, body
        return ApiError(
            self.name,
            error['message'],
            error.get('details', []),
            http=status,
            grpc=error['status'],
            body=body,
        )
