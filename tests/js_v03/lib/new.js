// The official client of v1.0, speaking that version or, where the card offers nothing else, v0.3.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

import { AgentCard, SendMessageRequest, taskStateToJSON } from '@a2a-js/sdk-v1';
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk-v1/client';
import { GrpcTransportFactory } from '@a2a-js/sdk-v1/client/grpc';

const WAIT_MS = 15_000;
const POLL_MS = 20;

const TRANSPORTS = {
  JSONRPC: (options) => new JsonRpcTransportFactory(options),
  'HTTP+JSON': (options) => new RestTransportFactory(options),
  GRPC: (options) => new GrpcTransportFactory(options),
};

/** A client of that binding, which finds interfaces of this version alone in the card. */
export async function connect(url, binding, version = '1.0') {
  const card = await (await fetch(`${url}/.well-known/agent-card.json`)).json();
  card.supportedInterfaces = card.supportedInterfaces.filter((one) => one.protocolVersion === version);
  const transport = TRANSPORTS[binding]({ legacyCompat: { enabled: version !== '1.0' } });
  return new ClientFactory({ transports: [transport] }).createFromAgentCard(AgentCard.fromJSON(card));
}

export function request(text, { configuration, ...members } = {}) {
  return SendMessageRequest.fromJSON({
    message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...members },
    configuration,
  });
}

export async function run(client, text, members) {
  const answer = await client.sendMessage(request(text, members));
  assert.ok('status' in answer, `not a task: ${JSON.stringify(answer)}`);
  return answer;
}

export async function begin(client, text, members) {
  return run(client, text, { ...members, configuration: { returnImmediately: true } });
}

export async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item.payload);
  return items;
}

export function get(client, id) {
  return client.getTask({ tenant: '', id });
}

export function stateOf({ status }) {
  return taskStateToJSON(status.state).replace('TASK_STATE_', '');
}

export async function until(client, id, state) {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    const task = await get(client, id);
    if (stateOf(task) === state) return task;
    assert.ok(Date.now() < deadline, `never ${state}: ${JSON.stringify(task)}`);
    await delay(POLL_MS);
  }
}

export function textOf(task) {
  return task.artifacts
    .flatMap((artifact) => artifact.parts)
    .map((part) => (part.content?.$case === 'text' ? part.content.value : ''))
    .join('');
}
