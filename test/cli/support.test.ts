import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { tempDirectories } from '../support/files.ts';
import { kubeconfigOf } from '../support/kubeconfig.ts';
import { listenOnLoopback } from '../support/processes.ts';
import { buildCli, plumbline } from './run.ts';

/** Seconds: twice the timeout, and the start of a process on a busy machine. */
const MAX_SECONDS = 8;

describe('--request-timeout', function () {
  this.timeout(120_000);
  let server: Server;
  const temp = tempDirectories();
  let kubeconfig: string;
  let address: string;
  const sockets: Socket[] = [];

  before(async () => {
    buildCli();
    // It accepts connections and never answers.
    server = createServer((socket) => void sockets.push(socket));
    address = `http://127.0.0.1:${await listenOnLoopback(server)}`;
    kubeconfig = join(temp(), 'kubeconfig');
    writeFileSync(kubeconfig, JSON.stringify(kubeconfigOf({ server: address })));
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  for (const args of [
    ['top', '--once'],
    ['doctor'],
    ['version'],
    ['console'],
    ['vm', 'status', 'n1'],
    ['vm', 'status', '--agent', 'SERVER'],
  ]) {
    it(`limits the wait of plumbline ${args.join(' ')}`, async () => {
      const begun = performance.now();
      const served = args.map((arg) => (arg === 'SERVER' ? address : arg));
      const { status, stderr } = await plumbline([...served, '--request-timeout', '1'], { kubeconfig });
      const took = (performance.now() - begun) / 1000;
      assert.equal(status, 3, stderr);
      assert.match(stderr, /^plumbline: .*(does not answer in time|timeout)/);
      assert.ok(took < MAX_SECONDS, `${took} s`);
    });
  }
});
