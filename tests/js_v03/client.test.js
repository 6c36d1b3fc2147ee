// The same core scenarios through every transport that the official JavaScript client of v0.3 speaks.

import assert from 'node:assert/strict';
import { randomInt, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import {
  AuthenticatedExtendedCardNotConfiguredError,
  ContentTypeNotSupportedError,
  PushNotificationNotSupportedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/client';

import { startFleet } from '../js/lib/fleet.js';
import { launch, startServer } from '../js/lib/server.js';
import { startHook } from './lib/hook.js';
import { BINDINGS, begin, collect, connect, params, run, stateOf, textOf, until } from './lib/old.js';
import { rejects } from './lib/rejects.js';

const STORES = ['sqlite', 'postgres'];
/** Where the choice of an instance for each request comes from. */
const SEED = Number(process.env.LONGHAUL_SEED ?? randomInt(2 ** 32));

for (const store of STORES) {
  const place = store === 'postgres' ? `three instances on postgres, LONGHAUL_SEED=${SEED}` : `store ${store}`;
  describe(place, () => {
    let server;
    before(async () => {
      server = store === 'postgres' ? await startFleet(SEED) : await startServer(store);
    });
    after(async () => server?.stop());
    for (const binding of BINDINGS) {
      describe(binding, { timeout: 60_000 }, () => scenarios(() => server.url, binding));
    }
  });
}

describe('push notifications', () => {
  let server;
  before(async () => {
    server = await launch(['--store', 'sqlite', '--data', './data', '--push-allow', '127.0.0.0/8', '--push-allow-http']);
  });
  after(async () => server?.stop());
  for (const binding of BINDINGS) {
    describe(binding, { timeout: 60_000 }, () => pushes(() => server.url, binding));
  }
});

describe('without push notifications', () => {
  let server;
  before(async () => {
    server = await launch(['--store', 'memory'], '[push]\nenabled = false\n');
  });
  after(async () => server?.stop());
  for (const binding of BINDINGS) {
    it(`${binding}: refuses them by the error for it`, async () => {
      const client = await connect(server.url, binding);
      assert.ok(!client.agentCard.capabilities.pushNotifications);
      const task = await run(client, 'hello');
      // The client refuses by itself while the card offers none; so the card is changed here.
      client.agentCard.capabilities.pushNotifications = true;
      const pushNotificationConfig = { id: 'one', url: 'https://example.com/hook' };
      await rejects(PushNotificationNotSupportedError, () =>
        client.setTaskPushNotificationConfig({ taskId: task.id, pushNotificationConfig }));
      await rejects(PushNotificationNotSupportedError, () => client.listTaskPushNotificationConfig({ id: task.id }));
    });
  }
});

function scenarios(url, binding) {
  let client;
  before(async () => {
    client = await connect(url(), binding);
  });

  it('speaks the transport that was asked for', () => {
    const kinds = { JSONRPC: 'JsonRpcTransport', 'HTTP+JSON': 'RestTransport', GRPC: 'GrpcTransport' };
    assert.equal(client.transport.constructor.name.replace(/^_/, ''), kinds[binding]);
    assert.equal(client.agentCard.protocolVersion, '0.3');
  });

  it('reads the card from its older path as well', async () => {
    const { agentCard } = await connect(url(), binding, '.well-known/agent.json');
    assert.deepEqual(agentCard, client.agentCard);
  });

  it('sends and waits for the end', async () => {
    const task = await run(client, 'héllo 🌍 漢字 \u2028');
    assert.equal(stateOf(task), 'completed');
    assert.equal(textOf(task), 'héllo 🌍 漢字 \u2028');
    assert.equal(stateOf(await run(client, 'slow 1')), 'completed');
  });

  it('sends without waiting', async () => {
    const task = await begin(client, 'slow 2');
    assert.ok(['submitted', 'working'].includes(stateOf(task)), stateOf(task));
    await until(client, task.id, 'completed');
  });

  it('streams the task, every chunk in order, and the end', async () => {
    const items = await collect(client.sendMessageStream(params('chunks 50')));
    assert.equal(items[0].kind, 'task');
    const updates = items.filter((item) => item.kind === 'artifact-update');
    assert.equal(updates.length, 50);
    // Over the other transports this client does not read it.
    if (binding === 'JSONRPC') {
      assert.deepEqual(updates.map((update) => update.append ?? false), [false, ...Array(49).fill(true)]);
    }
    assert.equal(stateOf(items.at(-1)), 'completed');
    assert.deepEqual(items.map((item) => item.final ?? false), [...Array(items.length - 1).fill(false), true]);
    const stored = await client.getTask({ id: items[0].id });
    assert.equal(textOf(stored), textOf({ artifacts: updates.map((update) => update.artifact) }));
  });

  it('streams every status of a burst', async () => {
    const items = await collect(client.sendMessageStream(params('burst 100')));
    const texts = items
      .filter((item) => item.kind === 'status-update' && stateOf(item) === 'working')
      .map((item) => item.status.message?.parts[0]?.text)
      .filter((text) => text !== undefined);
    assert.equal(new Set(texts).size, 100);
    assert.equal(texts.length, 100);
    assert.equal(stateOf(items.at(-1)), 'completed');
  });

  it('is asked for input and goes on', async () => {
    const asked = await run(client, 'input');
    assert.equal(stateOf(asked), 'input-required');
    assert.ok(asked.status.message.parts.length > 0);
    const done = await run(client, 'here it is', { taskId: asked.id, contextId: asked.contextId });
    assert.equal(done.id, asked.id);
    assert.equal(done.contextId, asked.contextId);
    assert.equal(stateOf(done), 'completed');
  });

  it('is asked for authorization, and the task goes on by itself', async () => {
    const asked = await run(client, 'auth');
    assert.equal(stateOf(asked), 'auth-required');
    await until(client, asked.id, 'completed');
    const items = await collect(client.sendMessageStream(params('auth')));
    assert.ok(items.some((item) => stateOf(item) === 'auth-required' && !item.final));
    assert.equal(stateOf(items.at(-1)), 'completed');
  });

  it('is answered with a message and no task', async () => {
    const answer = await client.sendMessage(params('msg'));
    assert.equal(answer.kind, 'message');
    const items = await collect(client.sendMessageStream(params('msg')));
    assert.deepEqual(items.map((item) => item.kind), ['message']);
  });

  it('sees refusals and failures as states', async () => {
    assert.equal(stateOf(await run(client, 'reject')), 'rejected');
    assert.equal(stateOf(await run(client, 'fail')), 'failed');
    assert.equal(stateOf(await run(client, 'fail late')), 'failed');
  });

  it('gets every kind of part back as it was sent', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, n) => n)).toString('base64');
    // Over the other transports this client knows no names of files and, over gRPC, no null.
    const name = (name) => (binding === 'JSONRPC' ? { name } : {});
    const nothing = binding === 'GRPC' ? [] : [null];
    const parts = [
      { kind: 'text', text: 'plain words' },
      { kind: 'file', file: { bytes, ...name('all.bin'), mimeType: 'application/octet-stream' } },
      { kind: 'file', file: { uri: 'https://example.com/a%20b?c=d', ...name('ü.txt'), mimeType: 'text/plain' } },
      { kind: 'data', data: { a: [1, 2.5, 'x', ...nothing, { b: {} }], c: false, d: '' } },
    ];
    const task = await run(client, '', { parts });
    const stored = await client.getTask({ id: task.id });
    for (const shown of [task.history[0].parts, task.artifacts[0].parts, stored.artifacts[0].parts]) {
      assert.deepEqual(shown.map(bare), parts);
    }
  });

  it('gets a task with the latest of its history', async () => {
    const asked = await run(client, 'input');
    await run(client, 'here it is', { taskId: asked.id });
    const whole = await client.getTask({ id: asked.id });
    assert.ok(whole.history.length >= 3);
    for (const historyLength of [1, 2]) {
      const task = await client.getTask({ id: asked.id, historyLength });
      assert.deepEqual(task.history, whole.history.slice(-historyLength));
    }
  });

  it('cancels a working task, a stubborn one too', async () => {
    for (const text of ['slow 60', 'stubborn slow 60']) {
      const task = await begin(client, text);
      await until(client, task.id, 'working');
      assert.equal(stateOf(await client.cancelTask({ id: task.id })), 'canceled');
      assert.equal(stateOf(await client.getTask({ id: task.id })), 'canceled');
    }
  });

  it('subscribes to a task: the task first, then what happens', async () => {
    const asked = await run(client, 'input');
    const stream = client.resubscribeTask({ id: asked.id });
    const { value: first } = await stream.next();
    assert.equal(first.kind, 'task');
    assert.equal(first.id, asked.id);
    await run(client, 'here it is', { taskId: asked.id });
    const rest = await collect(stream);
    assert.equal(stateOf(rest.at(-1)), 'completed');
    assert.equal(rest.at(-1).final, true);
  });

  it('sees each refusal as the error that it has for it', async () => {
    const unknown = { id: randomUUID() };
    const ended = await run(client, 'hello');
    const video = [{ kind: 'file', file: { bytes: 'AA==', mimeType: 'video/x-of-a-kind-nobody-takes' } }];
    // Over gRPC this client has no names for two of them.
    const unsupported = binding === 'GRPC' ? Error : UnsupportedOperationError;
    const cases = [
      [TaskNotFoundError, () => client.getTask(unknown)],
      [TaskNotFoundError, () => run(client, 'x', { taskId: unknown.id })],
      [TaskNotFoundError, () => collect(client.sendMessageStream(params('x', { taskId: unknown.id })))],
      [TaskNotFoundError, () => collect(client.resubscribeTask(unknown))],
      [TaskNotCancelableError, () => client.cancelTask({ id: ended.id })],
      [unsupported, () => run(client, 'more', { taskId: ended.id })],
      [UnsupportedOperationError, () => collect(client.resubscribeTask({ id: ended.id }))],
      [binding === 'GRPC' ? Error : ContentTypeNotSupportedError, () => run(client, '', { parts: video })],
      [Error, () => run(client, '', { parts: [] })],
    ];
    for (const [expected, attempt] of cases) await rejects(expected, attempt);
  });

  it('asks for an extended card', async () => {
    const asking = await connect(url(), binding);
    // The client asks only if the card offers another; so it is made to.
    asking.agentCard.supportsAuthenticatedExtendedCard = true;
    if (binding === 'JSONRPC') {
      await rejects(AuthenticatedExtendedCardNotConfiguredError, () => asking.getAgentCard());
      return;
    }
    const card = await asking.getAgentCard();
    for (const member of ['name', 'url', 'version', 'protocolVersion', 'preferredTransport']) {
      assert.equal(card[member], client.agentCard[member], member);
    }
    assert.deepEqual(card.skills.map(({ id }) => id), client.agentCard.skills.map(({ id }) => id));
  });
}

/** A part without the members that some transports fill with nothing. */
function bare(part) {
  return Object.fromEntries(Object.entries(part).filter(([name]) => name !== 'metadata'));
}

function pushes(url, binding) {
  let client;
  let hook;
  before(async () => {
    client = await connect(url(), binding);
    hook = await startHook();
  });
  after(() => hook?.stop());

  const config = (id, path = id) => ({
    ...(id && { id }),
    url: `${hook.url}/${path}`,
    token: 'hunter1',
    authentication: { schemes: ['Bearer'], credentials: 'hunter2' },
  });

  it('is sent the task at each event of a send', async () => {
    const task = await run(client, 'chunks 5', { configuration: { blocking: true, pushNotificationConfig: config('all') } });
    const received = await hook.until('/all', (bodies) => stateOf(bodies.at(-1)) === 'completed');
    for (const { body, headers } of received) {
      assert.equal(body.kind, 'task');
      assert.equal(body.id, task.id);
      assert.equal(headers.authorization, 'Bearer hunter2');
      assert.equal(headers['x-a2a-notification-token'], 'hunter1');
    }
    assert.equal(textOf(received.at(-1).body), textOf(task));
  });

  it('makes, reads, lists and removes configs', async () => {
    const { id } = await run(client, 'input');
    const made = await client.setTaskPushNotificationConfig({ taskId: id, pushNotificationConfig: config('b') });
    assert.equal(made.taskId, id);
    assert.equal(made.pushNotificationConfig.id, 'b');
    assert.equal(made.pushNotificationConfig.url, `${hook.url}/b`);
    assert.deepEqual(made.pushNotificationConfig.authentication.schemes, ['Bearer']);
    const second = await client.setTaskPushNotificationConfig({ taskId: id, pushNotificationConfig: config('c') });
    const read = await client.getTaskPushNotificationConfig({ id, pushNotificationConfigId: 'b' });
    assert.deepEqual(read, made);
    const listed = await client.listTaskPushNotificationConfig({ id });
    assert.deepEqual(listed, [made, second]);
    assert.ok(!JSON.stringify([made, read, listed]).includes('hunter'), 'a secret was told back');
    for (let n = 0; n < 2; n += 1) {
      await client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId: 'b' });
    }
    assert.deepEqual(await client.listTaskPushNotificationConfig({ id }), [second]);
    await rejects(TaskNotFoundError, () =>
      client.getTaskPushNotificationConfig({ id, pushNotificationConfigId: 'b' }));
    await rejects(TaskNotFoundError, () =>
      client.setTaskPushNotificationConfig({ taskId: randomUUID(), pushNotificationConfig: config('b') }));
  });

  it('names a config that has no name', async () => {
    const { id } = await run(client, 'input');
    const made = await client.setTaskPushNotificationConfig({ taskId: id, pushNotificationConfig: config('', 'nameless') });
    assert.ok(made.pushNotificationConfig.id);
    assert.deepEqual(await client.listTaskPushNotificationConfig({ id }), [made]);
  });
}
