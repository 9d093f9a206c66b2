import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { skipFor } from '../support/parts.ts';
import { GATE, peakMiB, processorMs, type Stage, startStage } from './stage.ts';

/** The memory limit of the agent, MiB. */
const LIMIT = 160;

/** A process on a node that can reach the agent's socket: root, or one with access through a wrong mode. */
describe('attacks by a process on the node', function () {
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
  const ready = async (probePort: number) =>
    (await fetch(`http://127.0.0.1:${probePort}/readyz`, { signal: AbortSignal.timeout(2000) })).status;

  it('the socket of the gate is its owner’s alone', function () {
    if (!stage.agent || !existsSync(stage.agent.gateSocket)) skipFor(GATE, this);
    assert.equal(statSync(stage.agent!.gateSocket).mode & 0o077, 0);
  });

  const floods: [string, (path: string) => void][] = [
    ['1,000 times a megabyte of garbage', (path) => void open(path).write(Buffer.alloc(1 << 20, 0x5b))],
    ['1,000 requests about missing pods', (path) => void open(path).write('ADD ns pod uid container\n')],
  ];
  for (const [name, flood] of floods) {
    it(`${name}: the agent stays within its memory limit, and answers`, async function () {
      const { agent } = stage;
      if (!agent || !existsSync(agent.gateSocket)) return skipFor(GATE, this);
      const before = processorMs(agent);
      for (let i = 0; i < 1000; i++) flood(agent.gateSocket);
      await delay(1500);
      console.log(
        `      ${processorMs(agent) - before} ms of processor time, at most ${peakMiB(agent).toFixed(0)} of ${LIMIT} MiB`,
      );
      assert.ok(peakMiB(agent) < LIMIT, `${peakMiB(agent)} MiB`);
      assert.equal(await ready(agent.probePort), 200);
      await stage.serve();
    });
  }
});
