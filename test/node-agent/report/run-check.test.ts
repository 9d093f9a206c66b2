import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { SysfsHost } from '../../../model/host-sysfs.ts';
import { preparedHost } from '../../../model/placement/needs.ts';
import { checkRun, pageContradictions, type RunInputs } from '../../../node-agent/report/run-check.ts';
import { buildStatus } from '../../../node-agent/report/status.ts';
import { set } from '../support.ts';
import { config, inputs, knownView, runWith } from './inputs-fixture.ts';

const sysfsOf = (online: string): SysfsHost => ({
  online,
  cpus: set(online)
    .toArray()
    .map((id) => ({ id, siblings: `${id}`, core: id, socket: 0 })),
  nodes: [{ id: 0, cpus: online }],
  directories: 4,
});
const run = runWith({ sysfs: sysfsOf('0-3') });
const view = { ...knownView, assignments: [], owned: CpuSet.EMPTY, cpusOfCheckpoint: set('0-3') };
const kernel = (online: string) => ({ online: set(online), pages: new Map<string, number>(), freePages: new Map() });
const NONE = /^$/;
const STRICT = { ...config, cpuManager: { policy: 'static', options: { 'strict-cpu-reservation': 'true' } } };

describe('the facts of a kubelet’s run, against each other and the kernel', () => {
  const withView = (more: Partial<RunInputs['view']>) => ({ view: { ...view, ...more } });
  const strict = { kubeletConfig: { ...STRICT, reserved: set('0') }, ...withView({ cpusOfCheckpoint: set('1-3') }) };
  // What differs; the kubelet's CPUs; the problems; what the kubelet has not seen.
  const rows: [string, Partial<RunInputs>, cpus: string, problem: RegExp, unseen: RegExp][] = [
    ['nothing', {}, '0-3', NONE, NONE],
    ['a CPU came online later', withView({ cpusOfCheckpoint: set('0-2') }), '0-2', NONE, /^CPU 3 came online/],
    [
      'the same without a checkpoint',
      { run: { ...run, cpus: set('0-2') }, ...withView({ cpusOfCheckpoint: undefined }) },
      ...(['0-2', NONE, /^CPU 3 came/] as const),
    ],
    ['a CPU went offline', { kernel: kernel('0-2') }, '0-3', /^CPU 3 went offline after the kubelet started/, NONE],
    [
      'a kubelet has started with a CPU that was not read yet',
      { ...withView({ cpusOfCheckpoint: set('0-4') }), kernel: kernel('0-4') },
      ...(['0-4', /the kubelet has CPU 4, not read/, NONE] as const),
    ],
    ['an owner outside', withView({ owned: set('3,9') }), '0-3', /^CPU 9 have owners, .* kubelet's CPUs are 0-3/, NONE],
    ['allocatable CPUs outside', withView({ allocatable: set('1-5') }), '0-3', /CPUs 4-5 as allocatable/, NONE],
    ['strict reservation keeps reserved CPUs out of the pool', strict, '0-3', NONE, NONE],
    ['a new run is not read yet', { runMode: 'reading' }, '0-3', /its host is not read yet/, NONE],
    ['the version is of an earlier run', { kubeletVersion: undefined }, '0-3', /has no version of it yet/, NONE],
  ];
  for (const [what, change, cpus, problem, unseen] of rows) {
    it(what, () => {
      const checked = checkRun({ ...inputs, run, view, ...change });
      assert.equal(checked.cpus.toString(), cpus);
      assert.deepEqual(checked.host.online.toString(), set(cpus).intersect(set('0-3')).toString());
      assert.match(checked.problems.join('; '), problem);
      assert.match(checked.unseen.join('; '), unseen);
    });
  }

  it('a report with a problem is not predicted, and says why; without one it is', () => {
    const topologyManager = { policy: 'none', scope: 'container', options: {} };
    const managers = {
      cpuManager: { policy: 'static', options: {} },
      topologyManager,
      memoryManager: { policy: 'None' },
    };
    const predictable = { ...inputs, run, view, kubeletConfig: { ...config, ...managers } };
    const kubeletOf = (change: Partial<RunInputs>) => {
      const status = buildStatus({ ...predictable, ...change }, undefined, 'now');
      assert.ok(status);
      return preparedHost(status).kubelet;
    };
    assert.ok(!('unpredictable' in kubeletOf({})));
    const kubelet = kubeletOf({ kernel: kernel('0-2') });
    assert.ok('unpredictable' in kubelet && /CPU 3 went offline/.test(kubelet.unpredictable));
  });
});

describe('huge pages of the memory manager against those of the kernel', () => {
  const pages = (allocatable: Record<string, number>, hugePages: Record<string, number>, reserved = {}) => {
    const memory = { cells: new Map(), allocatable: new Map([[0, new Map(Object.entries(allocatable))]]) };
    const facts = { memory: { cells: [{ id: 0, memory: 2 ** 33, hugePages }], distances: undefined } };
    const kubeletConfig = { ...config, reservedMemory: new Map([[0, reserved]]) };
    return pageContradictions({ ...inputs, run: runWith(facts), kubeletConfig, view: { ...view, memory } });
  };
  const ONE = 'hugepages-1Gi';
  const GI = 2 ** 30;
  for (const [what, texts] of [
    ['equal', pages({ memory: 5, [ONE]: 8 * GI }, { [ONE]: 8 * GI })],
    ['equal with reserved ones', pages({ [ONE]: 7 * GI }, { [ONE]: 8 * GI }, { [ONE]: GI })],
    ['none of a size', pages({ [ONE]: 0 }, {})],
    ['more than the host has', pages({ [ONE]: 8 * GI }, {})],
    ['fewer than the host has', pages({}, { [ONE]: 8 * GI })],
  ] as const) {
    const differs = /than the host/.test(what);
    it(`${what}: ${differs ? 'a contradiction' : 'none'}`, () => {
      assert.equal(texts.length, differs ? 1 : 0);
      if (differs) assert.match(texts[0] ?? '', /^NUMA node 0 has .* of hugepages-1Gi, and the kubelet counts /);
    });
  }
});
