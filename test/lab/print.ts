import type { Verdict } from './compare.ts';
import type { Outcome, Step } from './play.ts';
import { describePod } from './pods.ts';
import type { Snapshot } from './snapshot.ts';

/** One line for a step: the action and the kubelet's result. */
export function lineOf({ step, differences, unpredictable }: Outcome, seconds: number): string {
  const verdict = differences.length === 0 ? 'ok  ' : 'FAIL';
  const reason = unpredictable === undefined ? '' : ` (not predicted: ${unpredictable})`;
  return `${verdict} ${seconds.toFixed(1).padStart(5)} s  ${textOf(step)}${reason}`;
}

function textOf(step: Step): string {
  switch (step.action) {
    case 'create':
      return `create ${step.name}: ${describePod(step.pod)} -> ${outcomeText(step.name, step.verdict, step.actual)}`;
    case 'delete':
      return `delete ${step.name}`;
    case 'restart': {
      const all = Object.entries(step.verdicts).map(([name, verdict]) => {
        return `${name} ${outcomeText(name, verdict, step.actual)}`;
      });
      return `restart the kubelet -> ${all.join('; ')}`;
    }
  }
}

function outcomeText(name: string, verdict: Verdict, { cpus }: Snapshot): string {
  if (!verdict.admitted) return `${verdict.reason}: ${verdict.message}`;
  const given = Object.entries(cpus[name] ?? {}).map(([container, list]) => `${container} ${list}`);
  return given.length > 0 ? `CPUs of ${given.join(', ')}` : 'admitted';
}

/** A complete mismatch: enough to reproduce it on paper. */
export function mismatchOf({ step, before, differences }: Outcome): string {
  const { actual, report, ...done } = step;
  const parts = { differs: differences, step: done, before, actual, report };
  const lines = Object.entries(parts).map(([key, value]) => `       ${key.padEnd(9)} ${JSON.stringify(value)}`);
  return lines.join('\n');
}
