import { type Playable, playable } from '../engine.ts';
import type { ForeignTarget } from '../target.ts';
import { admissionReview } from './admission-review.ts';
import { affinity, placement } from './annotations.ts';
import { checkpoint } from './checkpoint.ts';
import { cpuMask } from './cpu-mask.ts';
import { cpuSet } from './cpu-set.ts';
import { extenderArgs } from './extender-args.ts';
import { gate } from './gate.ts';
import { gateQuestion } from './gate-question.ts';
import { multus, nad } from './networks.ts';
import { nodeReport } from './node-report.ts';
import { ovsdbStream } from './ovsdb-stream.ts';

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
