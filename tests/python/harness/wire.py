"""The operations of §3.1 through one raw binding: no SDK between the test and the wire.

`Wire` is the same for all three; parameters and answers are the protocol's JSON. A refusal is
raised as `ApiError`, with whatever numbers the binding gave it.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

TERMINAL = frozenset(
    f'TASK_STATE_{name}' for name in ('COMPLETED', 'FAILED', 'CANCELED', 'REJECTED')
)
INTERRUPTED = frozenset(f'TASK_STATE_{name}' for name in ('INPUT_REQUIRED', 'AUTH_REQUIRED'))
BINDINGS = ('JSONRPC', 'HTTP+JSON', 'GRPC')
JSON_BINDINGS = ('JSONRPC', 'HTTP+JSON')
VERSION = '1.0'
CALL_TIMEOUT_SECONDS = 30.0
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Operation:
    """Where one operation lives in each binding (§5.3)."""

    name: str
    verb: str
    path: str
    stream: bool = False


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation('SendMessage', 'POST', '/message:send'),
        Operation('SendStreamingMessage', 'POST', '/message:stream', stream=True),
        Operation('GetTask', 'GET', '/tasks/{id}'),
        Operation('ListTasks', 'GET', '/tasks'),
        Operation('CancelTask', 'POST', '/tasks/{id}:cancel'),
        Operation('SubscribeToTask', 'POST', '/tasks/{id}:subscribe', stream=True),
        Operation(
            'CreateTaskPushNotificationConfig', 'POST', '/tasks/{taskId}/pushNotificationConfigs'
        ),
        Operation(
            'GetTaskPushNotificationConfig', 'GET', '/tasks/{taskId}/pushNotificationConfigs/{id}'
        ),
        Operation(
            'ListTaskPushNotificationConfigs', 'GET', '/tasks/{taskId}/pushNotificationConfigs'
        ),
        Operation(
            'DeleteTaskPushNotificationConfig',
            'DELETE',
            '/tasks/{taskId}/pushNotificationConfigs/{id}',
        ),
        Operation('GetExtendedAgentCard', 'GET', '/extendedAgentCard'),
    )
}


@dataclass(frozen=True)
class Event:
    """One item of a stream: the payload, and its sequence where the binding tells it."""

    data: dict
    sequence: int | None = None


@dataclass
class Reply:
    """An answer with what surrounds it."""

    data: dict
    raw: bytes = b''
    headers: dict[str, str] = field(default_factory=dict)


def text_message(
    text: str | None = None,
    *,
    parts: list[dict] | None = None,
    message_id: str | None = None,
    task_id: str | None = None,
    context_id: str | None = None,
    **members: object,
) -> dict:
    """A caller's message, with an id of its own unless one is given."""
    message: dict = {
        'messageId': message_id or str(uuid.uuid4()),
        'role': 'ROLE_USER',
        'parts': parts if parts is not None else [{'text': text}],
        **members,
    }
    if task_id is not None:
        message['taskId'] = task_id
    if context_id is not None:
        message['contextId'] = context_id
    return message


class Wire(ABC):
    """One binding of one server."""

    name: str

    @abstractmethod
    async def ask(
        self,
        operation: str,
        params: dict,
        *,
        version: str | None = VERSION,
        extensions: str | None = None,
        timeout: float = CALL_TIMEOUT_SECONDS,
    ) -> Reply:
        """One short call. `version` None leaves `A2A-Version` out, `extensions` None the other."""

    @abstractmethod
    def open(
        self,
        operation: str,
        params: dict,
        *,
        version: str | None = VERSION,
        last_event_id: str | int | None = None,
        timeout: float | None = CALL_TIMEOUT_SECONDS,
    ):
        """A context manager that holds one stream open and gives an iterator of `Event`."""

    @abstractmethod
    async def close(self) -> None:
        """Ends all connections."""

    async def call(self, operation: str, params: dict, **options: object) -> dict:
        return (await self.ask(operation, params, **options)).data

    # What follows only saves the tests some words.

    async def send(
        self,
        text: str | None = None,
        *,
        configuration: dict | None = None,
        timeout: float = CALL_TIMEOUT_SECONDS,
        **message: object,
    ) -> dict:
        """SendMessage: a dict with exactly one of `task` and `message`."""
        params: dict = {'message': text_message(text, **message)}
        if configuration is not None:
            params['configuration'] = configuration
        answer = await self.call('SendMessage', params, timeout=timeout)
        assert len(answer.keys() & {'task', 'message'}) == 1 == len(answer), answer
        return answer

    async def run(self, text: str | None = None, **options: object) -> dict:
        """A blocking send that has to be answered with a task."""
        return (await self.send(text, **options))['task']

    async def begin(self, text: str | None = None, **options: object) -> dict:
        """A send that does not wait."""
        return await self.run(text, configuration={'returnImmediately': True}, **options)

    async def get(self, task_id: str, **params: object) -> dict:
        return await self.call('GetTask', {'id': task_id, **params})

    async def list(self, **params: object) -> dict:
        return await self.call('ListTasks', params)

    async def cancel(self, task_id: str) -> dict:
        return await self.call('CancelTask', {'id': task_id})

    def stream(self, text: str | None = None, **message: object):
        """SendStreamingMessage."""
        configuration = message.pop('configuration', None)
        params: dict = {'message': text_message(text, **message)}
        if configuration is not None:
            params['configuration'] = configuration
        return self.open('SendStreamingMessage', params)

    def subscribe(self, task_id: str, last_event_id: str | int | None = None, **options: object):
        return self.open('SubscribeToTask', {'id': task_id}, last_event_id=last_event_id, **options)

    async def collect(self, text: str | None = None, **message: object) -> list[Event]:
        """A whole SendStreamingMessage stream."""
        async with self.stream(text, **message) as events:
            return [event async for event in events]

    async def collect_task(
        self, task_id: str, last_event_id: str | int | None = None
    ) -> list[Event]:
        """A whole SubscribeToTask stream; it ends when the task does."""
        async with self.subscribe(task_id, last_event_id) as events:
            return [event async for event in events]

    async def until(self, task_id: str, *states: str, timeout: float = 20.0) -> dict:
        """Waits for a task to be in one of the states (any terminal one when none is named)."""
        wanted = {f'TASK_STATE_{state}' for state in states} or TERMINAL
        deadline = time.monotonic() + timeout
        while True:
            task = await self.get(task_id)
            state = task['status']['state']
            if state in wanted:
                return task
            assert state not in TERMINAL, f'ended as {state}, never in {sorted(wanted)}: {task}'
            assert time.monotonic() < deadline, f'still {state} after {timeout} s'
            await asyncio.sleep(POLL_SECONDS)

    async def stays(self, task_id: str, seconds: float) -> dict:
        """Watches a task for a while, and fails when anything about it changes."""
        first = await self.get(task_id)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            await asyncio.sleep(0.2)
            now = await self.get(task_id)
            assert now == first, f'the task changed: {first} became {now}'
        return first

    async def task_in(self, state: str) -> dict:
        """A task of the demo agent that has come to rest in that state."""
        if state == 'CANCELED':
            task = await self.begin('slow 60')
            await self.until(task['id'], 'WORKING')
            task = await self.cancel(task['id'])
        else:
            text = {
                'COMPLETED': 'hello',
                'FAILED': 'fail',
                'REJECTED': 'reject',
                'INPUT_REQUIRED': 'input',
                'AUTH_REQUIRED': 'auth',
            }[state]
            task = await self.run(text)
        assert task['status']['state'] == f'TASK_STATE_{state}', task
        return task


async def next_event(events: AsyncIterator[Event], timeout: float = 10.0) -> Event:
    """The next item; an end of the stream or silence is a failure."""
    return await asyncio.wait_for(anext(events), timeout)


async def rest_of(events: AsyncIterator[Event], timeout: float = 20.0) -> list[Event]:
    """What follows until the server ends the stream."""

    async def read() -> list[Event]:
        return [event async for event in events]

    return await asyncio.wait_for(read(), timeout)


def data_of(events: list[Event]) -> list[dict]:
    return [event.data for event in events]


def encode(value: dict) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
