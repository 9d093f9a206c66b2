import { isConflict, isNotFound } from '../../kube/client.ts';
import type { EventText } from '../../kube/events.ts';
import {
  formatPausedStart,
  nextStep,
  type PausedStart,
  type PinningReport,
} from '../../model/launcher/paused-start.ts';
import { vmiObject } from '../../model/launcher/recognize.ts';
import { PAUSED_START_ANNOTATION } from '../../model/names.ts';
import { logFailure } from '../../runtime/log.ts';
import { WorkQueue } from '../../runtime/work-queue.ts';
import type { MaskedInstance } from '../cluster/masked-vms.ts';
import type { ExtenderContext } from '../telemetry/context.ts';

interface PausedStartsOptions extends Pick<ExtenderContext, 'client' | 'events' | 'active' | 'log' | 'nowSeconds'> {
  readonly onResumed: () => void;
}

const MAX_CONCURRENT_VMIS = 8;
const RETRY_MILLISECONDS = 2000;
/** Without a report; then an Event names the silent agent. */
const SILENCE_SECONDS = 60;

class Progress {
  /** It was unpaused here, whatever its status still shows. */
  resumed = false;
  lastText = '';
  /** When it was first seen to wait for its agent. */
  since: number | undefined;
  conflictsSince: number | undefined;
}

/** The next step follows from the VMI and the agent's report alone: another replica continues. */
export class PausedStarts {
  readonly #options: PausedStartsOptions;
  /** VMIs whose start is not over, by key. */
  readonly #vmis = new Map<string, MaskedInstance>();
  /** By node, and by the uid of the launcher. */
  readonly #pinnings = new Map<string, ReadonlyMap<string, PinningReport>>();
  /** By the uid of the VMI. */
  readonly #progress = new Map<string, Progress>();
  readonly #queue: WorkQueue<string>;

  constructor(options: PausedStartsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      work: async (key) => {
        await this.#reconcile(key);
        return 'done';
      },
      maxConcurrent: MAX_CONCURRENT_VMIS,
      onFault: logFailure(options.log),
    });
  }

  /** Undefined if it was deleted or is no longer relevant. */
  changed(key: string, instance: MaskedInstance | undefined): void {
    const before = this.#vmis.get(key);
    if (instance?.record === undefined || instance.record.state === 'resumed') this.#vmis.delete(key);
    else this.#vmis.set(key, instance);
    if (before && before.uid !== this.#vmis.get(key)?.uid) this.#progress.delete(before.uid);
    this.#queue.add(key, key);
  }

  /** Replaces the states of the launchers that a node's agent reports. */
  reported(node: string, pinnings: readonly ReportedPinning[]): void {
    if (pinnings.length === 0) this.#pinnings.delete(node);
    else this.#pinnings.set(node, new Map(pinnings.map((pinning) => [pinning.podUID, pinning])));
    for (const [key, vmi] of this.#vmis) if (vmi.node === node) this.#queue.add(key, key);
  }

  requeueAll(): void {
    for (const key of this.#vmis.keys()) this.#queue.add(key, key);
  }

  get waiting(): number {
    return this.#vmis.size;
  }

  stop(): void {
    void this.#queue.stop();
  }

  async #reconcile(key: string): Promise<void> {
    const { active, log } = this.#options;
    const vmi = this.#vmis.get(key);
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
      this.#queue.addAfter(key, key, RETRY_MILLISECONDS);
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
    const step = nextStep(vmi, this.#pinningOf(vmi));
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

  /** By the agent of the node where the VM runs: a migrating VM has another launcher. */
  #pinningOf({ node = '', pods }: MaskedInstance): PinningReport | undefined {
    const pinnings = this.#pinnings.get(node);
    const pod = Object.keys(pods).find((uid) => pods[uid] === node && pinnings?.has(uid));
    return pod === undefined ? undefined : pinnings?.get(pod);
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
    const message = `the VM stays paused: in ${SILENCE_SECONDS} s, no report of node ${vmi.node} has said whether its vCPUs are pinned; check that its agent runs with --vm-pinning on`;
    if (left > 0) this.#queue.addAfter(key, key, left * 1000);
    else this.#announce(vmi, { type: 'Warning', reason: 'PinningNotReported', message });
  }

  #progressOf({ uid }: MaskedInstance): Progress {
    const progress = this.#progress.get(uid) ?? new Progress();
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

type ReportedPinning = PinningReport & { readonly podUID: string };
