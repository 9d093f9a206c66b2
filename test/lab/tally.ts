import type { Outcome } from './play.ts';

interface Row {
  pods: number;
  steps: number;
  notPredicted: number;
  mispredictions: number;
  skipped: number;
}

/** The results of the rounds, by version of the kubelet. */
export type Tally = ReturnType<typeof createTally>;

type Counted = Pick<Outcome, 'differences' | 'unpredictable'> & { readonly step: { readonly action: string } };

export function createTally() {
  const rows = new Map<string, Row>();
  const rowOf = (version: string): Row => {
    const row = rows.get(version) ?? { pods: 0, steps: 0, notPredicted: 0, mispredictions: 0, skipped: 0 };
    rows.set(version, row);
    return row;
  };
  const sum = (of: (row: Row) => number) => [...rows.values()].reduce((total, row) => total + of(row), 0);
  let passed = 0;
  return {
    count(version: string, { step, differences, unpredictable }: Counted) {
      const row = rowOf(version);
      row.steps++;
      if (step.action === 'create') row.pods++;
      if (unpredictable !== undefined) row.notPredicted++;
      if (differences.length > 0) row.mispredictions++;
      else if (step.action === 'create' && unpredictable === undefined) passed++;
    },
    /** One round that is not predicted for this version, or lacks a part. */
    skip(version: string) {
      rowOf(version).skipped++;
    },
    get passed() {
      return passed;
    },
    get failed() {
      return sum((row) => row.mispredictions);
    },
    /** Rows for users; empty if no round was played. */
    table: (): readonly string[] => {
      if (rows.size === 0) return [];
      const lines = [...rows].map(([version, { pods, steps, notPredicted, mispredictions, skipped }]) =>
        [version, pods, steps, notPredicted, mispredictions, skipped].map(String),
      );
      return columns([['kubelet', 'pods', 'steps', 'not predicted', 'mispredictions', 'rounds skipped'], ...lines]);
    },
  };
}

function columns(lines: readonly (readonly string[])[]): string[] {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  return lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
}
