// What the official clients make of a refusal.

import assert from 'node:assert/strict';

/** That an attempt is refused with this error, or one that it has caused. */
export async function rejects(expected, attempt) {
  // The client refuses some calls by itself, and throws before there is a promise.
  await assert.rejects(async () => attempt(), (error) => {
    const known = error instanceof expected ? error : error.cause;
    assert.ok(known instanceof expected, `${attempt}: ${error.name}: ${error.message}`);
    return true;
  }, `${expected.name}: ${attempt}`);
}
