import { type Playable, playable } from '../engine.ts';
import type { ForeignTarget } from '../target.ts';
import { admissionReview } from './admission-review.ts';
import { checkpoint } from './checkpoint.ts';
import { cpuMask } from './cpu-mask.ts';
import { cpuSet } from './cpu-set.ts';
import { extenderArgs } from './extender-args.ts';
import { gate } from './gate.ts';
import { multus, nad } from './networks.ts';
import { novaConf } from './nova-conf.ts';
import { ovsdbStream } from './ovsdb-stream.ts';

export const TARGETS: readonly Playable[] = [
  playable(cpuSet),
  playable(cpuMask),
  playable(multus),
  playable(nad),
  playable(ovsdbStream),
  playable(checkpoint),
  playable(admissionReview),
  playable(extenderArgs),
  playable(novaConf),
];
export const FOREIGN_TARGETS: readonly ForeignTarget[] = [gate];
