import type { PodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { few } from '../../model/errors.ts';
import type { Host, HostDescription } from '../../model/host.ts';
import type { LogLevel } from '../../runtime/log.ts';
import { sleep } from '../../runtime/time.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { checkAllocation, containerNames, type DeviceHolder, holderOf } from './allocation-check.ts';
import type { AllocationCheckPolicy } from './allocation-checker.ts';
import type { AdvertisedResource } from './resources.ts';

/** The start parameters of the device plugin's thread. */
export interface PluginThreadData {
  readonly kubeletDir: string;
  readonly host: HostDescription;
  readonly policy: AllocationCheckPolicy;
  readonly logLevel: LogLevel;
  /** Maximum seconds that a container's start waits for the agent's main thread. */
  readonly answerWithin: number;
}

export type ToPluginThread =
  /** The resources to advertise from now on. */
  | { readonly kind: 'resources'; readonly resources: readonly AdvertisedResource[]; readonly wholeCoresOnly: boolean }
  /** The answer to `before-start`: the container may start, or the reason why not. */
  | { readonly kind: 'answer'; readonly call: number; readonly refusal: string | undefined }
  | { readonly kind: 'stop' };

/** A DeviceHolder with its CPUs as a list. */
type HolderMessage = Omit<DeviceHolder, 'cpus'> & { readonly cpus: string };

export type FromPluginThread =
  /** A container is about to be created. Without `holder` its owner is unknown. */
  | {
      readonly kind: 'before-start';
      readonly call: number;
      readonly resource: string;
      readonly holder: HolderMessage | undefined;
    }
  | { readonly kind: 'registered'; readonly resource: string; readonly outcome: 'registered' | 'failed' }
  | { readonly kind: 'pre-start'; readonly resource: string; readonly outcome: 'passed' | 'refused' | 'unanswered' };

/**
 * Deadline in seconds for the kubelet to return the owner of the devices, number of attempts, and seconds between them.
 */
const ASK_DEADLINE_SECONDS = 2;
const MAX_ASK_TRIES = 3;
const ASK_PAUSE = 0.1;
/** Maximum number of devices in a log line, and of characters for each id. */
const MAX_NAMED_DEVICES = 8;
const MAX_ID_CHARACTERS = 80;

export interface BeforeStartDeps {
  readonly podResources: Pick<PodResourcesClient, 'list'>;
  readonly host: Host;
  readonly policy: AllocationCheckPolicy;
  /** Seconds to wait for the main thread. */
  readonly answerWithin: number;
  readonly log: AgentLogger;
  readonly post: (message: FromPluginThread) => void;
}

/**
 * Finds the owner of the devices and asks the main thread, which checks the allocation and vacates the CPUs. If the
 * main thread does not answer, the barrier checks the allocation itself with the lenient rules and lets the container
 * start: an agent that hangs must not keep pods from starting.
 */
export function createBeforeStart({ podResources, host, policy, answerWithin, log, post }: BeforeStartDeps) {
  const waiting = new Map<number, (refusal: string | undefined) => void>();
  let resources = new Map<string, AdvertisedResource>();
  let wholeCores = false;
  let calls = 0;

  const findHolder = async (
    resource: string,
    ids: readonly string[],
    signal: AbortSignal,
  ): Promise<DeviceHolder | undefined> => {
    for (let tries = 1; ; tries++) {
      try {
        return holderOf(await podResources.list({ signal, deadlineSeconds: ASK_DEADLINE_SECONDS }), resource, ids);
      } catch (err) {
        if (tries === MAX_ASK_TRIES || signal.aborted) {
          log.warn(
            { err, resource, devices: few(ids, MAX_NAMED_DEVICES, MAX_ID_CHARACTERS) },
            'allocation check skipped: owner unknown',
          );
          return undefined;
        }
        await sleep(ASK_PAUSE * tries, signal);
      }
    }
  };

  const ask = async (resource: string, holder: DeviceHolder | undefined, signal: AbortSignal) => {
    const call = ++calls;
    const answer = new Promise<{ refusal: string | undefined }>((resolve) => {
      waiting.set(call, (refusal) => resolve({ refusal }));
    });
    post({ kind: 'before-start', call, resource, holder: holder && { ...holder, cpus: holder.cpus.toString() } });
    try {
      return await Promise.race([answer, sleep(answerWithin, signal).then(() => undefined)]);
    } finally {
      waiting.delete(call);
    }
  };

  const judgeAlone = (resource: string, holder: DeviceHolder | undefined): string | undefined => {
    log.error(
      { ...(holder && containerNames(holder)), resource, deadlineSeconds: answerWithin },
      'agent timed out; starting the container before OVS left its CPUs',
    );
    if (holder === undefined) return undefined;
    const cells = CpuSet.of(resources.get(resource)?.cells ?? []);
    const allocation = { host, resource, cells, cpus: holder.cpus, wholeCores, spansCells: true };
    return policy === 'enforce' ? checkAllocation(allocation)?.message : undefined;
  };

  return {
    /** Sets the advertised resources, and whether this node's kubelet assigns whole cores only. */
    know(advertised: readonly AdvertisedResource[], wholeCoresOnly: boolean) {
      resources = new Map(advertised.map((resource) => [resource.name, resource]));
      wholeCores = wholeCoresOnly;
    },
    answered(call: number, refusal: string | undefined) {
      waiting.get(call)?.(refusal);
    },
    async beforeStart(resource: string, deviceIds: readonly string[], signal: AbortSignal) {
      const holder = await findHolder(resource, deviceIds, signal);
      const answer = await ask(resource, holder, signal);
      const refusal = answer === undefined ? judgeAlone(resource, holder) : answer.refusal;
      const passed = answer === undefined ? 'unanswered' : 'passed';
      post({ kind: 'pre-start', resource, outcome: refusal === undefined ? passed : 'refused' });
      if (refusal === undefined) return;
      const devices = few(deviceIds, MAX_NAMED_DEVICES, MAX_ID_CHARACTERS);
      log.warn(
        { ...(holder && containerNames(holder)), resource, devices, reason: refusal },
        'container start refused',
      );
      throw new Error(refusal);
    },
  };
}
