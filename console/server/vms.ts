import * as z from 'zod';
import { migrationState } from '../../diagnosis/objects.ts';
import { vmState } from '../../diagnosis/state.ts';
import { instanceFacts, machineFacts } from '../../diagnosis/vm-facts.ts';
import { list, message, name, reason, word } from '../../kube/bounds.ts';
import { condition, observedMeta, orUndefined } from '../../kube/resources.ts';
import type { PodContent } from '../data/wire.ts';
import { shownState } from './pods.ts';

const metadata = observedMeta.extend({ creationTimestamp: word.nullish() });
const boundedCondition = condition.extend({ reason: reason.nullish(), message: orUndefined(message) });
const conditions = list(boundedCondition, 256).nullish();
const startFailure = z.object({ consecutiveFailCount: z.number().nullish(), retryAfterTimestamp: word.nullish() });

export const watchedMachine = z.object({
  metadata,
  spec: z.object({ running: z.boolean().nullish(), runStrategy: word.nullish() }),
  status: z
    .object({
      created: z.boolean().nullish(),
      printableStatus: word.nullish(),
      startFailure: startFailure.nullish(),
      conditions,
    })
    .nullish(),
});

export const watchedInstance = z.object({
  metadata,
  status: z
    .object({
      phase: word.nullish(),
      reason: reason.nullish(),
      nodeName: name.nullish(),
      evacuationNodeName: name.nullish(),
      migrationState,
      conditions,
    })
    .nullish(),
});

export type WaitingMachine = NonNullable<ReturnType<typeof waitingMachine>>;
export type WatchedInstance = NonNullable<ReturnType<typeof shownInstance>>;

/** Undefined for a VM with an instance, or that should not run, unless it must be restarted: nearly all are not stored. */
export function waitingMachine({ metadata, spec, status }: z.infer<typeof watchedMachine>) {
  const facts = machineFacts({ spec, status }, Date.now());
  const waits = facts.shouldRun && status?.created !== true;
  if (!waits && facts.restartRequired === undefined) return undefined;
  return { facts, waits, since: metadata.creationTimestamp ?? undefined };
}

/** Undefined for a VMI that has a launcher and runs as usual, and never migrated: most of them, which are not stored. */
export function shownInstance({ metadata, status }: z.infer<typeof watchedInstance>) {
  const facts = instanceFacts({ metadata, status });
  // KubeVirt's phase of a VMI is Pending or not set until it has created the launcher.
  const isWithoutLauncher = facts.phase === '' || facts.phase === 'Pending';
  const node = status?.nodeName ?? '';
  const recorded = status?.migrationState ?? undefined;
  const isSpecial =
    facts.pause !== undefined || facts.changes?.length !== 0 || facts.evacuatedFrom !== undefined || facts.deleting;
  if (!isWithoutLauncher && ((!isSpecial && recorded === undefined) || node === '')) return undefined;
  return { facts, recorded, node, isWithoutLauncher, since: metadata.creationTimestamp ?? undefined };
}

/** Seconds that KubeVirt may take to create the instance and launcher of a new VM before the page lists it. */
const START_SECONDS = 5;

export function isSettled({ reason, since }: PodContent): boolean {
  if (reason !== 'NoInstance' && reason !== 'NoLauncher') return true;
  return !(Date.now() - Date.parse(since ?? '') < START_SECONDS * 1000);
}

/** As in `plumbline status`. @param key namespace/name @returns undefined if it has a launcher or waits for nothing */
export function vmContent(
  key: string,
  machine: WaitingMachine | undefined,
  instance: WatchedInstance | undefined,
): PodContent | undefined {
  const vmi = instance?.isWithoutLauncher ? instance : undefined;
  if (machine?.waits !== true && vmi === undefined) return undefined;
  const [namespace = '', name = ''] = key.split('/', 2);
  const state = vmState({ namespace, name, kind: undefined, machine: machine?.facts, instance: vmi?.facts }, []);
  if (state.state !== 'waiting' && state.state !== 'failed') return undefined;
  const common = { namespace, name, vm: name, noLauncher: true as const, cpus: 0, wholeCores: false, networks: [] };
  return { ...common, since: (machine ?? vmi)?.since, ...shownState(state) };
}
