// A port whose requests go to servers that are drawn by lot.

import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const END_OF_HEAD = Buffer.from('\r\n\r\n');

/** The same choices for the same seed (mulberry32). */
export function lots(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Asks the server to close the connection behind its answer, and to tell the client so. */
function lastOnItsConnection(request) {
  const end = request.indexOf(END_OF_HEAD);
  const lines = request.subarray(0, end).toString('latin1').split('\r\n');
  const kept = lines.filter((line) => !/^connection:/i.test(line));
  const head = [...kept, 'Connection: close'].join('\r\n');
  return Buffer.concat([Buffer.from(head, 'latin1'), request.subarray(end)]);
}

/**
 * Listens on a free port of this machine, and passes each connection on to one of `targets`, which may be filled later.
 * One of HTTP/1.1 is closed behind its first answer, so that each request draws anew; one of HTTP/2 stays where it is.
 */
export async function startBalancer(targets, seed) {
  const draw = lots(seed);
  const open = new Set();
  const taken = new Map();
  const server = createServer({ noDelay: true }, (near) => {
    const port = targets[Math.floor(draw() * targets.length)];
    taken.set(port, (taken.get(port) ?? 0) + 1);
    const far = connect({ port, host: '127.0.0.1', noDelay: true });
    for (const [one, other] of [[near, far], [far, near]]) {
      open.add(one);
      // Either side may be cut: then so is the other.
      one.on('error', () => other.destroy());
      one.on('close', () => {
        open.delete(one);
        other.destroySoon();
      });
    }
    let head = Buffer.alloc(0);
    const read = (piece) => {
      head = Buffer.concat([head, piece]);
      if (head.indexOf(END_OF_HEAD) < 0) return;
      near.off('data', read);
      far.write(head.subarray(0, 4).toString() === 'PRI ' ? head : lastOnItsConnection(head));
      near.pipe(far);
      far.pipe(near);
    };
    near.on('data', read);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** How many connections each target was given. */
    taken,
    async close() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
