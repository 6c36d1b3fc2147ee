"""The card, as the official client reads it."""

from __future__ import annotations

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import GetTaskRequest

from harness.sdk import run
from harness.server import Server


async def test_card_is_resolved_and_offers_three_bindings(server: Server) -> None:
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, server.base_url).get_agent_card()
    assert [(i.protocol_version, i.protocol_binding) for i in card.supported_interfaces] == [
        (version, binding)
        for version in ('1.0', '0.3')
        for binding in ('JSONRPC', 'HTTP+JSON', 'GRPC')
    ]
    assert card.capabilities.streaming
    assert card.name and card.description and card.version
    assert card.default_input_modes and card.default_output_modes and card.skills


async def test_client_without_preferences_works_from_the_card(server: Server) -> None:
    client = await ClientFactory(ClientConfig(streaming=False)).create_from_url(server.base_url)
    async with client:
        task = await run(client, 'hello')
        assert (await client.get_task(GetTaskRequest(id=task.id))).id == task.id


async def test_one_binding_reads_what_another_wrote(server: Server) -> None:
    tasks = []
    for binding in ('JSONRPC', 'HTTP+JSON', 'GRPC'):
        config = ClientConfig(
            streaming=False,
            supported_protocol_bindings=[binding],
            grpc_channel_factory=grpc.aio.insecure_channel,
        )
        async with await ClientFactory(config).create_from_url(server.base_url) as client:
            if not tasks:
                tasks.append(await run(client, 'héllo'))
            tasks.append(await client.get_task(GetTaskRequest(id=tasks[0].id)))
    assert all(task == tasks[0] for task in tasks)
