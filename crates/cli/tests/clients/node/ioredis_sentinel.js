// ioredis with sentinels against a group: node ioredis_sentinel.js PORT PORT PORT.
//
// Ends with status 0 and the word "passed" if everything is as it should be. When the leader is to
// be killed, it prints "kill", and waits for a line.

'use strict';

const assert = require('node:assert/strict');
const readline = require('node:readline');
const { Redis } = require('ioredis');

const sentinels = process.argv.slice(2).map((port) => ({ host: '127.0.0.1', port: Number(port) }));

const connect = (options) => {
  const client = new Redis({
    sentinels,
    name: 'main',
    sentinelRetryStrategy: () => 100,
    retryStrategy: () => 100,
    maxRetriesPerRequest: null,
    // With its detector of failovers it may end for good when several sentinels tell of one at once.
    ...options,
  });
  client.on('error', () => {}); // What a command gets is checked below.
  return client;
};

async function main() {
  const master = connect();
  assert.equal(await master.set('key', 'before'), 'OK');
  const first = (await master.info('server')).match(/tcp_port:(\d+)/)[1];
  const replica = connect({ role: 'slave' });
  const role = await replica.call('ROLE');
  assert.equal(role[0], 'slave');
  assert.equal(String(role[2]), first);
  replica.disconnect();

  const answered = new Promise((resolve) => readline.createInterface({ input: process.stdin }).once('line', resolve));
  console.log('kill');
  await answered;
  // It waits until it has found the next leader.
  assert.equal(await master.set('key', 'behind'), 'OK');
  const second = (await master.info('server')).match(/tcp_port:(\d+)/)[1];
  assert.notEqual(second, first);
  assert.equal(await master.get('key'), 'behind');
  console.log('passed');
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
