import assert from 'node:assert/strict';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { changedPages, freePageBytes } from '../../../node-agent/host/host-facts.ts';
import { KubeletRuns } from '../../../node-agent/host/kubelet-runs.ts';
import { writeMachine } from '../../hardware/machine-fixture.ts';
import { eventually, recordingLogger, tempDirectories, useDuties, writeTree } from '../support.ts';

const temp = tempDirectories();
const SOCKET = 'kubelet/pod-resources/kubelet.sock';

describe('runs of the kubelet', () => {
  const start = useDuties();
  let root: string;
  let runs: KubeletRuns;
  let modes: string[];

  const host = (online: string, pages = 0, free = pages) => {
    rmSync(join(root, 'devices'), { recursive: true, force: true });
    const offline = CpuSet.parse('0-3').minus(CpuSet.parse(online)).toString();
    const machine = { name: 'four', cpus: '0-3', offline, core: [0, 1, 2, 3], package: [0, 0, 0, 0] };
    writeMachine(root, { ...machine, nodes: { 0: '0-3' } });
    const directory = 'devices/system/node/node0/hugepages/hugepages-1048576kB';
    writeTree(root, { [`${directory}/nr_hugepages`]: `${pages}\n`, [`${directory}/free_hugepages`]: `${free}\n` });
  };
  const kubeletStarts = () => {
    rmSync(join(root, SOCKET), { force: true });
    mkdirSync(dirname(join(root, SOCKET)), { recursive: true });
    writeFileSync(join(root, SOCKET), '');
  };
  const follow = async () => {
    kubeletStarts();
    start({ run: (signal) => runs.follow(signal) });
    await eventually(() => runs.mode === 'current', 'read');
  };
  const online = () => runs.run?.facts.host.online.toString();

  beforeEach(() => {
    root = temp();
    modes = [];
    runs = new KubeletRuns({ sysfsRoot: root, kubeletDir: 'kubelet', root, log: recordingLogger().log });
    runs.subscribe(() => modes.push(runs.mode));
  });

  it('read the host again for each kubelet that starts: CPUs and huge pages', async () => {
    host('0-2');
    await follow();
    assert.equal(online(), '0-2');
    const { id } = runs.run ?? {};
    host('0-3', 8);
    kubeletStarts();
    await eventually(() => online() === '0-3', 'the second run');
    assert.notEqual(runs.run?.id, id);
    assert.deepEqual(runs.run?.facts.memory.cells[0]?.hugePages, { 'hugepages-1Gi': 8 * 2 ** 30 });
    assert.ok(modes.includes('reading'), 'what is published meanwhile is of the run before');
    assert.equal(runs.mode, 'current');
  });

  it('notice what the kernel changes while a kubelet runs, and keep what that kubelet has read', async () => {
    host('0-2');
    await follow();
    host('0-3', 8);
    runs.check();
    assert.equal(runs.kernel?.online.toString(), '0-3');
    const { run, kernel } = runs;
    assert.ok(run?.kernel !== undefined && kernel !== undefined);
    const text = 'NUMA node 0 has 8 huge pages of 1048576 KiB, and had 0 when the kubelet started';
    assert.deepEqual(changedPages(run.kernel, kernel), [text]);
    await eventually(() => online() === '0-3', 'the new CPU is described');
    assert.equal(runs.run?.cpus.toString(), '0-2');
    assert.equal(runs.run?.facts.memory.cells[0]?.hugePages, undefined);
  });

  it('notice how many huge pages are free', async () => {
    host('0-3', 8);
    await follow();
    host('0-3', 8, 3);
    const before = modes.length;
    runs.check();
    assert.ok(modes.length > before);
    assert.ok(runs.kernel);
    assert.deepEqual([...freePageBytes(runs.kernel)], [[0, { 'hugepages-1Gi': 3 * 2 ** 30 }]]);
  });

  it('stay as they are while the socket is missing or cannot be read', async () => {
    host('0-2');
    await follow();
    rmSync(join(root, SOCKET));
    assert.equal(runs.generation(), '');
    symlinkSync('kubelet.sock', join(root, SOCKET));
    assert.equal(runs.generation(), runs.run?.id, 'ELOOP');
    runs.check();
    assert.equal(runs.mode, 'current');
  });

  it('retry a host that cannot be described', async () => {
    host('0-2');
    rmSync(join(root, 'devices/system/cpu/online'));
    start({ run: (signal) => runs.follow(signal) });
    await assert.rejects(runs.read(), /online is missing/);
    host('0-2');
    await eventually(() => runs.mode === 'current', 'read');
  });
});
