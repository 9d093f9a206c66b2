import { join } from 'node:path';
import type { PodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import {
  type AddQuestion,
  CNI_CODES,
  type CniError,
  type CniPod,
  type DpuWord,
  decideAdd,
  decideStatus,
  dependsOnDpu,
  type GateScope,
  hasDpuDevice,
  parseCniArgs,
  podOf,
} from '../../model/cni/decide.ts';
import { type CpuSet, unionOf } from '../../model/cpu-set.ts';
import { isObject, parseJson, resultOrNone } from '../../model/json.ts';
import {
  CHECKPOINT_FILE,
  type CheckpointEntry,
  MAX_CHECKPOINT_BYTES,
  parseCheckpoint,
} from '../assignments/checkpoint.ts';
import { readBounded } from '../files/bounded-file.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import { ALLOW, denial, type Question, WAIT } from './protocol.ts';
import type { GateCaller } from './server.ts';

export interface GatePolicy {
  readonly status: boolean;
  readonly scope: GateScope;
  readonly exempt: readonly string[];
}

export interface AnswersDeps {
  readonly policy: GatePolicy;
  /** Undefined where the node has no DPU. */
  readonly dpu: () => DpuWord | undefined;
  /** The CPUs that a pod owns exclusively; empty for an unknown pod. */
  readonly cpusOf: (podUid: string) => CpuSet;
  /** Moves OVS off the CPUs. @throws Error if OVS is still there after 2 s */
  readonly vacate: (cpus: CpuSet, signal: AbortSignal) => Promise<void>;
  /** Whether the pod holds a device of the DPU; undefined if unknown. */
  readonly hasDevice: (pod: CniPod) => Promise<boolean | undefined>;
  readonly metrics: AgentMetrics;
}

/** Never waits for the API server; only scope `device` queries the kubelet, for half a second at most. */
export function createAnswers({ policy, dpu, cpusOf, vacate, hasDevice, metrics }: AnswersDeps) {
  const inFlight = new Set<{ readonly question: AddQuestion; readonly asker: GateCaller }>();

  const add = async (question: Question, asker: GateCaller): Promise<CniError | undefined> => {
    const pod = podOf(parseCniArgs(question.environment.get('CNI_ARGS')));
    // The configuration may be up to a MiB of JSON, so it is parsed only if the result matters.
    let device: boolean | undefined = (policy.scope === 'device' && deviceInConf(question.conf)) || undefined;
    const common = { scope: policy.scope, exempt: policy.exempt, namespace: pod.namespace };
    if (
      device === undefined &&
      policy.scope === 'device' &&
      dependsOnDpu({ ...common, hasDevice: device, dpu: dpu() })
    ) {
      device = await patiently(asker, hasDevice(pod));
    }
    const facts = { ...common, hasDevice: device };
    const refused = decideAdd({ ...facts, dpu: dpu() });
    if (refused !== undefined) return refused;
    const cpus = pod.uid === undefined ? undefined : cpusOf(pod.uid);
    if (cpus !== undefined && !cpus.isEmpty) {
      try {
        await patiently(asker, vacate(cpus, asker.gone));
      } catch (error) {
        return {
          code: CNI_CODES.tryAgainLater,
          message: `OVS is still on CPUs ${cpus.brief}: ${(error as Error).message}`,
        };
      }
    }
    // The DPU may have died in the meantime.
    const late = { ...facts, dpu: dpu() };
    const refusedLate = decideAdd(late);
    if (refusedLate === undefined && dependsOnDpu(late)) follow(late, asker);
    return refusedLate;
  };

  /** Tracks a running delegate, which is cancelled if the DPU dies before the shim disconnects. */
  function follow(question: AddQuestion, asker: GateCaller): void {
    const call = { question, asker };
    inFlight.add(call);
    asker.gone.addEventListener('abort', () => inFlight.delete(call), { once: true });
    if (asker.gone.aborted) inFlight.delete(call);
  }

  const decide = async (question: Question, asker: GateCaller): Promise<CniError | undefined> => {
    if (question.verb === 'ADD') return add(question, asker);
    if (question.verb === 'STATUS') return decideStatus(dpu(), policy.status);
    return undefined;
  };

  return {
    async answer(question: Question, asker: GateCaller): Promise<void> {
      const begun = performance.now();
      const { verb } = question;
      const refusal = await decide(question, asker);
      if (refusal !== undefined) asker.end(denial(refusal));
      // The connection of an ADD stays open while its delegate runs.
      else if (verb === 'ADD') asker.send(ALLOW);
      else asker.end(ALLOW);
      const outcome = refusal === undefined ? 'allowed' : `code-${refusal.code}`;
      metrics.gateCalls.inc({ verb, outcome });
      metrics.gateSeconds.observe({ verb }, (performance.now() - begun) / 1000);
    },

    /** Call it when the DPU's health has changed: cancels the ADDs that depend on the DPU. @returns their number */
    recheck(): number {
      let aborted = 0;
      for (const call of [...inFlight]) {
        const refusal = decideAdd({ ...call.question, dpu: dpu() });
        if (refusal === undefined) continue;
        inFlight.delete(call);
        call.asker.end(denial(refusal));
        metrics.gateCalls.inc({ verb: 'ADD', outcome: 'aborted' });
        aborted++;
      }
      return aborted;
    },
  };
}

/** Milliseconds after which the agent asks the shim to wait. Without an answer the shim waits for one second. */
const WAIT_AFTER_MILLISECONDS = 200;

/** Asks the shim to wait if the work takes longer. Usually it does not, and each message saved is a wake-up saved. */
async function patiently<T>(asker: GateCaller, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => asker.send(WAIT), WAIT_AFTER_MILLISECONDS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}

/** Whether the configuration, or what the runtime adds to it, contains a device: meta-plugins pass it as `deviceID`. */
function deviceInConf(text: string): boolean {
  // The shim has already accepted it as JSON. Text that only the shim's parser accepts contains no device.
  const conf = parseJson(text);
  if (!isObject(conf)) return false;
  const places = [conf, conf['runtimeConfig'], conf['delegate']].filter(isObject);
  return places.some(({ deviceID }) => typeof deviceID === 'string' && deviceID !== '');
}

/** Seconds for the kubelet's list. Including the 2 s of a vacate, the shim waits 2.5 s. */
const KUBELET_DEADLINE_SECONDS = 0.4;

/** Maximum concurrent queries to the kubelet: each answer lists every pod of the node and may have megabytes. */
const MAX_QUERIES = 16;

/**
 * The kubelet writes the CPUs into its file before it calls the runtime. The event of that write may still be pending,
 * so the file is read again. @param last the last known assignments, where it cannot be read
 */
export function createPodCpus(kubeletDir: string, last: () => readonly CheckpointEntry[]): (uid: string) => CpuSet {
  const file = join(kubeletDir, CHECKPOINT_FILE);
  return (uid) => {
    const entries = resultOrNone(() => parseCheckpoint(readBounded(file, MAX_CHECKPOINT_BYTES)).entries) ?? last();
    return unionOf(entries.flatMap(({ podUID, cpus }) => (podUID === uid ? [cpus] : [])));
  };
}

/** @returns undefined when the kubelet does not answer, does not know the pod, or has too many queries already */
export function createDeviceQuestion(client: Pick<PodResourcesClient, 'list'>) {
  let queries = 0;
  return async ({ namespace, name }: CniPod): Promise<boolean | undefined> => {
    if (queries >= MAX_QUERIES) return undefined;
    queries++;
    try {
      const pods = await client.list({ deadlineSeconds: KUBELET_DEADLINE_SECONDS });
      const pod = pods.find((one) => one.namespace === namespace && one.name === name);
      if (pod === undefined) return undefined;
      const names = pod.containers.flatMap(({ devices }) => devices.map(({ resourceName }) => resourceName));
      return hasDpuDevice(names);
    } catch {
      return undefined;
    } finally {
      queries--;
    }
  };
}
