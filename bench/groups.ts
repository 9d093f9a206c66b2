import { CLI_BENCHES } from './cli/index.ts';
import { CONSOLE_BENCHES } from './console/index.ts';
import { START_UP_NAMES, startUpAndMemory } from './daemons/index.ts';
import { HOSTILE_BENCHES } from './hostile/index.ts';
import { interference } from './interference/index.ts';
import { MODEL_BENCHES } from './model/index.ts';
import { NATIVE_BENCHES } from './native/index.ts';
import { NODE_AGENT_BENCHES } from './node-agent/index.ts';
import { outcome } from './outcome/index.ts';
import { races } from './races/index.ts';
import { SCHEDULER_PLUGIN_BENCHES } from './scheduler-plugin/index.ts';
import { ordinaryDuringOutage } from './scheduler-plugin/outage.ts';
import { besideRealScheduler } from './scheduler-plugin/real-scheduler.ts';
import { takeover } from './scheduler-plugin/takeover.ts';
import type { BenchGroup } from './support/settings.ts';
import { VM_PINNING_BENCHES } from './vm-pinning/index.ts';
import { WEBHOOK_BENCHES } from './webhook/index.ts';

/** Prefixes of each group's names, so that a prefix only runs the required groups. */
export const GROUPS: readonly BenchGroup[] = [
  { names: ['model.'], benches: MODEL_BENCHES },
  ...HOSTILE_BENCHES,
  ...WEBHOOK_BENCHES,
  ...CONSOLE_BENCHES,
  { names: ['cli.'], benches: CLI_BENCHES, alongside: 'counts' },
  { names: ['native.'], benches: NATIVE_BENCHES },
  { names: ['vm-pinning.'], benches: VM_PINNING_BENCHES },
  { names: START_UP_NAMES, benches: [startUpAndMemory] },
  // At the end, since other work disturbs the slowest hundredth of calls most: a quick run has finished most of its other lanes.
  ...SCHEDULER_PLUGIN_BENCHES,
  ...NODE_AGENT_BENCHES,
  { names: ['kube-scheduler.'], benches: [besideRealScheduler], onRequest: true },
  { names: ['outage.'], benches: [ordinaryDuringOutage], onRequest: true },
  { names: ['takeover.'], benches: [takeover], onRequest: true },
  { names: ['races.'], benches: [races], onRequest: true },
  { names: ['interference.'], benches: [interference], onRequest: true },
  { names: ['outcome.'], benches: [outcome], onRequest: true },
];
