import { execFileSync } from 'node:child_process';
import { fuzzGate } from '../../native/fuzz.ts';
import type { ForeignTarget } from '../target.ts';

export const gate: ForeignTarget = {
  name: 'gate',
  about: 'the CNI plugin reads any standard input and environment without a report of the sanitizers',
  missing() {
    try {
      for (const program of ['gcc', 'make']) execFileSync(program, ['--version'], { stdio: 'ignore' });
      return undefined;
    } catch {
      return 'gcc or make is missing (npm run test:setup)';
    }
  },
  play(runs, seed) {
    const { calls, problems } = fuzzGate(runs, seed);
    return { runs: calls, problems };
  },
};
