// The client node-redis (the package redis) against a Tremula server:
// node node_redis.js PORT [TLS_PORT CERTIFICATE].
//
// Ends with status 0 and the word "passed" if everything is as it should be. Where the server has to
// be started again, it prints "restart", and waits for a line.

'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { createClient } = require('redis');
const { restarted, PIPELINE } = require('./common');

const [port, tlsPort, certificate] = process.argv.slice(2);

/** A command may wait for long: the machine may be busy. */
const PATIENCE = { timeout: 120_000 };

/** A client that is not yet connected. */
function made({ socket, ...options }) {
  const client = createClient({
    socket: { port: Number(port), ...socket },
    commandOptions: PATIENCE,
    ...options,
  });
  client.on('error', () => {}); // What a command gets is checked below.
  return client;
}

const connect = (options) => made(options).connect();

/** Repeats a call until the client has a connection again: one that breaks fails what is under way. */
async function untilConnected(call) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      if (attempt === 100 || /^(NOAUTH|NOPERM|ERR)/.test(error.message)) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function checkUsers(admin) {
  await admin.aclSetUser('app', ['reset', 'on', '>secret', '~app:*', '+@all', '-@dangerous']);
  const app = await connect({ username: 'app', password: 'secret' });
  assert.equal(await app.set('app:1', 'mine'), 'OK');
  assert.equal(await app.get('app:1'), 'mine');
  assert.equal(await app.aclWhoAmI(), 'app');
  await assert.rejects(app.get('other'), /NOPERM .*keys/);
  await assert.rejects(app.flushAll(), /NOPERM .*'flushall'/);
  app.destroy();

  const socket = { reconnectStrategy: false };
  const wrong = made({ username: 'app', password: 'wrong', socket });
  await assert.rejects(wrong.connect(), /WRONGPASS/);
}

async function checkPipelines(client) {
  const pipeline = client.multi();
  for (let index = 0; index < PIPELINE; index += 1) {
    pipeline.set(`key:${index}`, String(index)).incr('total').get(`key:${index}`);
  }
  const replies = await pipeline.execAsPipeline();
  assert.equal(replies.length, 3 * PIPELINE);
  replies.forEach((reply, position) => {
    const index = Math.floor(position / 3);
    assert.equal(reply, ['OK', index + 1, String(index)][position % 3]);
  });

  // A transaction is one step.
  assert.deepEqual(await client.multi().set('tx', '1').incr('tx').exec(), ['OK', 2]);

  // Many calls at once share one connection, and get their own replies.
  const words = Array.from({ length: 1000 }, (_, index) => `word ${index}`);
  assert.deepEqual(await Promise.all(words.map((word) => client.echo(word))), words);
}

async function checkReconnects(admin) {
  const client = await connect({ username: 'app', password: 'secret' });
  const before = await client.clientId();
  assert.equal(await admin.clientKill({ filter: 'ID', id: before }), 1);
  const after = await untilConnected(async () => {
    const id = await client.clientId();
    // The thread of the connection closes it, perhaps after one more command.
    assert.ok(id > before, 'it is a new connection');
    return id;
  });
  assert.ok(after > before);
  assert.equal(await client.set('app:2', 'again'), 'OK');
  assert.equal(await client.aclWhoAmI(), 'app', 'it has proved again who it is');
  client.destroy();

  const patient = await connect({});
  assert.equal(await patient.set('gone', 'with the process'), 'OK');
  await restarted();
  assert.equal(await untilConnected(() => patient.get('gone')), null);
  patient.destroy();
}

async function checkTls() {
  const socket = { port: Number(tlsPort), tls: true, servername: 'localhost', reconnectStrategy: false };
  const client = await connect({ socket: { ...socket, ca: fs.readFileSync(certificate) } });
  await client.flushAll();
  await checkPipelines(client);
  client.destroy();

  await assert.rejects(made({ socket }).connect());
}

async function main() {
  for (const RESP of [2, 3]) {
    const admin = await connect({ RESP });
    await admin.flushAll();
    assert.match(await admin.info('server'), /redis_version:7\./);
    await checkUsers(admin);
    await checkPipelines(admin);
    const range = ['RANGE', '[key:10', '(key:1000', 'LIMIT', '1'];
    assert.deepEqual(await admin.sendCommand(range), ['key:10']);
    await checkReconnects(admin);
    admin.destroy();
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
