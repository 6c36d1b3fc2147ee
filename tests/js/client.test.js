// The same core scenarios through every binding that the official JavaScript client speaks.

import assert from 'node:assert/strict';
import { randomInt, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { TaskState } from '@a2a-js/sdk';
import {
  ContentTypeNotSupportedError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';

import {
  BINDINGS,
  STORES,
  begin,
  collect,
  connect,
  request,
  run,
  stateOf,
  stateOfItem,
  textOf,
  until,
} from './lib/client.js';
import { startFleet } from './lib/fleet.js';
import { startServer } from './lib/server.js';

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
      describe(binding, { timeout: 60_000 }, () => scenarios(() => server.url, binding, store !== 'postgres'));
    }
  });
}

// Without a key that all instances share there are no push notifications.
function scenarios(url, binding, pushes) {
  let client;
  before(async () => {
    client = await connect(url(), binding);
  });

  it('speaks the binding that was asked for', () => {
    assert.equal(client.transport.protocolName, binding);
    assert.equal(client.protocolVersion, '1.0');
  });

  it('sends and waits for the end', async () => {
    const task = await run(client, 'héllo 🌍 漢字 \u2028');
    assert.equal(stateOf(task), 'COMPLETED');
    assert.equal(textOf(task), 'héllo 🌍 漢字 \u2028');
    assert.equal((await run(client, 'slow 1')).status.state, TaskState.TASK_STATE_COMPLETED);
  });

  it('sends without waiting', async () => {
    const task = await begin(client, 'slow 2');
    assert.ok(['SUBMITTED', 'WORKING'].includes(stateOf(task)), stateOf(task));
    await until(client, task.id, 'COMPLETED');
  });

  it('streams the task, every chunk in order, and the end', async () => {
    const items = await collect(client.sendMessageStream(request('chunks 50')));
    assert.equal(items[0].$case, 'task');
    const updates = items.filter((item) => item.$case === 'artifactUpdate');
    assert.equal(updates.length, 50);
    assert.deepEqual(
      updates.map((update) => update.value.append),
      [false, ...Array(49).fill(true)],
    );
    assert.equal(stateOfItem(items.at(-1)), 'COMPLETED');
    const stored = await client.getTask({ tenant: '', id: items[0].value.id });
    const streamed = updates.map((update) => textOf({ artifacts: [update.value.artifact] }));
    assert.equal(textOf(stored), streamed.join(''));
  });

  it('streams every status of a burst', async () => {
    const items = await collect(client.sendMessageStream(request('burst 100')));
    const texts = items
      .filter((item) => item.$case === 'statusUpdate' && stateOfItem(item) === 'WORKING')
      .map((item) => item.value.status.message?.parts[0]?.content.value)
      .filter((text) => text !== undefined);
    assert.equal(new Set(texts).size, 100);
    assert.equal(texts.length, 100);
    assert.equal(stateOfItem(items.at(-1)), 'COMPLETED');
  });

  it('is asked for input and goes on', async () => {
    const asked = await run(client, 'input');
    assert.equal(stateOf(asked), 'INPUT_REQUIRED');
    assert.ok(asked.status.message.parts.length > 0);
    const done = await run(client, 'here it is', { taskId: asked.id, contextId: asked.contextId });
    assert.equal(done.id, asked.id);
    assert.equal(done.contextId, asked.contextId);
    assert.equal(stateOf(done), 'COMPLETED');
  });

  it('is asked for authorization, and the task goes on by itself', async () => {
    const asked = await run(client, 'auth');
    assert.equal(stateOf(asked), 'AUTH_REQUIRED');
    await until(client, asked.id, 'COMPLETED');
  });

  it('is answered with a message and no task', async () => {
    const answer = await client.sendMessage(request('msg'));
    assert.ok('messageId' in answer && !('status' in answer), JSON.stringify(answer));
    const items = await collect(client.sendMessageStream(request('msg')));
    assert.deepEqual(items.map((item) => item.$case), ['message']);
  });

  it('sees refusals and failures as states', async () => {
    assert.equal(stateOf(await run(client, 'reject')), 'REJECTED');
    assert.equal(stateOf(await run(client, 'fail')), 'FAILED');
    assert.equal(stateOf(await run(client, 'fail late')), 'FAILED');
  });

  it('gets all four kinds of parts back as they were sent', async () => {
    const parts = [
      { text: 'words', metadata: { k: [1, null] } },
      { raw: Buffer.from([0, 1, 254, 255]).toString('base64'), filename: 'x.bin' },
      { url: 'https://example.com/a?b=c', mediaType: 'text/plain' },
      { data: { a: [1, 2.5, null, { b: '' }], c: false } },
    ];
    const sent = request('', { parts });
    const task = await client.sendMessage(sent);
    assert.deepEqual(task.history[0].parts, sent.message.parts);
    assert.deepEqual(task.artifacts[0].parts, sent.message.parts);
    const stored = await client.getTask({ tenant: '', id: task.id });
    assert.deepEqual(stored.artifacts[0].parts, sent.message.parts);
  });

  it('gets a task with the latest of its history', async () => {
    const asked = await run(client, 'input');
    await run(client, 'here it is', { taskId: asked.id });
    const whole = await client.getTask({ tenant: '', id: asked.id });
    assert.ok(whole.history.length >= 3);
    for (const historyLength of [0, 1, 2]) {
      const task = await client.getTask({ tenant: '', id: asked.id, historyLength });
      assert.deepEqual(
        task.history.map((message) => message.messageId),
        whole.history.map((message) => message.messageId).slice(whole.history.length - historyLength),
      );
    }
  });

  it('lists a context page by page, each task once', async () => {
    const contextId = `context-${randomUUID()}`;
    const sent = [];
    for (let n = 0; n < 5; n += 1) sent.push((await run(client, `task ${n}`, { contextId })).id);
    const query = { tenant: '', contextId, pageSize: 2, status: 0, statusTimestampAfter: undefined };
    const seen = [];
    let pageToken = '';
    do {
      const page = await client.listTasks({ ...query, pageToken });
      assert.equal(page.totalSize, 5);
      seen.push(...page.tasks.map((task) => task.id));
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    assert.deepEqual(seen, sent.reverse());
    const failed = await client.listTasks({
      ...query,
      pageToken,
      status: TaskState.TASK_STATE_FAILED,
    });
    assert.equal(failed.totalSize, 0);
  });

  it('cancels a working task, a stubborn one too', async () => {
    for (const text of ['slow 60', 'stubborn slow 60']) {
      const task = await begin(client, text);
      await until(client, task.id, 'WORKING');
      const canceled = await client.cancelTask({ tenant: '', id: task.id, metadata: undefined });
      assert.equal(stateOf(canceled), 'CANCELED');
      assert.equal(stateOf(await client.getTask({ tenant: '', id: task.id })), 'CANCELED');
    }
  });

  it('subscribes to a task: the task first, then what happens', async () => {
    const asked = await run(client, 'input');
    const stream = client.resubscribeTask({ tenant: '', id: asked.id });
    const first = (await stream.next()).value.payload;
    assert.equal(first.$case, 'task');
    assert.equal(first.value.id, asked.id);
    await run(client, 'here it is', { taskId: asked.id });
    const rest = await collect(stream);
    assert.equal(stateOfItem(rest.at(-1)), 'COMPLETED');
  });

  it('sees each refusal as the error that it has for it', async () => {
    const unknown = { tenant: '', id: randomUUID() };
    const ended = await run(client, 'hello');
    const push = { tenant: '', taskId: ended.id, id: 'one' };
    const list = { tenant: '', contextId: '', status: 0, pageToken: '' };
    const video = [{ raw: 'AA==', mediaType: 'video/x-of-a-kind-nobody-takes' }];
    const cases = [
      [TaskNotFoundError, () => client.getTask(unknown)],
      [TaskNotFoundError, () => run(client, 'x', { taskId: unknown.id })],
      [TaskNotFoundError, () => collect(client.resubscribeTask(unknown))],
      [TaskNotCancelableError, () => client.cancelTask({ tenant: '', id: ended.id })],
      [UnsupportedOperationError, () => run(client, 'more', { taskId: ended.id })],
      [UnsupportedOperationError, () => collect(client.resubscribeTask({ tenant: '', id: ended.id }))],
      [pushes ? TaskNotFoundError : PushNotificationNotSupportedError, () => client.getTaskPushNotificationConfig(push)],
      [ContentTypeNotSupportedError, () => run(client, '', { parts: video })],
      [RequestMalformedError, () => client.listTasks({ ...list, pageSize: 101 })],
      [RequestMalformedError, () => run(client, '', { parts: [] })],
    ];
    for (const [expected, attempt] of cases) {
      // The client refuses some calls by itself, and throws before there is a promise.
      await assert.rejects(async () => attempt(), (error) => {
        assert.ok(error instanceof expected, `${attempt}: ${error.name}: ${error.message}`);
        return true;
      }, `${expected.name}: ${attempt}`);
    }
  });
}
