import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { CpuSet } from '../../model/cpu-set.ts';
import { createGateFixture, type GateFixture, PASS, writeState } from '../native/gate-stage.ts';
import { needs, skipWithout } from '../support/parts.ts';
import { DEAD, type GateAgent, startGateAgent } from './gate/agent-stand-in.ts';
import { eventually } from './support.ts';

const wrapping = (type: string) => ({ cniVersion: '1.1.0', name: 'net', type: 'plumbline-gate', delegate: { type } });
const gated = wrapping(PASS);

describe('the CNI plugin and the agent', () => {
  needs('musl');
  needs('make');
  let gate: GateFixture;
  let agent: GateAgent;
  before(() => {
    gate = createGateFixture();
  });
  after(() => gate?.remove());
  beforeEach(async () => {
    rmSync(gate.state, { force: true });
    agent = await startGateAgent(gate.socket);
  });
  afterEach(() => agent.stop());

  it('DPU dead: fails with code 11 and the reason without a wait, and does not execute the delegate', async function () {
    skipWithout('strace', this);
    agent.dpu = DEAD;
    const below = gate.delegate('below', `printf '{}'`);
    const { code, json, waits } = await gate.call({ conf: wrapping('below'), traced: true });
    assert.equal(code, 1);
    assert.deepEqual(json(), { cniVersion: '1.1.0', code: 11, msg: `DPU Not Ready: ${DEAD.reason}` });
    assert.ok(waits.length > 0 && !waits.some(({ ranOut }) => ranOut), JSON.stringify(waits));
    assert.deepEqual(below.calls(), []);
  });

  it('STATUS: 50 with the reason while the DPU is dead', async () => {
    assert.equal((await gate.call({ verb: 'STATUS', conf: gated })).code, 0);
    agent.dpu = DEAD;
    const outcome = await gate.outcome({ verb: 'STATUS', conf: gated });
    assert.deepEqual(outcome, [1, 50, `DPU Not Ready: ${DEAD.reason}`]);
  });

  it('vacates a pod’s CPUs before the delegate runs, which may take 1.5 s', async () => {
    agent.cpus.set('uid-1', CpuSet.parse('4-5'));
    let done = 0;
    agent.vacate = async () => {
      await new Promise((resolve) => setTimeout(resolve, 1500));
      done = performance.now();
    };
    const { code } = await gate.call({ conf: gated });
    assert.equal(code, 0);
    assert.ok(done > 0);
    assert.deepEqual(agent.vacated.map(String), ['4-5']);
  });

  it('an ADD in progress is cancelled when the DPU dies, and the delegate’s DEL is called', async () => {
    const below = gate.delegate('slow', '[ "$CNI_COMMAND" = DEL ] || sleep 600');
    const result = gate.outcome({ conf: wrapping('slow') });
    await eventually(() => below.calls().length === 1, 'the delegate runs');
    agent.dpu = DEAD;
    assert.equal(agent.recheck(), 1);
    assert.deepEqual(await result, [1, 11, `DPU Not Ready: ${DEAD.reason}`]);
    assert.equal(below.verbs(), 'ADD,DEL');
    assert.equal(agent.recheck(), 0, 'it is not called off twice');
  });

  it('uses the state file if the agent fails to answer a request', async () => {
    agent.cpus.get = () => {
      throw new Error('a defect');
    };
    writeState(gate.state, { dpu: 'not-ready', reason: 'as last known' });
    assert.equal((await gate.call({ conf: gated })).json()['msg'], 'DPU Not Ready: as last known');
    assert.ok(agent.logged.said('gate server failed; CNI plugins use the state file'));
  });

  it('uses the state file after one second if the agent hangs, for STATUS, too', async function () {
    skipWithout('strace', this);
    await agent.stop();
    const hung = createServer(() => undefined).listen(gate.socket);
    writeState(gate.state, { dpu: 'not-ready', reason: 'as last known', status: true });
    for (const [verb, code, limit] of [
      ['ADD', 11, 1000],
      ['STATUS', 50, 250],
    ] as const) {
      const { json, millis, waits } = await gate.call({ verb, conf: gated, traced: true });
      assert.equal(json()['code'], code);
      const longest = Math.max(...waits.map(({ most }) => (most < 0 ? Number.POSITIVE_INFINITY : most)));
      assert.ok(longest <= limit && (verb === 'STATUS' || millis > 900), JSON.stringify({ millis, waits }));
    }
    hung.close();
    agent = await startGateAgent(gate.socket);
  });

  it('S13: waits at most 2.5 s in total for an agent that repeats `wait`, however often', async function () {
    skipWithout('strace', this);
    await agent.stop();
    for (const pause of [100, 0]) {
      let waits = 0;
      const server = createServer((socket) => {
        socket.on('error', () => undefined);
        const message = 'wait\n'.repeat(pause === 0 ? 400 : 1);
        const timer = setInterval(() => void socket.write(message, () => waits++), pause);
        socket.on('close', () => clearInterval(timer));
        socket.resume();
      }).listen(gate.socket);
      writeState(gate.state, { dpu: 'not-ready', reason: 'as last known' });
      const add = await gate.call({ conf: gated, traced: true });
      assert.equal(add.json()['msg'], 'DPU Not Ready: as last known');
      assert.ok(waits > 10, `${waits} waits`);
      assert.ok(add.millis > 2400, `${add.millis} ms`);
      // The rest of the 2.5 s shrinks with each wait: no message of the agent extends it.
      const left = add.waits.map(({ most }) => most).filter((most) => most > 1000);
      assert.ok(left.length > 0 && left.every((most, i) => most >= 0 && most <= (left[i - 1] ?? 2500)), `${left}`);
      await new Promise((resolve) => server.close(resolve));
    }
    agent = await startGateAgent(gate.socket);
  });
});
