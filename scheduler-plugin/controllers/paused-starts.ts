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
import { WorkQueue } from './fair-queue.ts';

export interface PausedStartsOptions {
  readonly client: Pick<KubeClient, 'patch' | 'replace'>;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly active: () => boolean;
  readonly onResumed: () => void;
  readonly log: ExtenderLogger;
  readonly nowSeconds: () => number;
}

const MAX_CONCURRENT_VMIS = 8;
const RETRY_MILLISECONDS = 2000;
/** Without a report; then an Event names the silent agent. */
const SILENCE_SECONDS = 60;

interface Progress {
  /** It was unpaused here, whatever its status still shows. */
  resumed: boolean;
  lastText: string;
  /** When it was first seen to wait for its agent. */
  since: number | undefined;
  conflictsSince: number | undefined;
}

/** The next step follows from the VMI and the agent's report alone: another replica continues. */
export class PausedStarts {
  readonly #options: PausedStartsOptions;
  readonly #vms = new StartingVms();
  readonly #progress = new Map<string, Progress>();
  readonly #queue: WorkQueue;

  constructor(options: PausedStartsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue((key) => this.#reconcile(key), MAX_CONCURRENT_VMIS, options.log);
  }

  /** Undefined if it was deleted or is no longer relevant. */
  changed(key: string, instance: MaskedInstance | undefined): void {
    const before = this.#vms.put(key, instance);
    if (before && before.uid !== this.#vms.instances.get(key)?.uid) this.#progress.delete(before.uid);
    this.#queue.add(key);
  }

  /** Replaces the states of the launchers that a node's agent reports. */
  reported(node: string, pinnings: readonly ReportedPinning[]): void {
    for (const key of this.#vms.report(node, pinnings)) this.#queue.add(key);
  }

  requeueAll(): void {
    for (const key of this.#vms.instances.keys()) this.#queue.add(key);
  }

  get waiting(): number {
    return this.#vms.instances.size;
  }

  stop(): void {
    this.#queue.stop();
  }

  async #reconcile(key: string): Promise<void> {
    const { active, log } = this.#options;
    const vmi = this.#vms.instances.get(key);
    if (vmi === undefined || !active()) return;
    try {
      await this.#takeStep(key, vmi);
      const progress = this.#progress.get(vmi.uid);
      if (progress) progress.conflictsSince = undefined;
    } catch (err) {
      if (isNotFound(err)) return;
      const fields = { err, vmi: key, node: vmi.node };
      // The VMI has changed in the meantime, or KubeVirt cannot unpause it yet.
      if (isConflict(err) && this.#isBrief(vmi)) log.debug(fields, 'paused VM changed; checking again');
      else {
        const message = 'the VM stays paused: KubeVirt or the API server refused to resume it; retrying';
        if (this.#progressOf(vmi).resumed) log.debug(fields, 'recording a resumed VM failed; retrying');
        else this.#announce(vmi, { type: 'Warning', reason: 'ResumeFailed', message }, err);
      }
      this.#queue.addAfter(key, RETRY_MILLISECONDS);
    }
  }

  /** Whether conflicts began less than SILENCE_SECONDS ago. */
  #isBrief(vmi: MaskedInstance): boolean {
    const { nowSeconds } = this.#options;
    const progress = this.#progressOf(vmi);
    progress.conflictsSince ??= nowSeconds();
    return nowSeconds() - progress.conflictsSince < SILENCE_SECONDS;
  }

  async #takeStep(key: string, vmi: MaskedInstance): Promise<void> {
    const step = nextStep(vmi, this.#vms.pinningOf(vmi));
    switch (step.do) {
      case 'record':
        return this.#record(vmi, step.record, vmi.version);
      case 'unpause':
        return this.#unpause(vmi);
      case 'wait':
        return this.#wait(key, vmi);
      case 'tell': {
        const message = `the VM stays paused: its vCPUs are not pinned on node ${vmi.node} (${step.reason}): ${step.message}`;
        return this.#announce(vmi, { type: 'Warning', reason: 'PinningRefused', message });
      }
      case 'nothing':
    }
  }

  async #unpause(vmi: MaskedInstance): Promise<void> {
    const { client, onResumed } = this.#options;
    const progress = this.#progressOf(vmi);
    if (!progress.resumed) {
      // KubeVirt's subresource: conflict (409) while it is not Running, not Paused, or in a snapshot.
      await client.replace(`${pathOf('subresources.kubevirt.io', vmi)}/unpause`, {});
      progress.resumed = true;
      onResumed();
      const message = `every vCPU is on its CPUs on node ${vmi.node}: the VM runs`;
      this.#announce(vmi, { type: 'Normal', reason: 'ResumedAfterPinning', message });
    }
    await this.#record(vmi, { state: 'resumed' });
  }

  /** @param resourceVersion to write only if the VMI has not changed since it was read */
  async #record(vmi: MaskedInstance, next: PausedStart, resourceVersion?: string): Promise<void> {
    const annotations = { [PAUSED_START_ANNOTATION]: formatPausedStart(next) };
    // The uid protects a later VMI of the same name.
    const metadata = { uid: vmi.uid, annotations, ...(resourceVersion && { resourceVersion }) };
    await this.#options.client.patch(pathOf('kubevirt.io', vmi), 'application/merge-patch+json', { metadata });
  }

  #wait(key: string, vmi: MaskedInstance): void {
    const { nowSeconds } = this.#options;
    const progress = this.#progressOf(vmi);
    progress.since ??= nowSeconds();
    const left = progress.since + SILENCE_SECONDS - nowSeconds();
    if (left > 0) {
      this.#queue.addAfter(key, left * 1000);
      return;
    }
    const message = `the VM stays paused: in ${SILENCE_SECONDS} s, no report of node ${vmi.node} has said whether its vCPUs are pinned; check that its agent runs with --vm-pinning on`;
    this.#announce(vmi, { type: 'Warning', reason: 'PinningNotReported', message });
  }

  #progressOf({ uid }: MaskedInstance): Progress {
    const progress = this.#progress.get(uid) ?? {
      resumed: false,
      lastText: '',
      since: undefined,
      conflictsSince: undefined,
    };
    this.#progress.set(uid, progress);
    return progress;
  }

  /** @param err for the log; the Event is for users, who may not see the API server's texts */
  #announce(vmi: MaskedInstance, event: EventText, err?: unknown): void {
    const { events, log } = this.#options;
    const progress = this.#progressOf(vmi);
    const text = `${event.reason} ${event.message}${err === undefined ? '' : String(err)}`;
    if (progress.lastText === text) return;
    progress.lastText = text;
    const { namespace, name, node } = vmi;
    const fields = { vmi: `${namespace}/${name}`, node, event: event.reason, message: event.message, err };
    if (event.type === 'Normal') log.info(fields, 'paused VM resumed');
    else log.warn(fields, 'VM stays paused');
    events.record(vmiObject(namespace, vmi), event);
  }
}

function pathOf(group: string, { namespace, name }: MaskedInstance): string {
  return `/apis/${group}/v1/namespaces/${namespace}/virtualmachineinstances/${name}`;
}

export interface ReportedPinning extends PinningReport {
  readonly podUID: string;
}

export class StartingVms {
  readonly #instances = new Map<string, MaskedInstance>();
  readonly #keysByNode = new Map<string | undefined, Set<string>>();
  readonly #pinnings = new Map<string, ReadonlyMap<string, PinningReport>>();

  get instances(): ReadonlyMap<string, MaskedInstance> {
    return this.#instances;
  }

  /** @returns the previous instance */
  put(key: string, instance: MaskedInstance | undefined): MaskedInstance | undefined {
    const before = this.#instances.get(key);
    this.#instances.delete(key);
    this.#keysByNode.get(before?.node)?.delete(key);
    if (instance?.record === undefined || instance.record.state === 'resumed') return before;
    this.#instances.set(key, instance);
    const keys = this.#keysByNode.get(instance.node) ?? new Set();
    this.#keysByNode.set(instance.node, keys.add(key));
    return before;
  }

  /** @returns the keys of the node's VMIs */
  report(node: string, pinnings: readonly ReportedPinning[]): ReadonlySet<string> {
    if (pinnings.length === 0) this.#pinnings.delete(node);
    else this.#pinnings.set(node, new Map(pinnings.map((pinning) => [pinning.podUID, pinning])));
    return this.#keysByNode.get(node) ?? new Set();
  }

  /** By the agent of the node where the VM runs: a migrating VM has another launcher. */
  pinningOf({ node = '', pods }: MaskedInstance): PinningReport | undefined {
    const pinnings = this.#pinnings.get(node);
    const pod = Object.keys(pods).find((uid) => pods[uid] === node && pinnings?.has(uid));
    return pod === undefined ? undefined : pinnings?.get(pod);
  }
}
