import type * as z from 'zod';
import type { InterferencePicture, SwitchPicture } from '../../console/data/wire.ts';
import { pod as podSchema } from '../../kube/resources.ts';
import {
  type DisturbedVm,
  type InterferenceStatus,
  interferenceStatus,
  type OvsStatus,
  ovsStatus,
} from '../../model/agent-status.ts';
import { groupBy } from '../../model/lists.ts';
import { NAMESPACE } from '../../model/names.ts';
import type { OpenPort } from '../extender/port-forward.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { CliError, EXIT, notFound } from '../support/exit-status.ts';
import { readAll } from '../support/lists.ts';

/** `where`: address and path, for messages. @throws CliError if the agent cannot be reached */
export type AskAgent = (path: string) => Promise<{ where: string; status: number; text: string }>;

const DEADLINE_SECONDS = 5;
const AGENTS = 'app.kubernetes.io/name in (plumbline-node-agent,plumbline-node-agent-dpu-host)';

const unreachable = (why: string, cause?: unknown) => new CliError(EXIT.unreachable, why, { cause });

export function agentAt(url: string, requestTimeout: number = DEADLINE_SECONDS): AskAgent {
  return async (path) => {
    const where = `${url.replace(/\/$/, '')}${path}`;
    try {
      const response = await fetch(where, { signal: AbortSignal.timeout(requestTimeout * 1000) });
      return { where, status: response.status, text: await response.text() };
    } catch (error) {
      const cause = (error as Error).cause instanceof Error ? ((error as Error).cause as Error) : (error as Error);
      const advice =
        'run this on the node, give the agent’s address with --agent, or name the node to go through the API server';
      throw unreachable(`${where}: ${cause.message}; ${advice}`, error);
    }
  };
}

/** Through the API server, by a port-forward to its pod: it listens on the node's loopback address. */
export function agentOf(
  { client, config, requestTimeout }: Pick<ClusterAccess, 'client' | 'config' | 'requestTimeout'>,
  node: string,
  port: number,
  open?: OpenPort,
): AskAgent {
  return async (path) => {
    const query = { labelSelector: AGENTS, fieldSelector: `spec.nodeName=${node}` };
    const pods = await readAll(client, `/api/v1/namespaces/${NAMESPACE}/pods`, podSchema, query);
    const pod = pods.find(({ status }) => status?.phase === 'Running')?.metadata.name;
    if (pod === undefined) {
      throw notFound(`no agent runs on node ${node} (kubectl -n ${NAMESPACE} get pods -o wide shows where agents run)`);
    }
    const where = `${pod}:${port}${path}`;
    const { getFromPod, forwardFailure } = await import('../extender/port-forward.ts');
    try {
      return {
        where,
        ...(await getFromPod(config, { namespace: NAMESPACE, pod, port }, path, { requestTimeout, open })),
      };
    } catch (error) {
      const { status, text } = forwardFailure(error);
      const denied = `not allowed to reach the agent (pods/portforward in ${NAMESPACE}); run this on the node`;
      throw unreachable(`${where}: ${status === 403 ? denied : text}`, error);
    }
  };
}

/** @param absent the meaning of a missing page @throws CliError if unreachable or of another format */
export async function readPage<T>(ask: AskAgent, path: string, schema: z.ZodType<T>, absent: string): Promise<T> {
  const { where, status, text } = await ask(path);
  if (status === 404) throw unreachable(`${where}: ${absent}`);
  if (status !== 200) throw unreachable(`${where} answered ${status}`);
  const result = schema.safeParse(jsonOf(text));
  if (!result.success)
    throw unreachable(`${where} did not return an agent’s status: ${result.error.issues[0]?.message}`);
  return result.data;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @throws CliError if the agent cannot be reached, or does not measure */
export function fetchInterference(ask: AskAgent): Promise<InterferenceStatus> {
  const absent = 'this agent does not measure interrupts (--interrupts off, --mode dpu, or it is too old)';
  return readPage(ask, '/interference', interferenceStatus, absent);
}

/** The uid until PodResources has named the pod. */
export function vmNameOf({ namespace, vmi, podName, podUID }: DisturbedVm): string {
  if (namespace === '') return podUID;
  return `${namespace}/${vmi === '' ? podName : vmi}`;
}

export function sourceText({ id, name, devices, count }: DisturbedVm['sources'][number]): string {
  const what = name === '' || /^[A-Z]/.test(id) ? id : name;
  return `${what}${devices.length === 0 ? '' : ` (${devices.join(', ')})`} ${count}`;
}

export function interferencePicture({ vms }: InterferenceStatus): InterferencePicture {
  return {
    vms: vms.map((vm) => {
      return { name: vmNameOf(vm), share: vm.share, history: vm.history, sources: vm.sources.map(sourceText) };
    }),
  };
}

/** Whether every thread is on its CPUs and nothing prevents that. A disabled duty counts as in order. */
export function isSwitchInOrder({ problems, processes }: OvsStatus): boolean {
  const threads = processes.flatMap((process) => process.threads);
  return problems.length === 0 && threads.every(isOnDesiredCpus);
}

export function isOnDesiredCpus({ allowed, desired }: OvsThread): boolean {
  return desired === null || allowed === desired;
}

export type OvsThread = OvsStatus['processes'][number]['threads'][number];

/** @throws CliError if the agent cannot be reached, or does not manage Open vSwitch */
export function fetchOvsStatus(ask: AskAgent): Promise<OvsStatus> {
  const absent = 'this agent does not manage Open vSwitch (its --mode is not full, or it is too old)';
  return readPage(ask, '/ovs', ovsStatus, absent);
}

const NOTES: Readonly<Record<string, string>> = {
  pmd: 'poll mode driver, left alone',
  clipped: 'its cpuset limits it to fewer CPUs',
};

export const threadKind = ({ name, note }: OvsThread): string => (note === 'pmd' ? name : name.replace(/\d+$/, ''));

export function alike(threads: readonly OvsThread[]): OvsThread[][] {
  const keyOf = (thread: OvsThread) =>
    JSON.stringify([threadKind(thread), thread.allowed, thread.desired, thread.note]);
  return [...groupBy(threads, keyOf).values()];
}

/** Why a thread is not managed or not on its CPUs; '' if the agent gives no reason. */
export const noteOf = ({ note }: OvsThread): string =>
  note === null ? '' : (NOTES[note] ?? `refused by the kernel: ${note}`);

export function switchPicture({ enabled, desired, problems, processes }: OvsStatus): SwitchPicture {
  const threads = processes.flatMap(({ name, role, pid, threads: all }) =>
    alike(all).flatMap((group) => {
      const [first] = group;
      if (first === undefined) return [];
      const note = isOnDesiredCpus(first) ? noteOf(first) : noteOf(first) || 'not moved yet';
      const process = role === 'daemon' ? name : `${name} ${role}`;
      const { allowed, desired: desiredCpus } = first;
      return [{ process, pid, kind: threadKind(first), threads: group.length, allowed, desired: desiredCpus, note }];
    }),
  );
  return { enabled, desired, problems, threads };
}
