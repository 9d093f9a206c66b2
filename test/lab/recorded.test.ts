import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compareStep, forecastOf, podsAfter } from './predict.ts';
import { type RecordedRound, readRecording } from './recording.ts';
import { emptySnapshot, expectedReport, type RunningPods } from './report.ts';

/**
 * The answers of a real kubelet, step by step, as recorded by `npm run test:lab -- --record FILE`: compared without a
 * lab with what the model predicts from the agent's report of the step before. Older recordings have no report; the
 * agent's code builds it from the kubelet's files in the recording.
 */
const FOLDER = join(import.meta.dirname, 'recorded');
const PAGE = join(import.meta.dirname, '../../docs/reference/compatibility.md');

describe('recorded answers of a real kubelet', () => {
  const pods = new Map<string, number>();
  for (const file of readdirSync(FOLDER).sort()) {
    for (const recorded of readRecording(readFileSync(join(FOLDER, file), 'utf8'))) {
      const { round, version } = recorded.node;
      const created = recorded.steps.filter(({ action }) => action === 'create').length;
      pods.set(version.slice(1), (pods.get(version.slice(1)) ?? 0) + created);
      it(`match the model: ${file}, ${round.name}, kubelet ${version}: ${recorded.steps.length} steps`, () => {
        assert.deepEqual(mispredictions(recorded), []);
      });
    }
  }

  it('are counted on the page', () => {
    // A note in brackets may say what earlier predictions missed.
    const rows = readFileSync(PAGE, 'utf8').matchAll(/^\| (1\.\d+\.\d+) +\| (\d+) +\| 0(?: \([^|]*\))? +\| 0 /gm);
    const listed = [...rows].map(([, version = '', count]) => [version, Number(count)]);
    assert.deepEqual(listed, [...pods].sort());
  });
});

function mispredictions({ node, report, steps }: RecordedRound): string[] {
  const texts: string[] = [];
  let pods: RunningPods = new Map();
  let snapshot = emptySnapshot(node);
  let published = report ?? expectedReport(node, snapshot, pods);
  for (const step of steps) {
    const { differences, unpredictable } = compareStep(forecastOf(published), step, pods);
    const faults = unpredictable === undefined ? differences : [`not predicted: ${unpredictable}`];
    if (faults.length > 0) texts.push(`${faults.join()}: ${JSON.stringify(step)}`);
    pods = podsAfter(pods, step);
    snapshot = step.actual;
    published = step.report ?? expectedReport(node, snapshot, pods);
  }
  return texts;
}
