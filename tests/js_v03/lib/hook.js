// A receiver of push notifications, which keeps what it is sent.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const WAIT_MS = 15_000;
const POLL_MS = 20;

export async function startHook() {
  const received = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    received.push({ path: request.url, headers: request.headers, body: JSON.parse(text) });
    response.writeHead(204).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** Waits until what came to that path is as it should be. */
    async until(path, holds) {
      const deadline = Date.now() + WAIT_MS;
      for (;;) {
        const here = received.filter((one) => one.path === path);
        if (here.length > 0 && holds(here.map(({ body }) => body))) return here;
        assert.ok(Date.now() < deadline, JSON.stringify(received));
        await delay(POLL_MS);
      }
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
