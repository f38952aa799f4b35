// What the two scripts share.

'use strict';

const readline = require('node:readline');

const input = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Has the server started again: empty, and on the same port. */
async function restarted() {
  console.log('restart');
  const { done } = await input.next();
  if (done) {
    throw new Error('nobody has started the server again');
  }
}

/** Commands of a large pipeline, of each kind. */
const PIPELINE = 10_000;

module.exports = { restarted, PIPELINE };
