"""The card, as the official client of v0.3 reads it."""

from __future__ import annotations

import grpc
import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientJSONRPCError
from a2a.client.transports.grpc import GrpcTransport
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.client.transports.rest import RestTransport
from a2a.types import TaskQueryParams, TransportProtocol

from harness.server import Server
from words import run


@pytest.mark.parametrize('path', [None, '.well-known/agent.json'])
async def test_card_is_resolved_and_offers_three_transports(server: Server, path: str | None) -> None:
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, server.base_url).get_agent_card(path)
    assert (card.protocol_version, card.url) == ('0.3', server.base_url)
    assert card.preferred_transport == TransportProtocol.jsonrpc
    offered = [(interface.transport, interface.url) for interface in card.additional_interfaces]
    assert offered == [('HTTP+JSON', server.base_url), ('GRPC', f'127.0.0.1:{server.port}')]
    assert card.capabilities.streaming and not card.supports_authenticated_extended_card
    assert card.name and card.description and card.version
    assert card.default_input_modes and card.default_output_modes and card.skills


@pytest.mark.parametrize(
    ('transport', 'kind'),
    [
        ('JSONRPC', JsonRpcTransport),
        ('HTTP+JSON', RestTransport),
        ('GRPC', GrpcTransport),
    ],
)
async def test_client_speaks_the_transport_that_was_asked_for(
    server: Server, transport: str, kind: type
) -> None:
    config = ClientConfig(
        supported_transports=[transport], grpc_channel_factory=grpc.aio.insecure_channel
    )
    async with await ClientFactory.connect(server.base_url, config) as client:
        assert isinstance(client._transport, kind)


async def test_client_without_preferences_works_from_the_card(server: Server) -> None:
    client = await ClientFactory.connect(server.base_url, ClientConfig(streaming=False))
    async with client:
        task = await run(client, 'hello')
        assert (await client.get_task(TaskQueryParams(id=task.id))).id == task.id


async def test_card_is_told_by_each_transport(client: Client, server: Server) -> None:
    public = await client.get_card()
    assert (public.protocol_version, public.url) == ('0.3', server.base_url)
    # The client asks only if the card offers another; so it is made to.
    client._transport._needs_extended_card = True
    if isinstance(client._transport, JsonRpcTransport):
        with pytest.raises(A2AClientJSONRPCError) as caught:
            await client.get_card()
        assert caught.value.error.code == -32007
        return
    told = await client.get_card()
    members = ('name', 'url', 'protocol_version', 'preferred_transport', 'additional_interfaces')
    for member in (*members, 'default_input_modes', 'version', 'description'):
        assert getattr(told, member) == getattr(public, member), member
    assert [skill.id for skill in told.skills] == [skill.id for skill in public.skills]
    assert told.capabilities.streaming
