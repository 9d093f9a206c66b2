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
import { CpuSet } from '../../model/cpu-set.ts';
import { isObject, parseJson } from '../../model/json.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import { ALLOW, denial, type Question, WAIT } from './protocol.ts';
import type { GateCaller } from './server.ts';

interface AnswersDeps {
  readonly policy: { readonly status: boolean; readonly scope: GateScope; readonly exempt: readonly string[] };
  /** Undefined where the node has no DPU. */
  readonly dpu: () => DpuWord | undefined;
  /** The CPUs that a pod owns exclusively; empty for an unknown pod. */
  readonly cpusOf: (podUid: string) => CpuSet;
  /** Moves what can be moved off the CPUs. @throws Error if it is still there after 2 s */
  readonly vacate: (cpus: CpuSet, signal: AbortSignal) => Promise<void>;
  /** Whether the pod holds a device of the DPU; undefined if unknown. */
  readonly hasDevice: (pod: CniPod) => Promise<boolean | undefined>;
  readonly metrics: AgentMetrics;
}

/** Never waits for the API server; only scope `device` queries the kubelet, for half a second at most. */
export class GateAnswers {
  readonly #deps: AnswersDeps;
  /** Allowed ADDs. One ends when its shim disconnects, which it does when the delegate has ended. */
  readonly #inFlight = new Map<GateCaller, AddQuestion>();

  constructor(deps: AnswersDeps) {
    this.#deps = deps;
  }

  async answer(question: Question, asker: GateCaller): Promise<void> {
    const { metrics, dpu, policy } = this.#deps;
    const begun = performance.now();
    const { verb } = question;
    const refusal =
      verb === 'ADD' ? await this.#add(question, asker) : decideStatus(dpu(), policy.status && verb === 'STATUS');
    if (refusal !== undefined) asker.end(denial(refusal));
    // The connection of an ADD stays open while its delegate runs.
    else if (verb === 'ADD') asker.send(ALLOW);
    else asker.end(ALLOW);
    const outcome = refusal === undefined ? 'allowed' : `code-${refusal.code}`;
    metrics.gateCalls.inc({ verb, outcome });
    metrics.gateSeconds.observe({ verb }, (performance.now() - begun) / 1000);
  }

  /** Call it when the DPU's health has changed: cancels the ADDs that depend on the DPU. @returns their number */
  recheck(): number {
    const { dpu, metrics } = this.#deps;
    let aborted = 0;
    for (const [asker, question] of [...this.#inFlight]) {
      const refusal = decideAdd({ ...question, dpu: dpu() });
      if (refusal === undefined) continue;
      this.#inFlight.delete(asker);
      asker.end(denial(refusal));
      metrics.gateCalls.inc({ verb: 'ADD', outcome: 'aborted' });
      aborted++;
    }
    return aborted;
  }

  async #add(question: Question, asker: GateCaller): Promise<CniError | undefined> {
    const { policy, dpu, cpusOf, vacate } = this.#deps;
    const { scope, exempt } = policy;
    const pod = podOf(parseCniArgs(question.environment.get('CNI_ARGS')));
    const facts = { scope, exempt, namespace: pod.namespace, hasDevice: await this.#hasDevice(question, pod, asker) };
    const refused = decideAdd({ ...facts, dpu: dpu() });
    if (refused !== undefined) return refused;
    const cpus = pod.uid === undefined ? CpuSet.EMPTY : cpusOf(pod.uid);
    if (!cpus.isEmpty) {
      try {
        await patiently(asker, vacate(cpus, asker.gone));
      } catch (error) {
        const message = `CPUs ${cpus.brief} are not clear yet: ${(error as Error).message}`;
        return { code: CNI_CODES.tryAgainLater, message };
      }
    }
    // The DPU may have died in the meantime.
    const late = { ...facts, dpu: dpu() };
    const refusedLate = decideAdd(late);
    if (refusedLate === undefined && dependsOnDpu(late) && !asker.gone.aborted) {
      // Cancelled if the DPU dies before the shim disconnects.
      this.#inFlight.set(asker, late);
      asker.gone.addEventListener('abort', () => this.#inFlight.delete(asker), { once: true });
    }
    return refusedLate;
  }

  /** The configuration may be up to a MiB of JSON and the kubelet may be slow, so both are asked only if it matters. */
  async #hasDevice(question: Question, pod: CniPod, asker: GateCaller): Promise<boolean | undefined> {
    const { policy, dpu, hasDevice } = this.#deps;
    if (policy.scope !== 'device') return undefined;
    if (deviceInConf(question.conf)) return true;
    const unknown = { ...policy, namespace: pod.namespace, hasDevice: undefined, dpu: dpu() };
    return dependsOnDpu(unknown) ? patiently(asker, hasDevice(pod)) : undefined;
  }
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
  const configObjects = [conf, conf['runtimeConfig'], conf['delegate']].filter(isObject);
  return configObjects.some(({ deviceID }) => typeof deviceID === 'string' && deviceID !== '');
}

/** Seconds for the kubelet's list. Including the 2 s of a vacate, the shim waits 2.5 s. */
const KUBELET_DEADLINE_SECONDS = 0.4;

/** Maximum concurrent queries to the kubelet: each answer lists every pod of the node and may have megabytes. */
const MAX_QUERIES = 16;

/** Asks the kubelet for the devices of a pod. */
export class DeviceQuestions {
  readonly #client: Pick<PodResourcesClient, 'list'>;
  /** Queries that the kubelet has not answered yet; each ends by its deadline. */
  #waiting = 0;

  constructor(client: Pick<PodResourcesClient, 'list'>) {
    this.#client = client;
  }

  /** @returns undefined when the kubelet does not answer, does not know the pod, or has too many queries already */
  async hasDevice({ namespace, name }: CniPod): Promise<boolean | undefined> {
    if (this.#waiting >= MAX_QUERIES) return undefined;
    this.#waiting++;
    try {
      const pods = await this.#client.list({ deadlineSeconds: KUBELET_DEADLINE_SECONDS });
      const pod = pods.find((pod) => pod.namespace === namespace && pod.name === name);
      const devices = pod?.containers.flatMap((container) => container.devices);
      return devices && hasDpuDevice(devices.map(({ resourceName }) => resourceName));
    } catch {
      return undefined;
    } finally {
      this.#waiting--;
    }
  }
}
