// Usage: node socket-owner.cjs SOCKET TARGET
//
// Listens on a Unix socket in place of another process: a kubelet's run has a process of its own, by whose start the agent
// knows which of the Node's heartbeats are of that run.
'use strict';

const { rmSync } = require('node:fs');
const { connect, createServer } = require('node:net');

const [, , path, target] = process.argv;
rmSync(path, { force: true });
createServer((client) => {
  const server = connect(target);
  const end = () => {
    client.destroy();
    server.destroy();
  };
  for (const socket of [client, server]) socket.on('error', end).on('close', end);
  client.pipe(server).pipe(client);
}).listen(path, () => process.stdout.write('listening\n'));
