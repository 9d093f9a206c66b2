import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFollower, type Follower } from './follower.ts';
import type { Step } from './play.ts';
import type { DrawnPod } from './pods.ts';
import { readRecording } from './recording.ts';

/**
 * The answers of a real kubelet, step by step, as recorded by `npm run test:lab -- --record FILE`: compared with the
 * model again without a lab.
 */
const FOLDER = join(import.meta.dirname, 'recorded');

describe('recorded answers of a real kubelet', () => {
  for (const file of readdirSync(FOLDER).sort()) {
    for (const { followed, steps } of readRecording(readFileSync(join(FOLDER, file), 'utf8'))) {
      it(`match the model: ${file}, ${followed.round.name}, kubelet ${followed.version}: ${steps.length} steps`, () => {
        const follower = createFollower(followed);
        const held: Held = new Map();
        for (const step of steps) assert.deepEqual(repeat(follower, held, step), [], JSON.stringify(step));
      });
    }
  }
});

/** The existing pods by name: a restarted kubelet judges all of them. */
type Held = Map<string, DrawnPod>;

function repeat(follower: Follower, held: Held, step: Step): string[] {
  switch (step.action) {
    case 'create': {
      if (step.verdict.admitted) held.set(step.name, step.pod);
      return follower.admit(step.name, follower.predict(step.name, step.pod), step.verdict, step.actual);
    }
    case 'delete':
      held.delete(step.name);
      return follower.remove(step.name, step.actual);
    case 'restart': {
      const found = follower.restart(follower.predictRestart(held), step.verdicts, step.actual);
      for (const [name, { admitted }] of Object.entries(step.verdicts)) if (!admitted) held.delete(name);
      return found;
    }
  }
}
