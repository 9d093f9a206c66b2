import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { OvsProcess } from '../../../node-agent/open-vswitch/daemons.ts';
import type { ProcessAffinity } from '../../../node-agent/ovs-affinity/process-affinity.ts';
import { SavedMasks } from '../../../node-agent/ovs-affinity/saved-masks.ts';
import type { OriginalMasks } from '../../../node-agent/ovs-affinity/thread-mover.ts';
import { UnreadableError } from '../../../node-agent/processes/readable.ts';
import { startVirtualTime, type VirtualTime } from '../../support/virtual-time.ts';
import { recordingLogger, tempDirectories } from '../support.ts';

type SavedProcess = SavedMasks['processes'][number];

const masks = (main: string, odd: OriginalMasks['odd'] = []): OriginalMasks => ({ main: CpuSet.parse(main), odd });

const DAEMON: OvsProcess = { name: 'ovs-vswitchd', role: 'daemon', pid: 10, start: 100 };
const MONITOR: OvsProcess = { name: 'ovs-vswitchd', role: 'monitor', pid: 9, start: 90 };
const DATABASE: OvsProcess = { name: 'ovsdb-server', role: 'daemon', pid: 20, start: 200 };
const DATABASE_MONITOR: OvsProcess = { name: 'ovsdb-server', role: 'monitor', pid: 19, start: 190 };
const saved = (process: OvsProcess, main: string): SavedProcess => ({ ...process, originalMasks: masks(main) });

/** A process without saved masks. Left to itself, it saves `now` for its threads. */
function processOf(process: OvsProcess, now = '0-7'): ProcessAffinity {
  let originalMasks: OriginalMasks | undefined;
  return {
    process,
    get originalMasks() {
      return originalMasks;
    },
    adoptMasks(saved?: OriginalMasks) {
      originalMasks = saved ?? masks(now);
    },
  } as ProcessAffinity;
}

describe('saved masks', () => {
  const temp = tempDirectories();
  let path: string;
  let stop: AbortController;
  /** The start of each process by its id; an error if it cannot be read. */
  let alive: Map<number, number | Error>;
  let time: VirtualTime;
  beforeEach(() => {
    path = join(temp(), 'state/masks.json');
    mkdirSync(dirname(path));
    stop = new AbortController();
    alive = new Map([DAEMON, MONITOR, DATABASE, DATABASE_MONITOR].map(({ pid, start }) => [pid, start]));
    time = startVirtualTime();
  });
  afterEach(() => {
    stop.abort();
    time.end();
  });

  /** An agent, which has loaded what is on the disk. */
  function agent({ bootId = 'boot', onLate = () => {} } = {}): SavedMasks {
    const startOf = (pid: number) => {
      const start = alive.get(pid);
      if (start instanceof Error) throw start;
      return start;
    };
    const unconfined = () => CpuSet.parse('0-63');
    const memory = new SavedMasks({ masksFile: path, bootId, log: recordingLogger().log, startOf, unconfined });
    memory.load(stop.signal, onLate);
    return memory;
  }

  /** Puts masks on the disk, as an earlier agent does. */
  function save(processes: readonly SavedProcess[]): void {
    agent().save(
      processes.map(({ originalMasks, ...process }) => ({ process, originalMasks }) as unknown as ProcessAffinity),
    );
  }

  const mainOf = (one: ProcessAffinity) => one.originalMasks?.main.toString();
  const onDisk = () => {
    const { processes } = JSON.parse(readFileSync(path, 'utf8'));
    return processes.map(({ pid, start, main }: Record<string, unknown>) => `${pid}/${start} ${main}`);
  };
  const causes = (problems: readonly { readonly text: string }[]) =>
    problems.map(({ text }) => /are lost|cannot save|are unknown/.exec(text)?.[0]);

  describe('save', () => {
    it('saves the current masks once before any change, for the next agent of the same boot', () => {
      const odd = { tid: 21, start: 210, cpus: CpuSet.parse('3') };
      const list = [processOf(DAEMON, '0-7'), processOf(DATABASE)];
      list[1]?.adoptMasks(masks('4', [odd]));
      const memory = agent();
      assert.deepEqual(memory.save(list), []);
      assert.deepEqual([...list.map(mainOf), ...onDisk()], ['0-7', '4', '10/100 0-7', '20/200 4']);
      const { ino } = statSync(path);
      assert.deepEqual([memory.save(list), statSync(path).ino], [[], ino]);
      const [first, second] = agent().processes.map(({ originalMasks }) => originalMasks);
      assert.deepEqual([String(first?.main), second?.odd.map(String)], ['0-7', [String(odd)]]);
      assert.deepEqual(agent({ bootId: 'another boot' }).processes, []);
    });

    it('prefers masks that an earlier agent saved, except those of another process with the same pid', () => {
      alive.set(DATABASE.pid, 1);
      save([saved(DAEMON, '0-15'), saved({ ...DATABASE, start: 1 }, '9')]);
      const list = [processOf(DAEMON, '2'), processOf(DATABASE, '3')];
      agent().save(list);
      assert.deepEqual(list.map(mainOf), ['0-15', '3']);
    });

    it('adds a process that appears later and does not read a known one again', () => {
      const memory = agent();
      const first = processOf(DAEMON, '0-7');
      memory.save([first]);
      first.adoptMasks(masks('5'));
      memory.save([first, processOf(DATABASE, '1')]);
      assert.deepEqual(onDisk(), ['10/100 5', '20/200 1']);
    });

    it('keeps the masks of a process that is not found but alive, or unreadable, and drops those of an ended one', () => {
      save([saved(MONITOR, '0-15'), saved(DATABASE_MONITOR, '0-3')]);
      const memory = agent();
      alive.delete(DATABASE_MONITOR.pid);
      alive.set(MONITOR.pid, new UnreadableError('/proc/9/stat', new Error('EMFILE')));
      memory.save([processOf(DATABASE, '1')]);
      assert.deepEqual(onDisk(), ['20/200 1', '9/90 0-15']);
      alive.set(MONITOR.pid, 91);
      memory.save([processOf(DAEMON, '2')]);
      assert.deepEqual(onDisk(), ['10/100 2', '20/200 1']);
    });

    it('does not save a process that cannot be read', () => {
      const gone = { ...processOf(DAEMON), adoptMasks: () => undefined } as ProcessAffinity;
      agent().save([gone, processOf(DATABASE, '1')]);
      assert.deepEqual(onDisk(), ['20/200 1']);
    });
  });

  describe('a daemon that its monitor has restarted', () => {
    const odd = { ...MONITOR, originalMasks: masks('0-15', [{ tid: 9, start: 90, cpus: CpuSet.parse('3') }]) };
    const cases: [string, SavedProcess[], OvsProcess[], string[]][] = [
      ['gets the mask that the monitor had before', [saved(MONITOR, '0-15')], [DAEMON, MONITOR], ['0-15', '0-15']],
      ['does not get the mask of odd threads of the monitor', [odd], [DAEMON, MONITOR], ['0-15', '0-15 odd']],
      ['gets its own mask if both are first seen together', [], [DAEMON, MONITOR], ['1', '2']],
      [
        'gets no mask of another daemon’s monitor, or of another process with the monitor’s pid',
        [saved(DATABASE_MONITOR, '8'), saved({ ...MONITOR, start: 1 }, '7')],
        [DAEMON, DATABASE_MONITOR, MONITOR],
        ['1', '8', '3'],
      ],
      [
        'prefers its own saved mask over that of its monitor',
        [saved(MONITOR, '0-15'), saved(DAEMON, '6')],
        [DAEMON, MONITOR],
        ['6', '0-15'],
      ],
      ['never gives its mask to a monitor', [saved(DAEMON, '6')], [DAEMON, MONITOR], ['6', '2']],
    ];
    for (const [label, before, processes, expected] of cases) {
      it(label, () => {
        for (const { pid, start } of before) alive.set(pid, start);
        save(before);
        const list = processes.map((process, i) => processOf(process, String(i + 1)));
        agent().save(list);
        const oddOf = ({ originalMasks }: ProcessAffinity) => (originalMasks?.odd.length === 0 ? '' : ' odd');
        const adopted = list.map((affinity) => mainOf(affinity) + oddOf(affinity));
        assert.deepEqual(adopted, expected);
      });
    }
  });

  describe('recall', () => {
    it('returns those in memory, or else those in the file, and writes nothing', () => {
      save([saved(DAEMON, '0-15'), saved(MONITOR, '0-15')]);
      const { ino } = statSync(path);
      const list = [processOf(DAEMON, '1'), processOf(DATABASE, '2'), processOf(MONITOR)];
      list[2]?.adoptMasks(masks('3'));
      assert.deepEqual(agent().recall(list), []);
      assert.deepEqual([list.map(mainOf), statSync(path).ino], [['0-15', undefined, '3'], ino]);
    });

    it('finds none that were forgotten; those of processes that were not restored stay', () => {
      save([saved(DAEMON, '0-15'), saved(DATABASE, '1'), saved(MONITOR, '0-3')]);
      const memory = agent();
      alive.delete(MONITOR.pid);
      memory.forget([DAEMON]);
      assert.deepEqual([onDisk(), memory.isEmpty], [['20/200 1'], false]);
      const affinity = processOf(DAEMON, '1');
      memory.recall([affinity]);
      assert.equal(mainOf(affinity), undefined);
      memory.forget([DATABASE]);
      assert.deepEqual([existsSync(path), memory.isEmpty], [false, true]);
    });
  });

  describe('lost', () => {
    it('assumes the masks of a service, and reports that until they are restored', () => {
      save([saved(DAEMON, '0-15')]);
      truncateSync(path, 40);
      const recalled = processOf(DAEMON, '1');
      const memory = agent();
      memory.recall([recalled]);
      const list = [processOf(DAEMON, '1')];
      const problems = memory.save(list);
      assert.equal(problems[0]?.cause, 'masks-file');
      assert.match(problems[0]?.text ?? '', /^\S+masks\.json: .* \(kept as \S+\.corrupt\): .* \(0-63\);/);
      assert.deepEqual([mainOf(recalled), ...list.map(mainOf)], ['0-63', '0-63']);
      const later = processOf(DATABASE, '2');
      assert.deepEqual([memory.save([...list, later]), mainOf(later)], [problems, '2'], 'it starts afterwards');
      memory.forget([DAEMON, DATABASE]);
      assert.deepEqual([existsSync(path), memory.save([later])], [false, []]);
    });
  });

  describe('a state directory in trouble', () => {
    it('those that could not be written are, when they can, and the next agent does not take its own for them', async () => {
      const memory = agent();
      mkdirSync(path);
      const list = [processOf(DAEMON, '0-15')];
      for (let i = 0; i < 2; i++) assert.deepEqual(causes(memory.save(list)), ['cannot save']);
      rmdirSync(path);
      await time.pass(10);
      assert.deepEqual([onDisk(), memory.save(list)], [['10/100 0-15'], []]);
      const moved = processOf(DAEMON, '2-3');
      agent().save([moved]);
      assert.equal(mainOf(moved), '0-15');
    });

    it('those that could not be read win over what this agent has seen meanwhile, and are not overwritten', async () => {
      save([saved(DAEMON, '0-15'), saved(MONITOR, '0-15')]);
      const text = readFileSync(path, 'utf8');
      rmSync(path);
      mkdirSync(path);
      let late = 0;
      const memory = agent({ onLate: () => late++ });
      const list = [processOf(DAEMON, '2-3'), processOf(DATABASE, '1')];
      assert.deepEqual([causes(memory.save(list)), list.map(mainOf)], [['are unknown'], ['2-3', '1']]);
      memory.forget([DAEMON, DATABASE]);
      assert.equal(memory.isEmpty, false);
      memory.save(list);
      rmdirSync(path);
      writeFileSync(path, text);
      await time.pass(10);
      assert.equal(late, 1);
      assert.deepEqual([memory.save(list), list.map(mainOf)], [[], ['0-15', '1']]);
      assert.deepEqual(onDisk(), ['10/100 0-15', '20/200 1', '9/90 0-15']);
    });
  });
});
