import { type Playable, playable } from '../engine.ts';
import type { ForeignTarget } from '../target.ts';
import { admissionReview } from './admission-review.ts';
import { checkpoint } from './checkpoint.ts';
import { cpuMask, cpuSet } from './cpus.ts';
import { extenderArgs } from './extender-args.ts';
import { gate } from './gate.ts';
import { affinity, multus, nad, placement } from './networks.ts';
import { nodeReport } from './node-report.ts';
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
export const FOREIGN_TARGETS: readonly ForeignTarget[] = [gate];
