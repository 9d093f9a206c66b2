import type { HostMemory } from '../../hardware/memory.ts';
import type { HostDescription } from '../../model/host.ts';
import type { HostReport } from '../../model/kubelet/host-report.ts';
import type { Step } from './play.ts';
import type { Round } from './rounds.ts';
import { type Snapshot, sorted } from './snapshot.ts';

export interface RecordedNode {
  readonly version: string;
  readonly host: HostDescription;
  readonly memory?: HostMemory;
  readonly offline?: string;
  readonly round: Round;
  /** In older recordings, the version from which this kubelet has a change that its version does not have. */
  readonly behavesLike?: string;
}

export interface RecordedRound {
  readonly node: RecordedNode;
  readonly report?: HostReport | undefined;
  readonly steps: readonly Step[];
}

type FlatSnapshot = Omit<Snapshot, 'memory'> & Partial<NonNullable<Snapshot['memory']>>;

const NOTHING: FlatSnapshot = { defaultSet: '', cpus: {}, devices: {} };

const flat = ({ memory, ...others }: Snapshot): FlatSnapshot => ({ ...others, ...memory });

export function writeRecording(rounds: readonly RecordedRound[]): string {
  return rounds
    .flatMap(({ node, report: initial, steps }) => {
      let before = NOTHING;
      let reportBefore = initial;
      const lines = steps.map(({ actual, report, ...done }) => {
        const reported = report && changedParts(reportBefore, report);
        const line = JSON.stringify({
          ...done,
          changed: changedParts(before, flat(actual)),
          ...(report && { reported }),
        });
        before = flat(actual);
        reportBefore = report;
        return line;
      });
      return [JSON.stringify({ ...node, ...(initial && { report: initial }) }), ...lines];
    })
    .map((line) => `${line}\n`)
    .join('');
}

/** Reads the output of `writeRecording`. @throws SyntaxError */
export function readRecording(text: string): RecordedRound[] {
  const rounds: (RecordedRound & { readonly steps: Step[] })[] = [];
  let before = NOTHING;
  let reportBefore: HostReport | undefined;
  for (const line of text.trim().split('\n')) {
    const entry = JSON.parse(line) as Header | StepLine;
    if ('round' in entry) {
      const { report, ...node } = entry;
      rounds.push({ node, ...(report && { report }), steps: [] });
      before = NOTHING;
      reportBefore = report;
    } else {
      const { changed, reported, ...done } = entry;
      before = withParts(before, changed) as FlatSnapshot;
      if (reported !== undefined) reportBefore = withParts(reportBefore, reported) as HostReport;
      const { cells, blocks = {}, ...others } = before;
      const actual = sorted({ ...others, ...(cells && { memory: { cells, blocks } }) });
      rounds.at(-1)?.steps.push({ ...done, actual, ...(reported !== undefined && { report: reportBefore }) } as Step);
    }
  }
  return rounds;
}

type Header = RecordedNode & { readonly report?: HostReport };
type StepLine = Omit<Step, 'actual' | 'report'> & { readonly changed: unknown; readonly reported?: unknown };

/** What changed, for `withParts`: of objects and lists of the same length only entries, null for a removed one. */
function changedParts(before: unknown, after: unknown): unknown {
  if (!isContainer(before) || !isContainer(after) || !isSameKind(before, after)) return after;
  const gone = Object.keys(before).filter((key) => !(key in after));
  const changed = Object.entries(after).filter(([key, value]) => !isSame(value, before[key]));
  return Object.fromEntries([
    ...gone.map((key) => [key, null] as const),
    ...changed.map(([key, value]) => [key, changedParts(before[key], value)] as const),
  ]);
}

function withParts(before: unknown, changes: unknown): unknown {
  if (!isContainer(before) || !isContainer(changes) || Array.isArray(changes)) return changes;
  const after: Record<string, unknown> = Array.isArray(before) ? Object.assign([], before) : { ...before };
  for (const [key, value] of Object.entries(changes)) {
    if (value === null) delete after[key];
    else after[key] = withParts(before[key], value);
  }
  return after;
}

type Container = Readonly<Record<string, unknown>>;

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}

function isSameKind(before: Container, after: Container): boolean {
  if (Array.isArray(before) && Array.isArray(after)) return before.length === after.length;
  return !Array.isArray(before) && !Array.isArray(after);
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
