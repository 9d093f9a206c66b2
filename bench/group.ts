import { exitOnSignals } from '../test/support/command-line.ts';
import type { GroupReport, GroupRun } from './apart.ts';
import { GROUPS } from './groups.ts';
import { type BenchResult, measureQuickly } from './support/timing.ts';

// The process of one group (apart.ts): measures it and sends the results to its parent.
exitOnSignals();
const { group, prefix, quick, ...settings } = JSON.parse(process.argv[2] ?? '{}') as GroupRun;
if (quick) measureQuickly();
const asked = (name: string) => name.startsWith(prefix);
const results: BenchResult[] = [];
try {
  for (const bench of (await GROUPS[group]?.load()) ?? []) {
    results.push(...[await bench({ ...settings, asked })].flat().filter(({ name }) => asked(name)));
  }
  process.send?.({ results } satisfies GroupReport, () => process.exit(0));
} catch (error) {
  process.send?.({ error: (error as Error).message } satisfies GroupReport, () => process.exit(1));
}
