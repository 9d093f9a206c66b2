import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CpuSet } from '../../../model/cpu-set.ts';
import { SyscallError } from '../../../native/affinity.ts';
import { OvsProcesses, type OvsProcessesDeps } from '../../../node-agent/ovs-affinity/ovs-processes.ts';
import { textsOf } from '../../../node-agent/ovs-affinity/problems.ts';
import { startOf } from '../../../node-agent/processes/proc.ts';
import { UnreadableError } from '../../../node-agent/processes/readable.ts';
import { recordingLogger, type StandIn, startStandIn, tempDirectories, testMetrics, valuesOf } from '../support.ts';
import { cpus, FakeKernel } from './stage.ts';

/** The processes are real; their threads and masks are those of a kernel with 16 CPUs that the test controls. */
describe('the processes of Open vSwitch', () => {
  const temp = tempDirectories();
  let directory: string;
  let kernel: FakeKernel;
  let metrics: ReturnType<typeof testMetrics>;
  let ovs: OvsProcesses;
  let masksFile: string;
  let stop: AbortController;
  const started: StandIn[] = [];

  /** Threads of processes, except the main ones. */
  let others: Map<number, number[]>;

  beforeEach(() => {
    directory = temp();
    kernel = new FakeKernel();
    kernel.thread(1, '0-15', 'init');
    metrics = testMetrics();
    others = new Map();
    masksFile = join(directory, 'state/masks.json');
    mkdirSync(join(directory, 'state'));
    stop = new AbortController();
    ovs = create();
  });
  afterEach(async () => {
    stop.abort();
    await Promise.all(started.splice(0).map((child) => child.stop()));
  });

  const create = (changes: Partial<OvsProcessesDeps> = {}) => {
    const processes = new OvsProcesses({
      affinity: kernel.affinity,
      threads: {
        list: (pid) => (kernel.masks.has(pid) ? [pid, ...(others.get(pid) ?? [])] : []),
        has: (_pid, tid) => kernel.masks.has(tid),
        summary: (pid) => ({ count: 1 + (others.get(pid)?.length ?? 0), identity: 1 }),
        name: (_pid, tid) => kernel.names.get(tid),
        start: (pid, tid) => (kernel.masks.has(tid) ? startOf(pid) : undefined),
      },
      machine: () => cpus(kernel.online),
      nowSeconds: () => performance.now() / 1000,
      rundir: directory,
      masksFile,
      bootId: 'boot',
      log: recordingLogger().log,
      metrics,
      ...changes,
    });
    processes.load(stop.signal, () => {});
    return processes;
  };
  const daemon = async (name: 'ovs-vswitchd' | 'ovsdb-server', mask = '0-15') => {
    const child = await startStandIn(name, 0, join(directory, `${name}.pid`));
    started.push(child);
    kernel.thread(child.pid, mask, name);
    return child;
  };
  /** One more thread of the process. @returns its id */
  const thread = ({ pid }: { pid: number }, mask: string, name = 'handler') => {
    const tid = 5_000_000 + kernel.masks.size;
    kernel.thread(tid, mask, name);
    others.set(pid, [...(others.get(pid) ?? []), tid]);
    return tid;
  };
  const apply = (target: { only: CpuSet }) => {
    ovs.list();
    return ovs.apply(target);
  };
  const masksOf = (tids: readonly number[]) => tids.map((tid) => kernel.maskTexts()[tid]);
  const causesOf = ({ problems }: ReturnType<OvsProcesses['apply']>) => problems.map(({ cause }) => cause);
  const vacates = async () => {
    const { values } = await metrics.vacateSeconds.get();
    return values.find(({ metricName }) => metricName === 'plumbline_ovs_vacate_seconds_count')?.value;
  };

  it('are both moved and counted by daemon; a missing one is a problem', async () => {
    const first = await daemon('ovs-vswitchd');
    const handler = thread(first, '0-7');
    const outcome = apply({ only: cpus('2-3') });
    assert.deepEqual([outcome.moved, outcome.displaced, causesOf(outcome)], [2, 0, ['pidfile-absent']]);
    assert.deepEqual(ovs.unmanaged(), outcome.problems);
    assert.deepEqual(masksOf([first.pid, handler]), ['2-3', '2-3']);
    await daemon('ovsdb-server');
    assert.deepEqual(apply({ only: cpus('2-3') }), { moved: 1, displaced: 0, problems: [] });
    assert.deepEqual(ovs.unmanaged(), []);
    assert.deepEqual(await valuesOf(metrics.ovsThreads), { 'ovs-vswitchd': 2, 'ovsdb-server': 1 });
    assert.deepEqual(await valuesOf(metrics.ovsMoves), { 'ovs-vswitchd': 2, 'ovsdb-server': 1 });
  });

  it('stay known while the other one restarts: what another writer did in between is counted', async () => {
    const steady = await daemon('ovs-vswitchd');
    const before = await daemon('ovsdb-server');
    apply({ only: cpus('2-3') });
    kernel.thread(steady.pid, '0-14');
    await before.stop();
    kernel.masks.delete(before.pid);
    const next = await daemon('ovsdb-server', '5');
    assert.deepEqual(apply({ only: cpus('2-3') }), { moved: 2, displaced: 1, problems: [] });
    assert.deepEqual(await valuesOf(metrics.ovsDisplaced), { 'ovs-vswitchd': 1 });
    const pids = ovs.describe(undefined).map(({ pid }) => pid);
    assert.deepEqual([pids, ovs.restore().moved], [[steady.pid, next.pid], 2]);
    assert.deepEqual(masksOf(pids), ['0-15', '5']);
  });

  it('that a cpuset limits or excludes are counted by daemon, and are a problem', async () => {
    await daemon('ovs-vswitchd');
    kernel.cpuset = '0-5';
    const causes = (target: string) => causesOf(apply({ only: cpus(target) }));
    assert.deepEqual(causes('4-6'), ['pidfile-absent', 'clipped']);
    assert.deepEqual(await valuesOf(metrics.ovsClipped), { 'ovs-vswitchd': 1 });
    assert.deepEqual(causes('8'), ['pidfile-absent', 'EINVAL']);
    assert.deepEqual(await valuesOf(metrics.ovsRefused), { 'ovs-vswitchd': 1 });
  });

  it('are not displaced by the kernel when a CPU goes offline', async () => {
    const { pid } = await daemon('ovs-vswitchd');
    ovs.refreshMachine();
    const displacedOn = (only: string) => apply({ only: cpus(only) }).displaced;
    displacedOn('2-3');
    kernel.online = '0-2,4-15';
    assert.equal(displacedOn('2-3'), 0);
    assert.deepEqual([ovs.machine.toString(), ovs.refreshMachine()], ['0-2,4-15', false]);
    kernel.thread(pid, '5');
    assert.equal(displacedOn('2'), 1);
    kernel.online = '0-15';
    assert.equal(ovs.refreshMachine(), true);
    kernel.thread(pid, '2-3');
    assert.equal(displacedOn('2'), 0);
  });

  it('stay where they are without a free CPU of this machine, which is a problem', async () => {
    await daemon('ovs-vswitchd');
    await daemon('ovsdb-server');
    for (const [only, text] of [
      ['', /^no CPU is free/],
      ['20-21', /^none of the free CPUs \(20-21\) is on this machine/],
    ] as const) {
      const { moved, displaced, problems } = apply({ only: cpus(only) });
      assert.deepEqual([moved, displaced, problems.length, problems[0]?.cause], [0, 0, 1, 'no-cpu']);
      assert.match(problems[0]?.text ?? '', text);
    }
    assert.equal(kernel.sets, 0);
    assert.equal(apply({ only: cpus('15-20') }).moved, 2);
  });

  it('get the CPUs of the machine’s first process if their saved masks are lost, or else the online CPUs', async () => {
    kernel.thread(1, '0-7', 'init');
    const { pid } = await daemon('ovs-vswitchd', '9');
    const restored = (changes: object) => {
      writeFileSync(masksFile, 'torn');
      ovs = create(changes);
      ovs.list();
      assert.match(textsOf(ovs.restore().problems).join(), /first process \(\S+\)/);
      return kernel.maskTexts()[pid];
    };
    assert.equal(restored({}), '0-7');
    const get = (tid: number) => {
      if (tid === 1) throw new SyscallError('sched_getaffinity', 1, 1);
      return kernel.affinity.get(tid);
    };
    assert.equal(restored({ affinity: { ...kernel.affinity, get } }), '0-15');
  });

  it('that the kernel does not restore stay saved until it does, unless another process has moved them since', async () => {
    const { pid } = await daemon('ovs-vswitchd');
    const { pid: database } = await daemon('ovsdb-server', '0-7');
    let isRefused = false;
    const setMask = (tid: number, words: Uint32Array) => {
      if (isRefused) throw new SyscallError('sched_setaffinity', tid, 1);
      kernel.affinity.set(tid, words);
    };
    ovs = create({ affinity: { ...kernel.affinity, set: setMask } });
    apply({ only: cpus('2-3') });
    isRefused = true;
    const remaining = () => causesOf(ovs.restoreRemaining());
    ovs.restore();
    for (let i = 0; i < 2; i++) assert.deepEqual([remaining(), ovs.isRestored], [['EPERM', 'EPERM'], false]);
    kernel.thread(database, '5');
    isRefused = false;
    // The next agent knows them, too.
    const next = create();
    next.restore();
    assert.equal(kernel.maskTexts()[pid], '0-15');
    kernel.thread(pid, '2-3');
    kernel.thread(database, '5');
    assert.deepEqual([remaining(), ovs.isRestored, existsSync(masksFile)], [[], true, false]);
    assert.deepEqual(masksOf([pid, database]), ['0-15', '5']);
  });

  it('whose /proc cannot be read are a problem, keep their threads and masks, and count as staying', async () => {
    const first = await daemon('ovs-vswitchd');
    const tids = [first.pid, thread(first, '5')];
    let fails = true;
    const readable = <T>(value: T): T => {
      if (fails) throw new UnreadableError('/proc', new Error('EMFILE'));
      return value;
    };
    const list = () => readable(tids);
    const start = (pid: number) => readable(startOf(pid));
    const threads = { has: () => true, summary: () => ({ count: 2, identity: 1 }), name: () => 'handler', list, start };
    ovs = create({ threads });
    const causes = () => causesOf(apply({ only: cpus('2-3') }));
    assert.deepEqual([causes(), kernel.sets], [['pidfile-absent', 'unreadable'], 0]);
    fails = false;
    assert.deepEqual(causes(), ['pidfile-absent']);
    const saved = readFileSync(masksFile, 'utf8');
    assert.match(saved, /"main":"0-15","odd":\[\{.*"cpus":"5"\}/);
    fails = true;
    assert.deepEqual([causes(), ovs.isAsLeft()], [['pidfile-absent', 'unreadable'], false]);
    assert.equal((await valuesOf(metrics.ovsThreads))['ovs-vswitchd'], 2);
    const vacated = new AbortController();
    const waiting = ovs.vacate(cpus('9'), cpus('0-1'), vacated.signal);
    vacated.abort(new Error('stays'));
    await assert.rejects(waiting, /stays/);
    ovs.restore();
    ovs.restoreRemaining();
    assert.equal(readFileSync(masksFile, 'utf8'), saved);
    fails = false;
    ovs.restoreRemaining();
    assert.deepEqual(masksOf(tids), ['0-15', '5']);
  });

  for (const [how, move] of [
    ['a pass', () => void apply({ only: cpus('2-3') })],
    ['a container that starts', () => ovs.vacate(cpus('0-1'), cpus('2-3'))],
  ] as const) {
    it(`have what a daemon gave its main thread back at the end of its start saved before ${how} moves it`, async () => {
      const { pid } = await daemon('ovs-vswitchd', '1');
      apply({ only: cpus('2-3') });
      kernel.thread(pid, '0-15');
      let saved: { main: string }[] = [];
      kernel.onSet = () => {
        saved = JSON.parse(readFileSync(masksFile, 'utf8')).processes;
      };
      await move();
      assert.deepEqual(
        saved.map(({ main }) => main),
        ['0-15'],
      );
    });
  }

  it('leave a container’s CPUs before it starts, and the wait is measured', async () => {
    const { pid } = await daemon('ovs-vswitchd');
    const { pid: database } = await daemon('ovsdb-server', '2-3');
    await ovs.vacate(cpus('2-3'), cpus('0-1'));
    assert.deepEqual([masksOf([pid, database]), await vacates()], [['0-1,4-15', '0-1'], 1]);
    assert.equal(JSON.parse(readFileSync(masksFile, 'utf8')).processes.length, 2, 'their masks are saved before');
    const { sets } = kernel;
    await ovs.vacate(cpus('2-3'), cpus('0-1'));
    assert.equal(kernel.sets, sets, 'nothing is left to move');
  });

  it('that stay on a container’s CPUs for more than two seconds are named, the first eight of each daemon', async () => {
    const first = await daemon('ovs-vswitchd', '2-3');
    await daemon('ovsdb-server', '4');
    const tids = [first.pid, ...Array.from({ length: 9 }, () => thread(first, '2'))];
    kernel.cpuset = '2-3';
    const { now } = performance;
    let ahead = 0;
    performance.now = () => now.call(performance) + ahead;
    try {
      const waiting = ovs.vacate(cpus('2-3'), cpus('0-1'));
      const named = tids.slice(0, 8).join(' ');
      const message = `Open vSwitch does not leave CPUs 2-3: ovs-vswitchd threads ${named} and 2 more`;
      const refused = assert.rejects(waiting, { name: 'VacateError', code: 'vacate', message });
      ahead = 2001;
      await refused;
      assert.equal(await vacates(), 0);
    } finally {
      performance.now = now;
    }
  });

  it('may leave a container’s CPUs at a later attempt', async () => {
    const { pid } = await daemon('ovs-vswitchd', '2-3');
    kernel.cpuset = '2-3';
    const waiting = ovs.vacate(cpus('2-3'), cpus('0-1'));
    kernel.cpuset = '0-63';
    // The kernel's answer of before is remembered for this mask.
    kernel.thread(pid, '3');
    await waiting;
    assert.equal(kernel.maskTexts()[pid], '0-1');
  });
});
