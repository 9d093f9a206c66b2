import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { needs } from '../support/parts.ts';
import { peakMiB, processorMs, type Stage, startStage } from './stage.ts';

/** The memory limit of the agent, MiB. */
const LIMIT = 160;

/** A process on a node that can reach the agent's socket: root, or one with access through a wrong mode. */
describe('attacks by a process on the node', function () {
  needs('controlPlane');
  needs('kubectl');
  needs('root');
  this.timeout(300_000);
  let stage: Stage;
  const sockets: Socket[] = [];
  before(async () => {
    stage = await startStage();
  });
  after(() => stage?.stop());
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  const open = (path: string): Socket => {
    const socket = connect(path).on('error', () => undefined);
    sockets.push(socket);
    return socket;
  };
  it('the socket of the gate is its owner’s alone', () => {
    assert.equal(statSync(stage.agent.gateSocket).mode & 0o077, 0);
  });

  it('1,000 times a megabyte of garbage: the agent stays within its memory limit, and answers', async () => {
    const { agent } = stage;
    const before = processorMs(agent);
    for (let i = 0; i < 1000; i++) open(agent.gateSocket).write(Buffer.alloc(1 << 20, 0x5b));
    await delay(1500);
    console.log(
      `      ${processorMs(agent) - before} ms of processor time, at most ${peakMiB(agent).toFixed(0)} of ${LIMIT} MiB`,
    );
    assert.ok(peakMiB(agent) < LIMIT, `${peakMiB(agent)} MiB`);
    const url = `http://127.0.0.1:${agent.probePort}/readyz`;
    assert.equal((await fetch(url, { signal: AbortSignal.timeout(2000) })).status, 200);
    await stage.serve();
  });
});
