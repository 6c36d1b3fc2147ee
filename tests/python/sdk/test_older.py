"""The official client, given nothing but the interfaces of v0.3: its compatibility mode."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing

import grpc
import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    Part,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError

from harness.sdk import begin, collect, run, send, state_of, until
from harness.server import Server

COMPLETED = TaskState.TASK_STATE_COMPLETED


@pytest.fixture
async def clients(server: Server, binding: str) -> AsyncIterator[list[Client]]:
    """A client that waits, and one that streams."""
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, server.base_url).get_agent_card()
    for interface in list(card.supported_interfaces):
        if interface.protocol_version != '0.3':
            card.supported_interfaces.remove(interface)
    made = [
        ClientFactory(
            ClientConfig(
                streaming=streaming,
                supported_protocol_bindings=[binding],
                grpc_channel_factory=grpc.aio.insecure_channel,
            )
        ).create(card)
        for streaming in (False, True)
    ]
    assert all(type(one._transport).__name__.startswith('Compat') for one in made)
    yield made
    for one in made:
        await one.close()


@pytest.fixture
def client(clients: list[Client]) -> Client:
    return clients[0]


@pytest.fixture
def streamer(clients: list[Client]) -> Client:
    return clients[1]


async def test_send_waits_for_the_end(client: Client) -> None:
    task = await run(client, 'héllo')
    assert task.status.state == COMPLETED
    stored = await client.get_task(GetTaskRequest(id=task.id))
    assert stored.artifacts[0].parts[0].text == 'héllo'


async def test_send_that_does_not_wait_can_be_canceled(client: Client) -> None:
    task = await begin(client, 'slow 60')
    await until(client, task.id, TaskState.TASK_STATE_WORKING)
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert canceled.status.state == TaskState.TASK_STATE_CANCELED


async def test_stream_is_followed_to_its_end(client: Client, streamer: Client) -> None:
    items = await collect(streamer, 'chunks 50')
    assert sum(item.HasField('artifact_update') for item in items) == 50
    assert state_of(items[-1]) == COMPLETED
    asked = await run(client, 'input')
    async with aclosing(streamer.subscribe(SubscribeToTaskRequest(id=asked.id))) as events:
        assert (await anext(events)).task.id == asked.id
        await run(client, 'here it is', task_id=asked.id)
        rest = [event async for event in events]
    assert state_of(rest[-1]) == COMPLETED


async def test_direct_message_is_answered(client: Client) -> None:
    assert (await send(client, 'msg')).message.parts


async def test_bytes_come_back_as_they_were_sent(client: Client) -> None:
    part = Part(raw=bytes(range(256)), filename='all.bin', media_type='application/octet-stream')
    task = await run(client, parts=[Part(text='anything'), part])
    assert task.artifacts[0].parts[1] == part


async def test_refusals_are_the_exceptions_for_them(client: Client, streamer: Client) -> None:
    unknown = str(uuid.uuid4())
    with pytest.raises(TaskNotFoundError):
        await client.get_task(GetTaskRequest(id=unknown))
    with pytest.raises(TaskNotFoundError):
        await collect(streamer, 'hello', task_id=unknown)
    task = await run(client, 'hello')
    with pytest.raises(TaskNotCancelableError):
        await client.cancel_task(CancelTaskRequest(id=task.id))
    with pytest.raises(UnsupportedOperationError):
        await run(client, 'more', task_id=task.id)


async def test_push_configs_are_made_read_and_removed(client: Client, binding: str) -> None:
    task = await run(client, 'input')
    config = TaskPushNotificationConfig(task_id=task.id, id='one', url='https://example.com/hook')
    made = await client.create_task_push_notification_config(config)
    assert (made.task_id, made.id, made.url) == (task.id, 'one', config.url)
    asked = GetTaskPushNotificationConfigRequest(task_id=task.id, id='one')
    assert (await client.get_task_push_notification_config(asked)).url == config.url
    if binding == 'HTTP+JSON':
        return  # This mode of the client has no removal over it.
    await client.delete_task_push_notification_config(
        DeleteTaskPushNotificationConfigRequest(task_id=task.id, id='one')
    )
    with pytest.raises(TaskNotFoundError):
        await client.get_task_push_notification_config(asked)
