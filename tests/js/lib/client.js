// The official client for one binding, set up as its documentation says, and words to use it.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

import { AgentCard, SendMessageRequest, taskStateToJSON } from '@a2a-js/sdk';
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';

export * as errors from '@a2a-js/sdk/errors';

const WAIT_MS = 15_000;
const POLL_MS = 20;

const TRANSPORTS = {
  JSONRPC: (options) => new JsonRpcTransportFactory(options),
  'HTTP+JSON': (options) => new RestTransportFactory(options),
  GRPC: (options) => new GrpcTransportFactory(options),
};

export const BINDINGS = Object.keys(TRANSPORTS);
export const STORES = ['memory', 'sqlite', 'postgres'];

/** A client that speaks that binding alone. */
export async function connect(url, binding) {
  return new ClientFactory({ transports: [TRANSPORTS[binding]()] }).createFromUrl(url);
}

/** The same by a card that offers nothing but v0.3: the client's compatibility mode. */
export async function connectByOlder(url, binding) {
  const card = await (await fetch(`${url}/.well-known/agent-card.json`)).json();
  card.supportedInterfaces = card.supportedInterfaces.filter((one) => one.protocolVersion === '0.3');
  const transport = TRANSPORTS[binding]({ legacyCompat: { enabled: true } });
  return new ClientFactory({ transports: [transport] }).createFromAgentCard(AgentCard.fromJSON(card));
}

/** A request with a new message; `configuration` goes to the request, the rest to the message. */
export function request(text, { configuration, parts, ...members } = {}) {
  return SendMessageRequest.fromJSON({
    message: {
      messageId: randomUUID(),
      role: 'ROLE_USER',
      parts: parts ?? [{ text }],
      ...members,
    },
    configuration,
  });
}

/** A blocking send that has to be answered with a task. */
export async function run(client, text, members) {
  const answer = await client.sendMessage(request(text, members));
  assert.ok('status' in answer, `not a task: ${JSON.stringify(answer)}`);
  return answer;
}

/** A send that does not wait. */
export async function begin(client, text, members) {
  return run(client, text, { ...members, configuration: { returnImmediately: true } });
}

/** A whole stream. */
export async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item.payload);
  return items;
}

export function stateOf({ status }) {
  return taskStateToJSON(status.state).replace('TASK_STATE_', '');
}

/** The state that a stream's item tells, if it tells one. */
export function stateOfItem({ $case, value }) {
  return $case === 'task' || $case === 'statusUpdate' ? stateOf(value) : undefined;
}

export function get(client, id) {
  return client.getTask({ tenant: '', id });
}

/** Asks until the task is in that state. */
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
