import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readHost } from '../../hardware/sysfs.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost, describeHost, type HostDescription } from '../../model/host.ts';
import { parseCheckpoint } from '../../node-agent/assignments/checkpoint.ts';
import { parseKubeletConfig } from '../../node-agent/host/kubelet-config.ts';
import { checkpointChecksum } from '../../sandbox/kubelet/checksum.ts';
import { kubeletConfiguration } from '../../sandbox/kubelet/settings.ts';
import { createStateFile, readStateFile } from '../../sandbox/kubelet/state-file.ts';
import { writeSysfs } from '../../sandbox/kubelet/sysfs.ts';
import { temporaryDirectory } from './support.ts';

const HOSTS: Record<string, HostDescription> = {
  'one socket, SMT off': { cells: [{ id: 0, cpus: '0-3' }], cores: ['0', '1', '2', '3'] },
  'two sockets, SMT2, siblings far': {
    cells: [
      { id: 0, cpus: '0-3,8-11' },
      { id: 1, cpus: '4-7,12-15' },
    ],
    cores: ['0,8', '1,9', '2,10', '3,11', '4,12', '5,13', '6,14', '7,15'],
  },
  'two sockets interleaved': {
    cells: [
      { id: 0, cpus: '0,2,4,6' },
      { id: 1, cpus: '1,3,5,7' },
    ],
    cores: ['0,4', '2,6', '1,5', '3,7'],
  },
  'one socket, two cells, two caches': {
    cells: [
      { id: 0, cpus: '0-3' },
      { id: 1, cpus: '4-7' },
    ],
    cores: ['0-1', '2-3', '4-5', '6-7'],
    sockets: [{ id: 0, cpus: '0-7' }],
    uncores: [
      { id: 0, cpus: '0-3' },
      { id: 1, cpus: '4-7' },
    ],
  },
  SMT4: { cells: [{ id: 0, cpus: '0-15' }], cores: ['0-3', '4-7', '8-11', '12-15'] },
};

describe('emulated host files', () => {
  let directory: { path: string; remove: () => Promise<void> };
  beforeEach(async () => {
    directory = await temporaryDirectory();
  });
  afterEach(() => directory.remove());

  for (const [what, description] of Object.entries(HOSTS)) {
    it(`sysfs: the agent reads back what was described: ${what}`, async () => {
      const host = createHost(description);
      await writeSysfs(directory.path, host);
      assert.deepEqual(describeHost(createHost(await readHost(directory.path))), describeHost(host));
    });
  }
  it('config.yaml: the agent reads back what was configured', () => {
    const text = kubeletConfiguration({
      version: 'v1.36.0',
      host: createHost(HOSTS.SMT4!),
      reserved: CpuSet.parse('0-3'),
      cpuManagerPolicy: 'static',
      cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' },
      topologyManagerPolicy: 'restricted',
      topologyManagerScope: 'pod',
    });
    const config = parseKubeletConfig('config.yaml', text);
    assert.deepEqual(config?.cpuManager, { policy: 'static', options: { 'full-pcpus-only': 'true' } });
    assert.deepEqual(config.topologyManager, { policy: 'restricted', scope: 'pod', options: {} });
    assert.equal(config.reserved?.toString(), '0-3');
  });
});

describe('cpu_manager_state', () => {
  let directory: { path: string; remove: () => Promise<void> };
  let path: string;
  beforeEach(async () => {
    directory = await temporaryDirectory();
    path = join(directory.path, 'cpu_manager_state');
  });
  afterEach(() => directory.remove());
  const create = () => createStateFile(path, 'static', { defaultSet: CpuSet.parse('0-7'), assignments: new Map() });
  const read = async () => JSON.parse(await readFile(path, 'utf8'));

  it('has the checksum that a real kubelet writes', async () => {
    assert.equal(checkpointChecksum('none', '', new Map()), 1353318690);
    await create();
    const { checksum } = await read();
    assert.equal(checksum, checkpointChecksum('static', '0-7', new Map()));
  });

  it('is read by the agent after every single write, and no instant shows an owned CPU as free', async () => {
    const states: string[] = [];
    const file = await create();
    const watching = watchWrites(path, states);
    await file.assign('u1', 'a', CpuSet.parse('2-3'));
    await file.assign('u1', 'b', CpuSet.parse('4'));
    await file.release('u1');
    await watching.stop();
    for (const text of states) {
      const { defaultCpus, owned } = parseCheckpoint(text);
      assert.equal(defaultCpus.intersects(owned), false, text);
    }
    assert.deepEqual((await read()).defaultCpuSet, '0-7');
    assert.deepEqual(await readdir(directory.path), ['cpu_manager_state']);
  });

  it('an init container’s CPUs that an app container has too go back once', async () => {
    const file = await create();
    await file.assign('u', 'init', CpuSet.parse('2-3'));
    await file.assign('u', 'app', CpuSet.parse('2-3'));
    assert.equal(file.state.defaultSet.toString(), '0-1,4-7');
    await file.release('u');
    assert.equal(file.state.defaultSet.toString(), '0-7');
  });

  it('survives', async () => {
    const file = await create();
    await file.assign('u', 'c', CpuSet.parse('2-3'));
    const state = await readStateFile(path, 'static');
    assert.equal(state?.defaultSet.toString(), '0-1,4-7');
    assert.equal(state?.assignments.get('u')?.get('c')?.toString(), '2-3');
    assert.equal(await readStateFile(`${path}x`, 'static'), undefined);
  });
  for (const [what, spoil, message] of [
    ['torn', (text: string) => text.slice(0, 20), /torn/],
    ['with another checksum', (text: string) => text.replace('0-1', '0-2'), /corrupted/],
    [
      'of another policy',
      (text: string) => text,
      /configured policy "none" differs from state checkpoint policy "static"/,
    ],
    ['something else', () => '{}', /not a CPU manager checkpoint/],
  ] as const) {
    it(`${what}: no kubelet starts on it`, async () => {
      const file = await create();
      await file.assign('u', 'c', CpuSet.parse('2-3'));
      await writeFile(path, spoil(await readFile(path, 'utf8')));
      await assert.rejects(readStateFile(path, what === 'of another policy' ? 'none' : 'static'), message);
    });
  }
});

describe('cpu_manager_state: the order of writes', () => {
  it('assign: the pool shrinks, then the entry comes; release: the entry goes, then the pool grows', async () => {
    const directory = await temporaryDirectory();
    const path = join(directory.path, 'cpu_manager_state');
    const seen: string[] = [];
    const file = await createStateFile(path, 'static', { defaultSet: CpuSet.parse('0-3'), assignments: new Map() });
    const watching = watchWrites(path, seen);
    await file.assign('u', 'c', CpuSet.parse('2-3'));
    await file.release('u');
    await watching.stop();
    const steps = seen.map((text) => {
      const { defaultCpuSet, entries } = JSON.parse(text);
      return `${defaultCpuSet} ${entries?.u?.c ?? '-'}`;
    });
    assert.deepEqual(steps, ['0-1 -', '0-1 2-3', '0-1 -', '0-3 -']);
    await directory.remove();
  });
});

/** Every text that stood in the file after a rename: watched by following the file's inode in a tight loop. */
function watchWrites(path: string, into: string[]) {
  let running = true;
  let last = '';
  const loop = (async () => {
    last = await readFile(path, 'utf8');
    while (running) {
      const text = await readFile(path, 'utf8');
      if (text !== last) into.push(text);
      last = text;
    }
    const text = await readFile(path, 'utf8');
    if (text !== last) into.push(text);
  })();
  return {
    stop() {
      running = false;
      return loop;
    },
  };
}
