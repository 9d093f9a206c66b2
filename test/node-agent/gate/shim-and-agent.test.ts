import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createGateFixture, type GateFixture, PASS, writeState } from '../../native/gate.ts';
import { needs, skipWithout } from '../../support/parts.ts';
import { eventually } from '../support.ts';
import { DEAD, type GateAgent, READY, startGateAgent } from './agent-stand-in.ts';

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

  it('passes while the DPU is ready', async () => {
    const { code, json } = await gate.call({ conf: gated });
    assert.deepEqual([code, json()], [0, { cniVersion: '1.1.0' }]);
  });

  for (const cniVersion of ['0.3.1', '0.4.0', '1.0.0', '1.1.0']) {
    it(`DPU dead, ${cniVersion}: fails with code 11 and the reason, contacts only the agent, and does not execute the delegate`, async function () {
      skipWithout('strace', this);
      agent.dpu = DEAD;
      const below = gate.delegate(`below-${cniVersion}`, `printf '{}'`);
      for (const conf of [gated, wrapping(`below-${cniVersion}`)]) {
        const { code, json, waits } = await gate.call({ conf: { ...conf, cniVersion }, traced: true });
        assert.equal(code, 1);
        assert.deepEqual(json(), { cniVersion, code: 11, msg: `DPU Not Ready: ${DEAD.reason}` });
        assert.ok(waits.length > 0 && !waits.some(({ ranOut }) => ranOut), JSON.stringify(waits));
      }
      assert.deepEqual(below.calls(), []);
    });
  }

  it('uses the agent’s answer, not the state file', async () => {
    writeState(gate.state, { dpu: 'not-ready', reason: 'old' });
    assert.equal((await gate.call({ conf: gated })).code, 0);
  });

  it('passes system pods', async () => {
    agent.dpu = DEAD;
    for (const namespace of ['kube-system', 'openshift-dns']) {
      const environment = { CNI_ARGS: `K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=dns` };
      assert.equal((await gate.call({ conf: gated, environment })).code, 0);
    }
  });

  it('passes ADD and STATUS on a node without a DPU', async () => {
    agent.dpu = undefined;
    assert.equal((await gate.call({ conf: gated })).code, 0);
    assert.equal((await gate.call({ verb: 'STATUS', conf: gated })).code, 0);
  });

  it('STATUS: 50 with the reason while the DPU is dead', async () => {
    assert.equal((await gate.call({ verb: 'STATUS', conf: gated })).code, 0);
    agent.dpu = DEAD;
    const { json } = await gate.call({ verb: 'STATUS', conf: gated });
    assert.deepEqual(json(), { cniVersion: '1.1.0', code: 50, msg: `DPU Not Ready: ${DEAD.reason}` });
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

  it('fails with code 11 and the reason if OVS does not leave the CPUs, and does not execute the delegate', async () => {
    agent.cpus.set('uid-1', CpuSet.parse('4-5'));
    agent.vacate = async () => {
      throw new Error('thread 7 is on 4');
    };
    const below = gate.delegate('after-vacate', `printf '{}'`);
    const { json } = await gate.call({ conf: wrapping('after-vacate') });
    assert.deepEqual([json()['code'], json()['msg']], [11, 'OVS is still on CPUs 4-5: thread 7 is on 4']);
    assert.deepEqual(below.calls(), []);
  });

  it('fails with code 11 if the DPU dies while CPUs are vacated', async () => {
    agent.cpus.set('uid-1', CpuSet.parse('4'));
    agent.vacate = async () => {
      agent.dpu = DEAD;
    };
    assert.equal((await gate.call({ conf: gated })).json()['code'], 11);
  });

  it('an ADD in progress is cancelled when the DPU dies, and the delegate’s DEL is called', async () => {
    const below = gate.delegate('slow', '[ "$CNI_COMMAND" = DEL ] || sleep 600');
    const result = gate.call({ conf: wrapping('slow') });
    await eventually(() => below.calls().length === 1, 'the delegate runs');
    agent.dpu = DEAD;
    assert.equal(agent.recheck(), 1);
    const { json, code } = await result;
    assert.deepEqual([code, json()['code'], json()['msg']], [1, 11, `DPU Not Ready: ${DEAD.reason}`]);
    assert.deepEqual(
      below.calls().map(({ verb }) => verb),
      ['ADD', 'DEL'],
    );
    assert.equal(agent.recheck(), 0, 'it is not called off twice');
  });

  it('continues an ADD in progress of a system pod', async () => {
    const below = gate.delegate('patient', `sleep 0.3; printf '{}'`);
    const environment = { CNI_ARGS: 'K8S_POD_NAMESPACE=kube-system' };
    const result = gate.call({ conf: wrapping('patient'), environment });
    await eventually(() => below.calls().length === 1, 'the delegate runs');
    agent.dpu = DEAD;
    assert.equal(agent.recheck(), 0);
    assert.equal((await result).code, 0);
  });

  it('continues the ADD if the agent is killed while the delegate runs', async () => {
    const below = gate.delegate('long', `sleep 0.3; printf '{}'`);
    const result = gate.call({ conf: wrapping('long') });
    await eventually(() => below.calls().length === 1, 'the delegate runs');
    await agent.stop();
    assert.equal((await result).code, 0);
    agent = await startGateAgent(gate.socket);
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
    const add = await gate.call({ conf: gated, traced: true });
    assert.deepEqual([add.json()['code'], add.millis > 900], [11, true]);
    assert.ok(
      add.waits.every(({ most }) => most >= 0 && most <= 1000),
      JSON.stringify(add.waits),
    );
    const status = await gate.call({ verb: 'STATUS', conf: gated, traced: true });
    assert.equal(status.json()['code'], 50);
    assert.ok(
      status.waits.every(({ most }) => most >= 0 && most <= 250),
      JSON.stringify(status.waits),
    );
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
        const timer = setInterval(
          () => void socket.write(pause === 0 ? 'wait\n'.repeat(400) : 'wait\n', () => waits++),
          pause,
        );
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

  it('handles 200 calls at once', async () => {
    agent.cpus.set('uid-1', CpuSet.parse('1'));
    const results = await Promise.all(Array.from({ length: 200 }, () => gate.call({ conf: gated })));
    assert.equal(results.filter(({ code }) => code === 0).length, 200);
  });

  it('ignores a malformed request and answers the next one', async () => {
    const { createConnection } = await import('node:net');
    for (const bytes of ['GET / HTTP/1.1\r\n\r\n', 'x'.repeat(1000), 'plumbline-gate/2 ADD 0 0\n', '\n']) {
      const socket = createConnection(gate.socket);
      socket.on('error', () => undefined);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.write(bytes);
      await closed;
    }
    assert.equal((await gate.call({ conf: gated })).code, 0);
    agent.dpu = READY;
  });
});

describe('the CNI plugin and the agent, with scope device', () => {
  needs('musl');
  needs('make');
  let gate: GateFixture;
  let agent: GateAgent;
  before(async () => {
    gate = createGateFixture();
    agent = await startGateAgent(gate.socket, { scope: 'device' });
    agent.dpu = DEAD;
  });
  after(async () => {
    await agent?.stop();
    gate?.remove();
  });

  const cases: [string, object, boolean | undefined, number][] = [
    ['a device in the configuration', { ...gated, deviceID: '0000:03:00.2' }, false, 1],
    ['a device from the runtime', { ...gated, runtimeConfig: { deviceID: 'vf' } }, false, 1],
    ['the kubelet names a device', gated, true, 1],
    ['the kubelet names only Plumbline’s resources', gated, false, 0],
    ['the kubelet does not answer', gated, undefined, 1],
  ];
  for (const [name, conf, hasDevice, code] of cases) {
    it(`${name}: ${code === 0 ? 'not gated' : 'gated'}`, async () => {
      agent.hasDevice = async () => hasDevice;
      assert.equal((await gate.call({ conf })).code, code);
    });
  }
});
