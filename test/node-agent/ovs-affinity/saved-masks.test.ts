import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { OvsProcess } from '../../../node-agent/open-vswitch/daemons.ts';
import type { SavedProcess } from '../../../node-agent/ovs-affinity/masks-file.ts';
import type { OriginalMasks } from '../../../node-agent/ovs-affinity/original-masks.ts';
import type { ProcessAffinity } from '../../../node-agent/ovs-affinity/process-affinity.ts';
import { createSavedMasks } from '../../../node-agent/ovs-affinity/saved-masks.ts';

const masks = (main: string, odd: OriginalMasks['odd'] = []): OriginalMasks => ({ main: CpuSet.parse(main), odd });

const DAEMON: OvsProcess = { name: 'ovs-vswitchd', role: 'daemon', pid: 10, start: 100 };
const MONITOR: OvsProcess = { name: 'ovs-vswitchd', role: 'monitor', pid: 9, start: 90 };
const DATABASE: OvsProcess = { name: 'ovsdb-server', role: 'daemon', pid: 20, start: 200 };
const DATABASE_MONITOR: OvsProcess = { name: 'ovsdb-server', role: 'monitor', pid: 19, start: 190 };
const saved = (process: OvsProcess, main: string): SavedProcess => ({ ...process, originalMasks: masks(main) });

/** A process of which nothing is remembered; by itself it remembers that its threads are on `now`. */
function processOf(process: OvsProcess, now = '0-7'): ProcessAffinity {
  let known: OriginalMasks | undefined;
  return {
    process,
    get originalMasks() {
      return known;
    },
    remember(given?: OriginalMasks) {
      known = given ?? masks(now);
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
      path: '/state/masks.json',
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
const shown = (list: readonly SavedProcess[] | undefined) =>
  list?.map(({ pid, start, originalMasks: { main } }) => `${pid}/${start} ${main}`);

describe('the masks that threads are given back: remembered', () => {
  it('where they are, saved once before anything is changed', () => {
    const { file, memory } = stage();
    const list = [processOf(DAEMON, '0-7'), processOf(DATABASE, '4')];
    assert.deepEqual(memory.remember(list), []);
    assert.deepEqual(list.map(mainOf), ['0-7', '4']);
    assert.deepEqual(shown(file.saves[0]), ['10/100 0-7', '20/200 4']);
    assert.deepEqual(memory.remember(list), []);
    assert.deepEqual([file.saves.length, file.loads], [1, 1]);
  });

  it('what an earlier agent saved goes before where they are now; of another process with the same id it does not', () => {
    const { memory } = stage([saved(DAEMON, '0-15'), saved({ ...DATABASE, start: 1 }, '9')]);
    const list = [processOf(DAEMON, '2'), processOf(DATABASE, '3')];
    memory.remember(list);
    assert.deepEqual(list.map(mainOf), ['0-15', '3']);
  });

  it('one that is met later is added; one that is known already is not asked again', () => {
    const { file, memory } = stage();
    const first = processOf(DAEMON, '0-7');
    memory.remember([first]);
    first.remember(masks('5'));
    memory.remember([first, processOf(DATABASE, '1')]);
    assert.deepEqual(shown(file.saves[1]), ['10/100 5', '20/200 1']);
  });

  it('a process that is not found now but lives keeps what is saved of it; one that has ended does not', () => {
    const { file, alive, memory } = stage([saved(MONITOR, '0-15'), saved(DATABASE_MONITOR, '0-3')]);
    alive.delete(DATABASE_MONITOR.pid);
    memory.remember([processOf(DATABASE, '1')]);
    assert.deepEqual(shown(file.saves[0]), ['20/200 1', '9/90 0-15']);
    alive.set(MONITOR.pid, 91);
    memory.remember([processOf(DAEMON, '2')]);
    assert.deepEqual(shown(file.saves[1]), ['10/100 2', '20/200 1']);
  });

  it('a process of which nothing can be seen is not saved', () => {
    const { file, memory } = stage();
    const gone = { ...processOf(DAEMON), remember: () => undefined } as ProcessAffinity;
    memory.remember([gone, processOf(DATABASE, '1')]);
    assert.deepEqual(shown(file.saves[0]), ['20/200 1']);
  });
});

describe('the masks that threads are given back: a daemon that its monitor has started again', () => {
  it('has its monitor’s from before that', () => {
    const { memory } = stage([saved(MONITOR, '0-15'), saved(DATABASE_MONITOR, '8')]);
    const list = [processOf(DAEMON, '1'), processOf(MONITOR, '1')];
    memory.remember(list);
    assert.deepEqual(list.map(mainOf), ['0-15', '0-15']);
  });

  it('odd threads of the monitor are not its own', () => {
    const odd = [{ tid: 9, start: 90, cpus: CpuSet.parse('3') }];
    const { memory } = stage([{ ...MONITOR, originalMasks: masks('0-15', odd) }]);
    const daemon = processOf(DAEMON, '1');
    memory.remember([daemon, processOf(MONITOR, '1')]);
    assert.deepEqual(daemon.originalMasks?.odd, []);
  });

  it('where the two are first seen together each has its own', () => {
    const { memory } = stage();
    const list = [processOf(DAEMON, '1'), processOf(MONITOR, '2')];
    memory.remember(list);
    assert.deepEqual(list.map(mainOf), ['1', '2']);
  });

  it('another daemon’s monitor is none of its, and neither is a monitor that is another process by now', () => {
    const { memory } = stage([saved(DATABASE_MONITOR, '8'), saved({ ...MONITOR, start: 1 }, '7')]);
    const list = [processOf(DAEMON, '1'), processOf(DATABASE_MONITOR, '2'), processOf(MONITOR, '3')];
    memory.remember(list);
    assert.deepEqual(list.map(mainOf), ['1', '8', '3']);
  });

  it('what is saved of itself goes before its monitor’s', () => {
    const { memory } = stage([saved(MONITOR, '0-15'), saved(DAEMON, '6')]);
    const list = [processOf(DAEMON, '1'), processOf(MONITOR, '1')];
    memory.remember(list);
    assert.deepEqual(list.map(mainOf), ['6', '0-15']);
  });

  it('a monitor has never another’s', () => {
    const { memory } = stage([saved(DAEMON, '6')]);
    const list = [processOf(DAEMON, '1'), processOf(MONITOR, '2')];
    memory.remember(list);
    assert.deepEqual(list.map(mainOf), ['6', '2']);
  });
});

describe('the masks that threads are given back: recalled', () => {
  it('what was saved, and nothing where nothing was; nothing is written', () => {
    const { file, memory } = stage([saved(DAEMON, '0-15')]);
    const list = [processOf(DAEMON, '1'), processOf(DATABASE, '2')];
    assert.deepEqual(memory.recall(list), []);
    assert.deepEqual(list.map(mainOf), ['0-15', undefined]);
    assert.deepEqual(file.saves, []);
  });

  it('what is in memory is newer than what is saved', () => {
    const { memory } = stage([saved(DAEMON, '0-15')]);
    const one = processOf(DAEMON);
    one.remember(masks('3'));
    memory.recall([one]);
    assert.equal(mainOf(one), '3');
  });

  it('forgotten where there was something, and the file is left alone where there was nothing', () => {
    const some = stage([saved(DAEMON, '0-15')]);
    some.memory.clear();
    assert.deepEqual(some.file.saves, [[]]);
    const list = [processOf(DAEMON, '1')];
    some.memory.recall(list);
    assert.deepEqual(list.map(mainOf), [undefined]);
    const none = stage();
    none.memory.clear();
    assert.deepEqual(none.file.saves, []);
  });
});

describe('the masks that threads are given back: lost', () => {
  it('they are assumed to be a service’s own; it is reported until they have been given back', () => {
    const { file, memory } = stage(new Error('masks.json: torn'));
    const list = [processOf(DAEMON, '1'), processOf(DATABASE, '2')];
    const problems = memory.remember(list);
    assert.deepEqual(
      problems.map(({ cause }) => cause),
      ['masks-file'],
    );
    assert.match(
      problems[0]?.text ?? '',
      /^masks\.json: torn \(kept as \/state\/masks\.json\.corrupt\): if the feature is turned off, threads get .* \(0-63\);/,
    );
    assert.deepEqual(list.map(mainOf), ['0-63', '0-63']);
    assert.deepEqual(memory.remember(list), problems);
    assert.equal(file.loads, 1);
    memory.clear();
    assert.deepEqual(file.saves.at(-1), []);
    assert.deepEqual(memory.remember([processOf(DATABASE, '2')]), []);
  });

  it('a file that cannot be put aside is not said to be', () => {
    const { file, memory } = stage(new Error('masks.json: torn'));
    file.aside = undefined;
    assert.match(memory.recall([])[0]?.text ?? '', /^masks\.json: torn: if the feature is turned off/);
  });

  it('recalled: assumed as well', () => {
    const { memory } = stage(new Error('torn'));
    const one = processOf(DAEMON, '1');
    assert.equal(memory.recall([one]).length, 1);
    assert.equal(mainOf(one), '0-63');
  });

  it('a process that starts afterwards is on CPUs of its own', () => {
    const { memory } = stage(new Error('torn'));
    memory.remember([processOf(DAEMON, '1')]);
    const later = processOf(DATABASE, '2');
    memory.remember([processOf(DAEMON, '1'), later]);
    assert.equal(mainOf(later), '2');
  });

  it('cleared where nothing but the loss is known, the file is written', () => {
    const { file, memory } = stage(new Error('torn'));
    memory.clear();
    assert.deepEqual(file.saves, [[]]);
    assert.deepEqual(memory.recall([]), []);
  });

  it('a file that cannot be written is reported until it can', () => {
    const { file, memory } = stage();
    file.fails = new Error('disk full');
    const list = [processOf(DAEMON, '1')];
    assert.deepEqual(memory.remember(list), [{ cause: 'masks-file', text: 'disk full' }]);
    assert.deepEqual(memory.remember(list), [{ cause: 'masks-file', text: 'disk full' }]);
    file.fails = undefined;
    assert.deepEqual(memory.remember([...list, processOf(DATABASE)]), []);
    assert.equal(file.saves.length, 1);
  });

  it('cleared while it cannot be written it is tried again the next time', () => {
    const { file, memory } = stage();
    file.fails = new Error('disk full');
    memory.remember([processOf(DAEMON, '1')]);
    memory.clear();
    assert.deepEqual(
      memory.recall([]).map(({ text }) => text),
      ['disk full'],
    );
    file.fails = undefined;
    memory.clear();
    assert.deepEqual(file.saves, [[]]);
    assert.deepEqual(memory.recall([]), []);
  });
});
