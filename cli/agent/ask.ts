import type * as z from 'zod';
import { pod as podSchema } from '../../kube/resources.ts';
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
