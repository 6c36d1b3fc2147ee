"""Words for the official Python client of v0.3: messages, and what to do with its answers."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest
from a2a.client import Client
from a2a.client.client import ClientEvent
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    Message,
    MessageSendConfiguration,
    Part,
    Role,
    Task,
    TaskQueryParams,
    TaskState,
    TextPart,
)

POLL_SECONDS = 0.02
WAIT_SECONDS = 15.0

# As each transport of v0.3 tells it: JSON-RPC code, HTTP status, gRPC status. The client has no names for them.
TABLE = {
    'TaskNotFound': (-32001, 404, 'NOT_FOUND'),
    'TaskNotCancelable': (-32002, 409, 'FAILED_PRECONDITION'),
    'PushNotificationNotSupported': (-32003, 501, 'UNIMPLEMENTED'),
    'UnsupportedOperation': (-32004, 501, 'UNIMPLEMENTED'),
    'ContentTypeNotSupported': (-32005, 415, 'INVALID_ARGUMENT'),
    'InvalidParams': (-32602, 400, 'INVALID_ARGUMENT'),
}


@contextmanager
def refused(name: str) -> Iterator[None]:
    """What happens inside is refused with this error."""
    kinds = (A2AClientJSONRPCError, A2AClientHTTPError, grpc.aio.AioRpcError)
    with pytest.raises(kinds) as caught:
        yield
    error, (code, status, grpc_status) = caught.value, TABLE[name]
    if isinstance(error, A2AClientJSONRPCError):
        assert error.error.code == code, error
    elif isinstance(error, A2AClientHTTPError):
        assert error.status_code == status, error
    else:
        assert error.code().name == grpc_status, error


def message(text: str = '', *, parts: list[Part] | None = None, **members: object) -> Message:
    """A new message of the user."""
    return Message(
        message_id=str(uuid.uuid4()),
        role=Role.user,
        parts=parts if parts is not None else [Part(root=TextPart(text=text))],
        **members,
    )


async def collect(
    client: Client,
    text: str = '',
    *,
    configuration: MessageSendConfiguration | None = None,
    **members: object,
) -> list[ClientEvent | Message]:
    """All that the client yields: pairs of the task and what has changed it, or a message."""
    stream = client.send_message(message(text, **members), configuration=configuration)
    return [item async for item in stream]


async def send(client: Client, text: str = '', **members: object) -> Task | Message:
    """The one answer of a client that does not stream."""
    (answer,) = await collect(client, text, **members)
    return answer if isinstance(answer, Message) else answer[0]


async def run(client: Client, text: str = '', **members: object) -> Task:
    answer = await send(client, text, **members)
    assert isinstance(answer, Task), answer
    return answer


async def begin(client: Client, text: str = '', **members: object) -> Task:
    return await run(
        client, text, configuration=MessageSendConfiguration(blocking=False), **members
    )


async def until(client: Client, task_id: str, state: TaskState) -> Task:
    """Asks until the task is in that state."""
    deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
    while True:
        task = await client.get_task(TaskQueryParams(id=task_id))
        if task.status.state == state:
            return task
        assert asyncio.get_running_loop().time() < deadline, f'never {state}: {task}'
        await asyncio.sleep(POLL_SECONDS)


def state_of(item: ClientEvent) -> TaskState:
    """The state of the task when the client told of it."""
    task, update = item
    status = getattr(update, 'status', None) or task.status
    return status.state


def text_of(task: Task) -> str:
    return ''.join(part.root.text for one in task.artifacts or [] for part in one.parts)


def pushed(body: bytes) -> Task:
    """What a push notification of v0.3 tells: the task. Another version's would not be read."""
    data = json.loads(body)
    assert data.get('kind') == 'task', data
    return Task.model_validate(data)
