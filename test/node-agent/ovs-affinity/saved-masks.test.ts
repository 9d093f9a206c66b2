import assert from 'node:assert/strict';
import { existsSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { OvsProcess } from '../../../node-agent/open-vswitch/daemons.ts';
import type { ProcessAffinity } from '../../../node-agent/ovs-affinity/process-affinity.ts';
import {
  createMasksFile,
  createSavedMasks,
  MasksFileError,
  type OriginalMasks,
  type SavedProcess,
} from '../../../node-agent/ovs-affinity/saved-masks.ts';
import { tempDirectories } from '../support.ts';

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
    remember(saved?: OriginalMasks) {
      originalMasks = saved ?? masks(now);
    },
  } as ProcessAffinity;
}

function stage(before: readonly SavedProcess[] | Error = []) {
  const file: { saves: SavedProcess[][]; loads: number; fails: Error | undefined; aside: string | undefined } = {
    saves: [],
    loads: 0,
    fails: undefined,
    aside: '/state/masks.json.corrupt',
  };
  const alive = new Map([DAEMON, MONITOR, DATABASE, DATABASE_MONITOR].map(({ pid, start }) => [pid, start]));
  const memory = createSavedMasks({
    file: {
      load() {
        file.loads++;
        if (before instanceof Error) throw before;
        return [...before];
      },
      save(processes) {
        if (file.fails !== undefined) throw file.fails;
        file.saves.push([...processes]);
      },
      putAside: () => file.aside,
    },
    startOf: (pid) => alive.get(pid),
    unconfined: () => CpuSet.parse('0-63'),
  });
  return { file, alive, memory };
}

const mainOf = (one: ProcessAffinity) => one.originalMasks?.main.toString();
const displayed = (list: readonly SavedProcess[] | undefined) =>
  list?.map(({ pid, start, originalMasks: { main } }) => `${pid}/${start} ${main}`);

describe('saved masks: remember', () => {
  it('saves the current masks once before any change', () => {
    const { file, memory } = stage();
    const list = [processOf(DAEMON, '0-7'), processOf(DATABASE, '4')];
    assert.deepEqual(memory.remember(list), []);
    assert.deepEqual(list.map(mainOf), ['0-7', '4']);
    assert.deepEqual(displayed(file.saves[0]), ['10/100 0-7', '20/200 4']);
    assert.deepEqual(memory.remember(list), []);
    assert.deepEqual([file.saves.length, file.loads], [1, 1]);
  });

  it('prefers masks that an earlier agent saved, except those of another process with the same pid', () => {
    const { memory } = stage([saved(DAEMON, '0-15'), saved({ ...DATABASE, start: 1 }, '9')]);
    const list = [processOf(DAEMON, '2'), processOf(DATABASE, '3')];
    memory.remember(list);
    assert.deepEqual(list.map(mainOf), ['0-15', '3']);
  });

  it('adds a process that appears later and does not read a known one again', () => {
    const { file, memory } = stage();
    const first = processOf(DAEMON, '0-7');
    memory.remember([first]);
    first.remember(masks('5'));
    memory.remember([first, processOf(DATABASE, '1')]);
    assert.deepEqual(displayed(file.saves[1]), ['10/100 5', '20/200 1']);
  });

  it('keeps the masks of a process that is not found but alive, and drops those of an ended one', () => {
    const { file, alive, memory } = stage([saved(MONITOR, '0-15'), saved(DATABASE_MONITOR, '0-3')]);
    alive.delete(DATABASE_MONITOR.pid);
    memory.remember([processOf(DATABASE, '1')]);
    assert.deepEqual(displayed(file.saves[0]), ['20/200 1', '9/90 0-15']);
    alive.set(MONITOR.pid, 91);
    memory.remember([processOf(DAEMON, '2')]);
    assert.deepEqual(displayed(file.saves[1]), ['10/100 2', '20/200 1']);
  });

  it('does not save a process that cannot be read', () => {
    const { file, memory } = stage();
    const gone = { ...processOf(DAEMON), remember: () => undefined } as ProcessAffinity;
    memory.remember([gone, processOf(DATABASE, '1')]);
    assert.deepEqual(displayed(file.saves[0]), ['20/200 1']);
  });
});

describe('saved masks: a daemon that its monitor has restarted', () => {
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
      const { memory } = stage(before);
      const list = processes.map((process, i) => processOf(process, String(i + 1)));
      memory.remember(list);
      const odds = list.map(({ originalMasks }) => (originalMasks?.odd.length === 0 ? '' : ' odd'));
      assert.deepEqual(
        list.map((affinity, i) => `${mainOf(affinity)}${odds[i]}`),
        expected,
      );
    });
  }
});

describe('saved masks: recall', () => {
  it('returns those in memory, or else those in the file, and writes nothing', () => {
    const { file, memory } = stage([saved(DAEMON, '0-15'), saved(MONITOR, '0-15')]);
    const list = [processOf(DAEMON, '1'), processOf(DATABASE, '2'), processOf(MONITOR)];
    list[2]?.remember(masks('3'));
    assert.deepEqual(memory.recall(list), []);
    assert.deepEqual(list.map(mainOf), ['0-15', undefined, '3']);
    assert.deepEqual(file.saves, []);
  });

  it('finds none once they are cleared; the file is not written if it has none', () => {
    const some = stage([saved(DAEMON, '0-15')]);
    some.memory.clear();
    assert.deepEqual(some.file.saves, [[]]);
    const affinity = processOf(DAEMON, '1');
    some.memory.recall([affinity]);
    assert.equal(mainOf(affinity), undefined);
    const none = stage();
    none.memory.clear();
    assert.deepEqual(none.file.saves, []);
  });
});

describe('saved masks: lost', () => {
  it('assumes the masks of a service, and reports that until they are restored', () => {
    const { file, memory } = stage(new Error('masks.json: torn'));
    const list = [processOf(DAEMON, '1')];
    const problems = memory.remember(list);
    assert.equal(problems[0]?.cause, 'masks-file');
    assert.match(problems[0]?.text ?? '', /^masks\.json: torn \(kept as \/state\/masks\.json\.corrupt\): .* \(0-63\);/);
    assert.equal(mainOf(list[0] as ProcessAffinity), '0-63');
    const later = processOf(DATABASE, '2');
    assert.deepEqual([memory.remember([...list, later]), mainOf(later)], [problems, '2'], 'it starts afterwards');
    assert.equal(file.loads, 1);
    memory.clear();
    assert.deepEqual(file.saves.at(-1), []);
    assert.deepEqual(memory.remember([later]), []);
  });

  it('assumes them in recall, too, and claims no other name of a file that could not be moved', () => {
    const { file, memory } = stage(new Error('masks.json: torn'));
    file.aside = undefined;
    const affinity = processOf(DAEMON, '1');
    assert.match(memory.recall([affinity])[0]?.text ?? '', /^masks\.json: torn: if the feature is turned off/);
    assert.equal(mainOf(affinity), '0-63');
    memory.clear();
    assert.deepEqual([file.saves, memory.recall([])], [[[]], []]);
  });

  it('reports a file that cannot be written until it can', () => {
    const { file, memory } = stage();
    file.fails = new Error('disk full');
    const problem = [{ cause: 'masks-file', text: 'disk full' }];
    const list = [processOf(DAEMON, '1')];
    for (let i = 0; i < 2; i++) assert.deepEqual(memory.remember(list), problem);
    memory.clear();
    assert.deepEqual(memory.recall([]), problem);
    file.fails = undefined;
    assert.deepEqual(memory.remember([...list, processOf(DATABASE)]), []);
    assert.equal(file.saves.length, 1);
    memory.clear();
    assert.deepEqual([file.saves.at(-1), memory.recall([])], [[], []]);
  });
});

describe('the file of saved masks', () => {
  const temp = tempDirectories();
  let path: string;
  beforeEach(() => {
    path = join(temp(), 'state/masks.json');
    createMasksFile(path, 'boot').save([saved(DAEMON, '0-7'), { ...DATABASE, originalMasks: masks('4', [ODD]) }]);
  });
  const ODD = { tid: 21, start: 210, cpus: CpuSet.parse('3') };

  it('has them for the next agent of the same boot, and is removed with the last one', () => {
    const [daemon, database] = createMasksFile(path, 'boot').load();
    assert.deepEqual([daemon?.pid, daemon?.originalMasks.main.toString()], [10, '0-7']);
    assert.deepEqual(
      database?.originalMasks.odd.map(({ tid, start, cpus }) => [tid, start, cpus.toString()]),
      [[21, 210, '3']],
    );
    assert.deepEqual(createMasksFile(path, 'another boot').load(), []);
    createMasksFile(path, 'boot').save([]);
    assert.deepEqual([existsSync(path), createMasksFile(path, 'boot').load()], [false, []]);
  });

  for (const [what, size] of [
    ['torn', 100],
    ['too large', 2 ** 30],
  ] as const) {
    it(`is lost if it is ${what}, and kept under another name`, () => {
      truncateSync(path, size);
      const file = createMasksFile(path, 'boot');
      assert.throws(() => file.load(), MasksFileError);
      assert.equal(file.putAside(), `${path}.corrupt`);
      assert.deepEqual([existsSync(path), existsSync(`${path}.corrupt`)], [false, true]);
    });
  }

  it('says what follows if it cannot be written', () => {
    const file = createMasksFile(join(path, 'below-a-file'), 'boot');
    assert.throws(() => file.save([saved(DAEMON, '0-7')]), /cannot save the threads’ original masks.*--state-dir/);
  });
});
