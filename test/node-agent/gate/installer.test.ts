import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { GateInstaller, gateProgram, removeGate } from '../../../node-agent/gate/installer.ts';
import { eventually, recordingLogger, replaceFile, tempDirectories, testMetrics, useDuties } from '../support.ts';

const OVN = { cniVersion: '1.1.0', name: 'ovn-kubernetes', type: 'ovn-k8s-cni-overlay' };
const OWN = '00-multus-plumbline-gate.json';

describe('the gate’s installer', () => {
  const temp = tempDirectories();
  let places: { binDir: string; confDir: string };
  let shim: string;
  const start = useDuties();
  let stop: () => Promise<void>;
  let logged: ReturnType<typeof recordingLogger>;
  let metrics: ReturnType<typeof testMetrics>;

  beforeEach(() => {
    const directory = temp();
    shim = join(directory, 'image-shim');
    writeFileSync(shim, 'the program');
    places = { binDir: join(directory, 'bin'), confDir: join(directory, 'net.d') };
    mkdirSync(places.confDir);
    logged = recordingLogger();
    metrics = testMetrics();
  });

  const run = (more: Partial<ConstructorParameters<typeof GateInstaller>[0]> = {}) => {
    stop = start(new GateInstaller({ ...places, shim, log: logged.log, metrics, pace: 0, ...more }));
  };
  const conf = (name: string) => join(places.confDir, name);
  const write = (name: string, value: object) => replaceFile(conf(name), JSON.stringify(value));
  const own = (name = OWN) => JSON.parse(readFileSync(conf(name), 'utf8')) as Record<string, unknown>;
  const installed = async () => (await metrics.gateInstalled.get()).values[0]?.value;

  it('installs the program as an executable, does not touch an identical one, and replaces a different one in one step', () => {
    const path = join(places.binDir, 'plumbline-gate');
    run();
    assert.deepEqual([readFileSync(path, 'utf8'), statSync(path).mode & 0o777], ['the program', 0o755]);
    const before = statSync(path).ino;
    run();
    assert.equal(statSync(path).ino, before);
    writeFileSync(shim, 'a newer one');
    run();
    assert.equal(readFileSync(path, 'utf8'), 'a newer one');
    assert.notEqual(statSync(path).ino, before, 'a process that executes the old one keeps it');
    assert.deepEqual(readdirSync(places.binDir), ['plumbline-gate']);
  });

  it('writes its configuration when the primary appears, follows its changes, and removes it with the primary', async () => {
    run();
    assert.equal(existsSync(conf(OWN)), false);
    assert.equal(await installed(), 0);
    write('10-ovn.conf', OVN);
    await eventually(() => existsSync(conf(OWN)), 'made');
    await eventually(async () => (await installed()) === 1, 'said so');
    const { cniVersion, name, type } = OVN;
    assert.deepEqual(own(), { cniVersion, name, type: 'plumbline-gate', delegate: { type } });
    write('10-ovn.conf', { ...OVN, mtu: 9000 });
    await eventually(() => JSON.stringify(own()).includes('9000'), 'the file is written again');
    rmSync(conf('10-ovn.conf'));
    await eventually(() => !existsSync(conf(OWN)), 'gone');
    await eventually(async () => (await installed()) === 0, 'said so');
  });

  it('repairs what no event reported within thirty seconds, and writes its file at most once a second', () => {
    let now = 30_000;
    const clock = mock.method(performance, 'now', () => now);
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    try {
      write('10-ovn.conf', OVN);
      run({ pace: undefined } as object);
      const pass = (milliseconds: number) => {
        now += milliseconds;
        mock.timers.tick(milliseconds);
      };
      // No event arrives before the end of this turn.
      rmSync(conf(OWN));
      pass(29_999);
      assert.equal(existsSync(conf(OWN)), false);
      pass(1);
      assert.equal(existsSync(conf(OWN)), true, 'the last time was long ago');
      rmSync(conf(OWN));
      now += 400;
      mock.timers.tick(30_000);
      pass(599);
      assert.equal(existsSync(conf(OWN)), false, '0.999 s after the last time');
      pass(1);
      assert.equal(existsSync(conf(OWN)), true);
    } finally {
      mock.timers.reset();
      clock.mock.restore();
    }
  });

  it('logs a primary that the runtime takes before the gate, and sets the metric to 0', async () => {
    write('00-first.conf', OVN);
    run();
    await eventually(() => logged.said('gate incomplete: new pods may start without it'), 'said');
    assert.equal(await installed(), 0);
  });

  it('leaves everything when it ends; disabling removes the configuration and the state, and on request the program', async () => {
    write('10-ovn.conf', OVN);
    run();
    await eventually(() => existsSync(conf(OWN)), 'made');
    await stop();
    assert.deepEqual(readdirSync(places.confDir), [OWN, '10-ovn.conf'], 'the next agent finds it');
    const { binDir, confDir } = places;
    const state = join(confDir, '../gate.state');
    writeFileSync(state, '{}');
    assert.deepEqual(removeGate({ confDir, state }), [conf(OWN), state]);
    assert.deepEqual([readdirSync(confDir), readdirSync(binDir)], [['10-ovn.conf'], ['plumbline-gate']]);
    assert.deepEqual(removeGate({ confDir, state, binDir }), [join(binDir, 'plumbline-gate')]);
    assert.deepEqual(removeGate({ confDir: join(confDir, 'none'), state, binDir }), []);
  });

  const shell = (script: string) => execFileSync('sh', ['-ec', script], { cwd: join(places.confDir, '..') });
  const newPrimary = `echo '${JSON.stringify({ ...OVN, mtu: 9000 })}' > new; mv new net.d/10-ovn.conf`;
  const faults: [what: string, reason: RegExp, spoil: string, repair: string][] = [
    [
      'its directory cannot be read',
      /ELOOP.*net\.d/,
      'rm -r net.d; ln -s net.d net.d',
      `rm net.d; mkdir net.d; ${newPrimary}`,
    ],
    [
      'the primary is a pipe',
      /10-ovn\.conf cannot be read: .*not a regular file/,
      'rm net.d/10-ovn.conf; mkfifo net.d/10-ovn.conf',
      newPrimary,
    ],
    [
      'its file cannot be written',
      /EISDIR.*00-multus-plumbline-gate\.json/,
      `rm net.d/${OWN}; mkdir net.d/${OWN}`,
      `rmdir net.d/${OWN}`,
    ],
  ];
  for (const [what, reason, spoil, repair] of faults) {
    it(`says why it is incomplete if ${what}, continues, and is complete again by itself`, async () => {
      write('10-ovn.conf', OVN);
      // Each attempt to write causes events.
      run({ pace: 0.2 });
      await eventually(async () => (await installed()) === 1, 'installed');
      shell(spoil);
      const isSaid = () => logged.lines.some(({ reason: said }) => reason.test(String(said)));
      await eventually(isSaid, `it says why: ${JSON.stringify(logged.lines)}`, 10);
      assert.equal(await installed(), 0);
      shell(repair);
      await eventually(async () => (await installed()) === 1, 'installed again', 10);
      assert.equal(own()['type'], 'plumbline-gate');
    });
  }

  it('fails with the reason if the image has no program', async () => {
    rmSync(shim);
    const installer = new GateInstaller({ ...places, shim, log: logged.log, metrics });
    await assert.rejects(installer.run(new AbortController().signal), /the agent's image has no CNI plugin/);
  });
});

it('the CNI plugin to install is next to the agent’s program, or among the bundles for its source', () => {
  assert.equal(gateProgram('/plumbline/node-agent.cjs'), '/plumbline/plumbline-gate');
  assert.equal(gateProgram('/src/node-agent/main.ts'), '/src/dist/plumbline-gate');
});
