import { execFileSync } from 'node:child_process';
import { fuzzGate } from '../../native/support.ts';
import { type ForeignTarget, type Playable, playable } from '../engine.ts';
import { admissionReview } from './admission-review.ts';
import { cpuMask, cpuSet } from './cpus.ts';
import { extenderArgs } from './extender-args.ts';
import { affinity, multus, nad, placement } from './networks.ts';
import { checkpoint, nodeReport } from './reports.ts';
import { gateQuestion, ovsdbStream } from './streams.ts';

export const TARGETS: readonly Playable[] = [
  playable(cpuSet),
  playable(cpuMask),
  playable(multus),
  playable(affinity),
  playable(placement),
  playable(nad),
  playable(nodeReport),
  playable(ovsdbStream),
  playable(checkpoint),
  playable(gateQuestion),
  playable(admissionReview),
  playable(extenderArgs),
];

const gate: ForeignTarget = {
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

export const FOREIGN_TARGETS: readonly ForeignTarget[] = [gate];
