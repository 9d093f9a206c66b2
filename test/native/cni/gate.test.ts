import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { parseNodeAgentConfig } from '../../../node-agent/wiring/config.ts';
import { eventually } from '../../support/eventually.ts';
import { needs, skipWithout } from '../../support/parts.ts';
import { PASS, useAgent, useGate, writeState } from '../gate-stage.ts';
import { fuzzGate } from '../support.ts';

const MIB = 1024 * 1024;
const wrapping = (type: string) => ({ cniVersion: '1.0.0', name: 'net', type: 'plumbline-gate', delegate: { type } });
const gated = wrapping(PASS);

describe('the CNI plugin at its limits', () => {
  const gate = useGate();

  it('accepts a configuration of 1 MiB, and no byte more', async () => {
    const sized = (size: number) => {
      const begun = `${JSON.stringify(gated).slice(0, -1)},"x":"`;
      return `${begun}${'x'.repeat(size - begun.length - 2)}"}`;
    };
    assert.equal((await gate.call({ conf: sized(MIB) })).code, 0);
    assert.deepEqual((await gate.outcome({ conf: sized(MIB + 1) })).slice(0, 2), [1, 5]);
  });

  it('passes on a delegate’s answer of 1 MiB, and no byte more', async () => {
    for (const size of [MIB, MIB + 1]) {
      gate.delegate('large', `head -c ${size} /dev/zero | tr '\\0' x`);
      const { code, stdout, json } = await gate.call({ verb: 'DEL', conf: wrapping('large') });
      if (size === MIB) assert.deepEqual([code, stdout.length], [0, MIB]);
      else {
        const { code: exitCode, msg } = json();
        assert.deepEqual([code, exitCode, msg], [1, 5, 'plumbline-gate: large answers more than a MiB']);
      }
    }
  });

  it('gives a delegate up to 4095 variables', async () => {
    copyFileSync('/usr/bin/env', join(gate.binDir, 'env'));
    const extra = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`V${i}`, '']));
    const call = (count: number) => gate.call({ verb: 'DEL', conf: wrapping('env'), environment: extra(count) });
    const variables = async (count: number) => (await call(count)).stdout.split('\n').length - 1;
    const rest = await variables(0);
    assert.equal(await variables(4095 - rest), 4095);
    const { code, stdout } = await call(4096 - rest);
    assert.equal(code, 1);
    assert.match(stdout, /"code":999,"msg":"plumbline-gate: env cannot be executed: errno 7"/);
  });

  it('shows a reason of the state file that fits into a message, and none that is longer', async () => {
    const room = 2048 - 'DPU Not Ready: '.length;
    for (const length of [room, room + 1]) {
      writeState(gate.state, { dpu: 'not-ready', reason: 'x'.repeat(length) });
      const { msg } = (await gate.call({ conf: gated })).json();
      assert.equal(msg, `DPU Not Ready: ${length === room ? 'x'.repeat(length) : ''}`);
    }
  });

  describe('with an agent', () => {
    let question = '';
    let answer = '';
    useAgent(gate, (socket) => {
      socket.once('data', () => socket.write(answer));
      socket.on('data', (chunk) => {
        question += chunk.toString('latin1');
      });
    });
    beforeEach(() => {
      question = '';
      answer = 'allow\n';
      writeState(gate.state, { dpu: 'not-ready', reason: 'as last known' });
    });

    it('sends a request of which line and variables have 16 KiB, and none that is longer', async () => {
      const conf = JSON.stringify(gated);
      const call = async (padding: number) => {
        question = '';
        return gate.call({ conf, environment: { CNI_PADDING: 'x'.repeat(padding) } });
      };
      await call(12_000);
      await eventually(() => question.endsWith(conf), 'the request has arrived');
      const padding = 12_000 + 16 * 1024 - (question.length - conf.length);
      assert.equal((await call(padding)).code, 0);
      await eventually(() => question.endsWith(conf), 'the request has arrived');
      assert.equal(question.length - conf.length, 16 * 1024);
      const { msg } = (await call(padding + 1)).json();
      assert.deepEqual([msg, question], ['DPU Not Ready: as last known', '']);
    });

    const bounds: [name: string, answer: string, waits: boolean, message: string][] = [
      ['64 bytes without a newline may become a line', 'x'.repeat(64), true, 'DPU Not Ready: as last known'],
      ['65 bytes without a newline are no answer', 'x'.repeat(65), false, 'DPU Not Ready: as last known'],
      ['a text of 2048 bytes is shown', `deny 12 2048\n${'x'.repeat(2048)}`, false, 'x'.repeat(2048)],
      ['a text of 2049 bytes is none', `deny 12 2049\n${'x'.repeat(2049)}`, false, 'DPU Not Ready: as last known'],
      ['a text that never ends is awaited', 'deny 12 5\nhell', true, 'DPU Not Ready: as last known'],
    ];
    for (const [name, text, waits, message] of bounds) {
      it(`${name}${waits ? ', until the time is over' : ''}`, async function () {
        skipWithout('strace', this);
        answer = text;
        const result = await gate.call({ conf: gated, traced: true });
        assert.equal(result.json()['msg'], message);
        const ranOut = result.waits.some((wait) => wait.ranOut);
        assert.equal(ranOut, waits, JSON.stringify(result.waits));
      });
    }
  });

  it('is one static file of less than 40 kB', () => {
    const { size } = statSync(gate.shim);
    console.log(`      ${size} bytes`);
    assert.ok(size < 40_000, `${size} bytes`);
    assert.match(execFileSync('readelf', ['-d', gate.shim], { encoding: 'utf8' }), /no dynamic section/);
  });

  it('has the agent’s own directory compiled in as the default', () => {
    const { runDir } = parseNodeAgentConfig(['--node-name', 'worker-1']);
    assert.ok(readFileSync(gate.shim).includes(`${runDir}\0`), runDir);
  });

  describe('limits for the author of a network configuration', () => {
    it('S13: the socket is only the administrator’s: root connects to no other', async () => {
      let connections = 0;
      const path = join(gate.directory, 'containerd.sock');
      const foreign = createServer((socket) => {
        connections++;
        socket.end('allow\n');
      }).listen(path);
      try {
        for (const conf of [
          { ...gated, socket: path },
          { ...gated, delegate: { type: 'none', socket: path } },
        ])
          await gate.call({ conf });
        assert.equal(connections, 0);
      } finally {
        foreign.close();
      }
    });

    it('the state file is only the administrator’s: no other is opened or shown', async () => {
      const path = join(gate.directory, 'secret');
      writeState(path, { dpu: 'not-ready', reason: 'the secret', status: true });
      const { code, stdout } = await gate.call({ conf: { ...gated, stateFile: path } });
      assert.deepEqual([code, stdout.includes('secret')], [0, false]);
    });

    it('a state file that is a pipe or a device does not block', async () => {
      execFileSync('mkfifo', [gate.state]);
      const pipe = await gate.call({ conf: gated });
      rmSync(gate.state);
      symlinkSync('/dev/zero', gate.state);
      const device = await gate.call({ conf: gated });
      assert.deepEqual([pipe.code, device.code], [0, 0]);
    });
  });

  describe('the delegate', () => {
    it('its result and its noise are passed on unchanged', async () => {
      const printed = '{ "cniVersion": "0.3.1",   "interfaces": [] }';
      gate.delegate('below', `echo >&2 noise; printf '%s' '${printed}'`);
      const { code, stdout, stderr } = await gate.call({ conf: { ...wrapping('below'), cniVersion: '0.3.1' } });
      assert.deepEqual([code, stdout, stderr], [0, printed, 'noise\n']);
    });

    it('a delegate may leave its input unread, or answer while it reads', async () => {
      execFileSync('cp', ['/bin/true', join(gate.binDir, 'deaf')]);
      const x = 'x'.repeat(200_000);
      assert.equal((await gate.call({ conf: { ...gated, delegate: { type: 'deaf', x } } })).code, 0);
      execFileSync('cp', ['/bin/cat', join(gate.binDir, 'echo')]);
      const { code, json } = await gate.call({ conf: { ...gated, delegate: { type: 'echo', x } } });
      assert.deepEqual([code, json()['x']], [0, x]);
    });
  });
});

describe('the CNI plugin with sanitizers', function () {
  this.timeout(300_000);
  needs('gcc');
  needs('make');

  it('gives each of 2,000 random calls an answer in the form of the specification, without a report', () => {
    const { calls, outcomes, problems } = fuzzGate(2000, 7);
    assert.deepEqual(problems, []);
    assert.equal(calls, 2000);
    // The calls reach every part: refusals of each kind, results, and delegates that ran.
    for (const outcome of ['result', 'nothing', 'code 1', 'code 4', 'code 6', 'code 7', 'code 11']) {
      assert.ok((outcomes[outcome] ?? 0) > 0, `no ${outcome} in ${JSON.stringify(outcomes)}`);
    }
  });
});
