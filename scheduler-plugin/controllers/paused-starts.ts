import { isConflict, isNotFound, type KubeClient } from '../../kube/client.ts';
import type { EventRecorder, EventText } from '../../kube/events.ts';
import {
  formatPausedStart,
  nextStep,
  type PausedStart,
  type PinningReport,
} from '../../model/launcher/paused-start.ts';
import { vmiObject } from '../../model/launcher/recognize.ts';
import { PAUSED_START_ANNOTATION } from '../../model/names.ts';
import type { MaskedInstance } from '../cluster/masked-vms.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';
import { createKeyedWork } from './fair-queue.ts';

export interface PausedStartsOptions {
  readonly writer: StartWriter;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly active: () => boolean;
  /** Called when a VM was resumed. */
  readonly onResumed: () => void;
  readonly log: ExtenderLogger;
  /** Monotonic seconds. */
  readonly now: () => number;
  /** Seconds without a report after which an Event names the silent agent. */
  readonly silence?: number;
}

/** Maximum VMs to work on at a time. */
const AT_A_TIME = 8;
/** Milliseconds until a failed call is retried. */
const RETRY = 2000;
const SILENCE = 60;

/** What this process knows about a VMI in addition to its annotations. */
interface Progress {
  /** It was unpaused here, whatever its status still shows. */
  resumed: boolean;
  /** The last Event. */
  lastText: string;
  /** When it was first seen to wait for its agent. */
  since: number | undefined;
}

/**
 * Resumes VMs with CPU masks that start paused, once their agents report that they are pinned. The next step follows
 * from the VMI and the report alone (model/launcher/paused-start.ts), so another replica continues where this one
 * ended.
 */
export function createPausedStarts(options: PausedStartsOptions) {
  const { writer, active, onResumed, log, now, silence = SILENCE } = options;
  const vms = createStartingVms();
  const progress = new Map<string, Progress>();
  const tell = (vmi: MaskedInstance, event: EventText) => announce(vmi, event, progressOf(vmi), options);

  function progressOf({ uid }: MaskedInstance): Progress {
    const known = progress.get(uid) ?? { resumed: false, lastText: '', since: undefined };
    progress.set(uid, known);
    return known;
  }

  const unpause = async (vmi: MaskedInstance): Promise<void> => {
    const known = progressOf(vmi);
    if (!known.resumed) {
      await writer.unpause(vmi);
      known.resumed = true;
      onResumed();
      const message = `every vCPU is on its CPUs on node ${vmi.node}: the VM runs`;
      tell(vmi, { type: 'Normal', reason: 'ResumedAfterPinning', message });
    }
    await writer.record(vmi, { state: 'resumed' }, 'whatever it is');
  };

  const wait = (key: string, vmi: MaskedInstance): void => {
    const known = progressOf(vmi);
    known.since ??= now();
    const left = known.since + silence - now();
    if (left > 0) {
      starts.takeLater(key, left * 1000);
      return;
    }
    const message = `the VM stays paused: the agent of node ${vmi.node} has not reported in ${silence} s whether its vCPUs are pinned; check that it runs with --vm-pinning on`;
    tell(vmi, { type: 'Warning', reason: 'PinningNotReported', message });
  };

  const step = async (key: string, vmi: MaskedInstance): Promise<void> => {
    const found = nextStep(vmi, vms.pinningOf(vmi));
    switch (found.do) {
      case 'record':
        return writer.record(vmi, found.record, 'as seen');
      case 'unpause':
        return unpause(vmi);
      case 'wait':
        return wait(key, vmi);
      case 'tell': {
        const why = `the VM stays paused: its vCPUs are not pinned on node ${vmi.node} (${found.reason}): ${found.message}`;
        return tell(vmi, { type: 'Warning', reason: 'PinningRefused', message: why });
      }
      case 'nothing':
    }
  };

  const work = async (key: string): Promise<void> => {
    const vmi = vms.instances.get(key);
    if (vmi === undefined || !active()) return;
    try {
      await step(key, vmi);
    } catch (err) {
      if (isNotFound(err)) return;
      // The VMI has changed in the meantime, or KubeVirt cannot unpause it yet.
      const ordinary = isConflict(err);
      const where = { err, vmi: key, node: vmi.node };
      if (ordinary) log.debug(where, 'paused VM changed; checking again');
      else {
        log.debug(where, 'resuming a paused VM failed; retrying');
        const message = 'the VM stays paused: KubeVirt or the API server refused to resume it; retrying';
        if (!progressOf(vmi).resumed) tell(vmi, { type: 'Warning', reason: 'ResumeFailed', message });
      }
      starts.takeLater(key, RETRY);
    }
  };
  const starts = createKeyedWork(work, AT_A_TIME);

  return {
    /** Undefined if it was deleted or is no longer relevant. */
    changed(key: string, instance: MaskedInstance | undefined) {
      const before = vms.put(key, instance);
      if (before && before.uid !== vms.instances.get(key)?.uid) progress.delete(before.uid);
      starts.take(key);
    },
    /** Replaces the states of the launchers that a node's agent reports. */
    reported(node: string, pinnings: readonly ReportedPinning[]) {
      for (const key of vms.report(node, pinnings)) starts.take(key);
    },
    /** Checks every VM, when this replica has become the active one. */
    lookAtAll() {
      for (const key of vms.instances.keys()) starts.take(key);
    },
    /** Number of VMs that wait to be pinned. */
    get waiting() {
      return vms.instances.size;
    },
    stop: () => starts.stop(),
  };
}

function announce(
  vmi: MaskedInstance,
  event: EventText,
  known: Progress,
  { events, log }: Pick<PausedStartsOptions, 'events' | 'log'>,
): void {
  const text = `${event.reason} ${event.message}`;
  if (known.lastText === text) return;
  known.lastText = text;
  const { namespace, name, node } = vmi;
  const fields = { vmi: `${namespace}/${name}`, node, reason: event.reason, text: event.message };
  if (event.type === 'Normal') log.info(fields, 'paused VM resumed');
  else log.warn(fields, 'VM stays paused');
  events.record(vmiObject(namespace, vmi), event);
}

/** Writes the progress of a paused start. @throws KubeError */
export type StartWriter = ReturnType<typeof createStartWriter>;

export function createStartWriter(client: Pick<KubeClient, 'patch' | 'replace'>) {
  const path = (group: string, { namespace, name }: MaskedInstance) =>
    `/apis/${group}/v1/namespaces/${namespace}/virtualmachineinstances/${name}`;
  return {
    /**
     * Records the progress.
     * @param seen `as seen` to write only if the VMI has not changed since it was read
     */
    async record(vmi: MaskedInstance, next: PausedStart, seen: 'as seen' | 'whatever it is') {
      const annotations = { [PAUSED_START_ANNOTATION]: formatPausedStart(next) };
      // The uid protects a later VMI of the same name.
      const metadata = { uid: vmi.uid, annotations, ...(seen === 'as seen' && { resourceVersion: vmi.version }) };
      await client.patch(path('kubevirt.io', vmi), 'application/merge-patch+json', { metadata });
    },
    /** Unpauses through KubeVirt's subresource: conflict (409) while it is not Running, not Paused, or in a snapshot. */
    async unpause(vmi: MaskedInstance) {
      await client.replace(`${path('subresources.kubevirt.io', vmi)}/unpause`, {});
    },
  };
}

/** The state of one launcher in an agent's report. */
export interface ReportedPinning extends PinningReport {
  readonly podUID: string;
}

/** The VMIs that are still starting, and the reported states of their launchers. */
export function createStartingVms() {
  const instances = new Map<string, MaskedInstance>();
  const keysByNode = new Map<string | undefined, Set<string>>();
  const pinnings = new Map<string, ReadonlyMap<string, PinningReport>>();
  return {
    instances: instances as ReadonlyMap<string, MaskedInstance>,

    /** @returns the previous instance */
    put(key: string, instance: MaskedInstance | undefined): MaskedInstance | undefined {
      const before = instances.get(key);
      instances.delete(key);
      keysByNode.get(before?.node)?.delete(key);
      if (instance?.record === undefined || instance.record.state === 'resumed') return before;
      instances.set(key, instance);
      const there = keysByNode.get(instance.node) ?? new Set();
      keysByNode.set(instance.node, there.add(key));
      return before;
    },

    /** @returns the keys of the node's VMIs */
    report(node: string, list: readonly ReportedPinning[]): ReadonlySet<string> {
      if (list.length === 0) pinnings.delete(node);
      else pinnings.set(node, new Map(list.map((one) => [one.podUID, one])));
      return keysByNode.get(node) ?? new Set();
    },

    /**
     * The state of the launcher on the node where the VM runs, by that node's agent: a migrating VM has another
     * launcher.
     */
    pinningOf({ node = '', pods }: MaskedInstance): PinningReport | undefined {
      const there = pinnings.get(node);
      const pod = Object.keys(pods).find((uid) => pods[uid] === node && there?.has(uid));
      return pod === undefined ? undefined : there?.get(pod);
    },
  };
}
