import type { Followed } from './follower.ts';
import type { Step } from './play.ts';
import type { Snapshot } from './snapshot.ts';

/** The actions of a kubelet with one configuration. */
export interface RecordedRound {
  readonly followed: Followed;
  readonly steps: readonly Step[];
}

/** The changes since the previous step: pods by name, null if deleted. */
type Change<T> = Readonly<Record<string, T | null>>;

interface Changes {
  readonly defaultSet?: string;
  readonly cpus?: Change<Snapshot['cpus'][string]>;
  readonly devices?: Change<Snapshot['devices'][string]>;
  readonly cells?: NonNullable<Snapshot['memory']>['cells'];
  readonly blocks?: Change<NonNullable<Snapshot['memory']>['blocks'][string]>;
}

const NOTHING: Snapshot = { defaultSet: '', cpus: {}, devices: {} };

/** Rounds as lines of JSON: one for each configuration, then one for each step, with its changes. */
export function writeRecording(rounds: readonly RecordedRound[]): string {
  return rounds
    .flatMap(({ followed, steps }) => {
      let before = NOTHING;
      const lines = steps.map(({ actual, ...done }) => {
        const line = JSON.stringify({ ...done, changed: changesOf(before, actual) });
        before = actual;
        return line;
      });
      return [JSON.stringify(followed), ...lines];
    })
    .map((line) => `${line}\n`)
    .join('');
}

/** Reads the output of `writeRecording`. @throws SyntaxError */
export function readRecording(text: string): RecordedRound[] {
  const rounds: { followed: Followed; steps: Step[] }[] = [];
  let before = NOTHING;
  for (const line of text.trim().split('\n')) {
    const entry = JSON.parse(line) as Followed | (Omit<Step, 'actual'> & { readonly changed: Changes });
    if ('round' in entry) {
      rounds.push({ followed: entry, steps: [] });
      before = NOTHING;
    } else {
      const { changed, ...done } = entry;
      before = changedBy(before, changed);
      rounds.at(-1)?.steps.push({ ...done, actual: before } as Step);
    }
  }
  return rounds;
}

function changesOf(before: Snapshot, after: Snapshot): Changes {
  const [cells, wereCells] = [after.memory?.cells, before.memory?.cells];
  return compact({
    defaultSet: after.defaultSet === before.defaultSet ? undefined : after.defaultSet,
    cpus: changedEntries(before.cpus, after.cpus),
    devices: changedEntries(before.devices, after.devices),
    cells: isSame(cells, wereCells) ? undefined : cells,
    blocks: changedEntries(before.memory?.blocks ?? {}, after.memory?.blocks ?? {}),
  });
}

function changedBy(before: Snapshot, { defaultSet, cpus, devices, cells, blocks }: Changes): Snapshot {
  const newCells = cells ?? before.memory?.cells;
  return {
    defaultSet: defaultSet ?? before.defaultSet,
    cpus: withChanges(before.cpus, cpus),
    devices: withChanges(before.devices, devices),
    ...(newCells && { memory: { cells: newCells, blocks: withChanges(before.memory?.blocks ?? {}, blocks) } }),
  };
}

function changedEntries<T>(before: Readonly<Record<string, T>>, after: Readonly<Record<string, T>>): Change<T> {
  const gone = Object.keys(before).filter((key) => !(key in after));
  const changed = Object.entries(after).filter(([key, value]) => !isSame(value, before[key]));
  return Object.fromEntries([...gone.map((key) => [key, null] as const), ...changed]);
}

/** Keys in order, as in every snapshot. */
function withChanges<T>(before: Readonly<Record<string, T>>, changes: Change<T> = {}): Record<string, T> {
  const entries = Object.entries({ ...before, ...changes }).filter((entry): entry is [string, T] => entry[1] !== null);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Without unchanged parts. */
function compact(changes: { readonly [K in keyof Changes]: Changes[K] | undefined }): Changes {
  const kept = Object.entries(changes).filter(([, value]) => value !== undefined && !isSame(value, {}));
  return Object.fromEntries(kept);
}
