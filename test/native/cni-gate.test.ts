import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { parseNodeAgentConfig } from '../../node-agent/wiring/config.ts';
import { skipWithout } from '../support/parts.ts';
import { PASS, useGate, writeState } from './gate.ts';

const VERSIONS = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'];
const DEAD = { dpu: 'not-ready', reason: 'its lease ovn-dpu-a ran out', status: true };
const gated = (cniVersion: string, more = {}) => ({
  cniVersion,
  name: 'net',
  type: 'plumbline-gate',
  delegate: { type: PASS },
  ...more,
});

describe('the CNI plugin', () => {
  const gate = useGate();

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

  it('VERSION lists all versions, whatever else is in the configuration', async () => {
    for (const conf of ['{"cniVersion":"1.1.0"}', '']) {
      const { code, json } = await gate.call({ verb: 'VERSION', conf });
      assert.deepEqual([code, json()], [0, { cniVersion: '1.1.0', supportedVersions: VERSIONS }]);
    }
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
          gated('1.0.0', { socket: path }),
          { ...gated('1.0.0'), delegate: { type: 'none', socket: path } },
        ])
          await gate.call({ conf });
        assert.equal(connections, 0);
      } finally {
        foreign.close();
      }
    });

    it('the state file is only the administrator’s: no other is opened or shown', async () => {
      const path = join(gate.directory, 'secret');
      writeState(path, { ...DEAD, reason: 'the secret' });
      const { code, stdout } = await gate.call({ conf: gated('1.0.0', { stateFile: path }) });
      assert.deepEqual([code, stdout.includes('secret')], [0, false]);
    });

    it('a state file that is a pipe or a device does not block', async () => {
      execFileSync('mkfifo', [gate.state]);
      const pipe = await gate.call({ conf: gated('1.0.0') });
      rmSync(gate.state);
      symlinkSync('/dev/zero', gate.state);
      const device = await gate.call({ conf: gated('1.0.0') });
      assert.deepEqual([pipe.code, device.code], [0, 0]);
    });

    it('an overlong value is not repeated in the error', async () => {
      const long = 'x'.repeat(300_000);
      const calls = [
        { conf: gated(long) },
        { conf: gated('1.0.0', { delegate: { type: long } }) },
        { conf: gated('1.0.0'), verb: long.slice(0, 100_000) },
      ];
      for (const call of calls) {
        const { code, stdout } = await gate.call(call);
        assert.equal(code, 1);
        assert.ok(stdout.length < 400, `${stdout.length} bytes`);
        assert.match(stdout, /x{80}\.\.\./);
      }
    });
  });

  describe('the delegate', () => {
    it('its result and its noise are passed on unchanged', async () => {
      const printed = '{ "cniVersion": "0.3.1",   "interfaces": [] }';
      gate.delegate('below', `echo >&2 noise; printf '%s' '${printed}'`);
      const { code, stdout, stderr } = await gate.call({ conf: gated('0.3.1', { delegate: { type: 'below' } }) });
      assert.deepEqual([code, stdout, stderr], [0, printed, 'noise\n']);
    });

    it('STATUS is answered within a second, and a delegate that does not answer is ended', async function () {
      skipWithout('strace', this);
      gate.delegate('hanging', 'trap "" TERM; sleep 600');
      const conf = gated('1.1.0', { delegate: { type: 'hanging' } });
      const { code, json, waits } = await gate.call({ verb: 'STATUS', conf, traced: true });
      assert.deepEqual([code, json()['code']], [1, 50]);
      assert.ok(waits.some(({ most, ranOut }) => ranOut && most > 0));
      assert.ok(
        waits.every(({ most }) => most >= 0 && most <= 600),
        JSON.stringify(waits),
      );
    });

    it('a delegate that prints endlessly or does not read is handled', async () => {
      gate.delegate('endless', 'yes');
      const endless = await gate.call({ verb: 'DEL', conf: gated('1.0.0', { delegate: { type: 'endless' } }) });
      assert.match(String(endless.json()['msg']), /more than a MiB/);
      execFileSync('cp', ['/bin/true', join(gate.binDir, 'deaf')]);
      const deaf = await gate.call({ conf: gated('1.0.0', { delegate: { type: 'deaf', x: 'x'.repeat(200_000) } }) });
      assert.equal(deaf.code, 0);
    });

    it('200 kB pass through both pipes', async () => {
      execFileSync('cp', ['/bin/cat', join(gate.binDir, 'echo')]);
      const x = 'x'.repeat(200_000);
      const { code, json } = await gate.call({ conf: gated('1.0.0', { delegate: { type: 'echo', x } }) });
      assert.deepEqual([code, json()['x']], [0, x]);
    });
  });

  it('a torn state is ignored', async () => {
    writeFileSync(gate.state, '{"dpu":"not-ready","at":1');
    assert.equal((await gate.call({ conf: gated('1.0.0') })).code, 0);
  });
});
