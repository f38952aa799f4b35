// The client ioredis against a Tremula server: node ioredis.js PORT [TLS_PORT CERTIFICATE].
//
// Ends with status 0 and the word "passed" if everything is as it should be. Where the server has to
// be started again, it prints "restart", and waits for a line.

'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { Redis } = require('ioredis');
const { restarted, PIPELINE } = require('./common');

const [port, tlsPort, certificate] = process.argv.slice(2);

const connect = (options) => {
  const client = new Redis({ port: Number(port), lazyConnect: true, ...options });
  client.on('error', () => {}); // What a command gets is checked below.
  return client;
};

async function checkUsers(admin) {
  await admin.acl('SETUSER', 'app', 'reset', 'on', '>secret', '~app:*', '+@all', '-@dangerous');
  const app = connect({ username: 'app', password: 'secret' });
  assert.equal(await app.set('app:1', 'mine'), 'OK');
  assert.equal(await app.get('app:1'), 'mine');
  assert.equal(await app.acl('WHOAMI'), 'app');
  await assert.rejects(app.get('other'), /^ReplyError: NOPERM .*keys/);
  await assert.rejects(app.flushall(), /^ReplyError: NOPERM .*'flushall'/);
  app.disconnect();

  const wrong = connect({ username: 'app', password: 'wrong', retryStrategy: () => null });
  await assert.rejects(wrong.connect(), /WRONGPASS|closed/);
  await assert.rejects(wrong.get('app:1'));
  wrong.disconnect();
}

async function checkPipelines(client) {
  const pipeline = client.pipeline();
  for (let index = 0; index < PIPELINE; index += 1) {
    pipeline.set(`key:${index}`, index).incr('total').get(`key:${index}`);
  }
  const replies = await pipeline.exec();
  assert.equal(replies.length, 3 * PIPELINE);
  replies.forEach(([error, reply], position) => {
    const index = Math.floor(position / 3);
    assert.equal(error, null);
    assert.equal(reply, ['OK', index + 1, String(index)][position % 3]);
  });

  // A command that fails does not disturb its neighbours.
  const mixed = await client.pipeline().set('n', 'x').incr('n').get('n').exec();
  assert.deepEqual([mixed[0][1], mixed[2][1]], ['OK', 'x']);
  assert.match(mixed[1][0].message, /not an integer/);

  // A transaction, and one that another client has spoilt.
  assert.deepEqual(await client.multi().set('tx', 1).incr('tx').exec(), [
    [null, 'OK'],
    [null, 2],
  ]);
  await client.watch('tx');
  const other = client.duplicate();
  await other.incr('tx');
  other.disconnect();
  assert.equal(await client.multi().set('tx', 'lost').exec(), null);
  assert.equal(await client.get('tx'), '3');

  // Many calls at once share one connection, and get their own replies.
  const words = Array.from({ length: 1000 }, (_, index) => `word ${index}`);
  assert.deepEqual(await Promise.all(words.map((word) => client.echo(word))), words);
}

async function checkReconnects(admin) {
  const client = connect({ username: 'app', password: 'secret' });
  const before = await client.client('ID');
  assert.equal(await admin.client('KILL', 'ID', before), 1);
  assert.equal(await client.set('app:2', 'again'), 'OK');
  assert.ok((await client.client('ID')) > before, 'it is a new connection');
  assert.equal(await client.acl('WHOAMI'), 'app', 'it has proved again who it is');
  client.disconnect();

  const patient = connect({});
  assert.equal(await patient.set('gone', 'with the process'), 'OK');
  await restarted();
  assert.equal(await patient.get('gone'), null);
  patient.disconnect();
}

async function checkTls() {
  const ca = fs.readFileSync(certificate);
  const tls = (options) => connect({ port: Number(tlsPort), tls: { servername: 'localhost', ...options } });
  const client = tls({ ca });
  await client.flushall();
  await checkPipelines(client);
  client.disconnect();

  const suspicious = tls({});
  suspicious.options.retryStrategy = () => null;
  await assert.rejects(suspicious.connect());
  suspicious.disconnect();
}

async function main() {
  for (const protocol of [2, 3]) {
    const admin = connect({ protocol });
    await admin.flushall();
    assert.match(await admin.info('server'), /redis_version:7\./);
    await checkUsers(admin);
    await checkPipelines(admin);
    assert.deepEqual(await admin.call('RANGE', '[key:10', '(key:1000', 'LIMIT', '1'), ['key:10']);
    await checkReconnects(admin);
    admin.disconnect();
  }
  if (tlsPort !== undefined) {
    await checkTls();
  }
  console.log('passed');
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
