import { join } from 'node:path';
import { pino } from 'pino';
import { createConsole } from '../../console/server/console.ts';
import { KINDS, type Kind, type OptionalKind } from '../../console/server/kinds.ts';
import type { QuestionSources } from '../../console/server/questions.ts';
import { remedyLines } from '../../diagnosis/remedies.ts';
import { isNotFound, type KubeClient, KubeError } from '../../kube/client.ts';
import {
  type AskAgent,
  agentAt,
  agentOf,
  fetchInterference,
  fetchOvsStatus,
  interferencePicture,
  switchPicture,
} from '../agent/ask.ts';
import { readDrain } from '../drain/read.ts';
import { explain } from '../explain/explain.ts';
import { readSubject } from '../explain/subject.ts';
import { askAddress, askInCluster, explainUrl } from '../extender/ask.ts';
import { type ClusterAccess, type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { CliError, EXIT, usageError } from '../support/exit-status.ts';
import { notInstalled } from '../support/lists.ts';
import { bundleDirectory, printLines, printMessage, untilInterrupted } from '../support/output.ts';

export interface ConsoleFlags extends ClusterFlags {
  readonly port: number;
  readonly extender?: string;
  readonly agent?: Readonly<Record<string, string>>;
}

const DRAIN_SECONDS = 1;

/** Serves the page until it is interrupted. @param host the address to listen on @throws CliError, KubeError */
export function run(host: string, flags: ConsoleFlags): Promise<void> {
  return usingCluster(flags, (cluster) => untilInterrupted((signal) => serve(cluster, host, flags, signal)));
}

const answering =
  <Words extends readonly string[], T>(ask: (...words: Words) => Promise<T>) =>
  async (...words: Words) => {
    try {
      return { answer: await ask(...words) };
    } catch (error) {
      return { why: (error as Error).message };
    }
  };

const AGENT_PORT = 8082;

function questionsOf(cluster: ClusterAccess, { extender, agent = {} }: ConsoleFlags) {
  const { client, requestTimeout } = cluster;
  if (extender !== undefined) explainUrl(extender);
  const agentOn = (node: string): AskAgent => {
    const url = agent[node];
    return url === undefined ? agentOf(cluster, node, AGENT_PORT) : agentAt(url, requestTimeout);
  };
  const askExtender: QuestionSources['ask'] = (pod) =>
    askInCluster(cluster, { pod }).catch(({ message }: Error) => ({ why: message }));
  return {
    ask: extender === undefined ? askExtender : answering((pod: string) => askAddress(extender, pod, requestTimeout)),
    askSwitch: answering(async (node: string) => switchPicture(await fetchOvsStatus(agentOn(node)))),
    askInterference: answering(async (node: string) => interferencePicture(await fetchInterference(agentOn(node)))),
    diagnose: answering(async (kind: 'vm' | 'pod', reference: string) => {
      const [namespace = '', name = ''] = reference.split('/');
      const subject = await readSubject(client, { kind, namespace, name }, namespace);
      const { verdict, reason, text, notes, ...more } = await explain(cluster, subject, { extender }, Date.now());
      const causes = more.causes.map((cause) => cause.text);
      return { verdict, reason, text, causes, remedies: more.remedies.map(remedyLines), notes };
    }),
    askDrain: answering(async (node: string) => {
      const { vms, orderMatters, notes } = await readDrain(client, [node], Date.now());
      const entries = vms.map(({ namespace, name, outcome, place, text, remedies }) => {
        const to = { to: place?.node, cpus: `${place?.cpus ?? ''}` };
        return { vm: `${namespace}/${name}`, outcome, ...to, text, remedies: remedies.map(remedyLines) };
      });
      return { orderMatters, vms: entries, notes };
    }),
  };
}

async function serve(cluster: ClusterAccess, host: string, flags: ConsoleFlags, signal: AbortSignal): Promise<void> {
  const page = createConsole({
    client: cluster.client,
    address: { host, port: flags.port },
    assets: join(bundleDirectory(), 'console'),
    ...questionsOf(cluster, flags),
    without: await unreadableKinds(cluster.client),
    log: createTerminalLog(),
  });
  await page.server.start().catch((error: NodeJS.ErrnoException) => {
    throw usageError(`--port ${flags.port}: ${error.message}; choose another port, or omit --port for a free one`);
  });
  printLines([`console: http://${host}:${page.server.port}/`]);
  await page.run(signal);
  page.closeStreams();
  await page.server.stop(DRAIN_SECONDS);
}

export function createTerminalLog() {
  return pino(
    { level: 'warn', base: null, timestamp: false },
    {
      write(text: string) {
        const { msg, path, err } = JSON.parse(text) as { msg?: string; path?: string; err?: { message?: string } };
        printMessage(`plumbline: ${[path, msg, err?.message].filter(Boolean).join(': ')}`);
      },
    },
  );
}

/** @returns the optional kinds without read permission @throws CliError naming the required ones; KubeError */
export async function unreadableKinds(client: Pick<KubeClient, 'get'>): Promise<ReadonlySet<OptionalKind>> {
  const kinds = await Promise.all(
    (Object.keys(KINDS) as Kind[]).map(async (kind) => ({ kind, isForbidden: await isForbidden(client, kind) })),
  );
  const forbidden = kinds.filter((kind) => kind.isForbidden).map(({ kind }) => kind);
  const required = forbidden.filter((kind) => !KINDS[kind].optional);
  if (required.length > 0) {
    const names = required.map((kind) => KINDS[kind].resource).join(', ');
    throw new CliError(
      EXIT.unreachable,
      `not allowed to list ${names}: ask for list and watch of each (docs/reference/console.md)`,
    );
  }
  return new Set(forbidden as OptionalKind[]);
}

async function isForbidden(client: Pick<KubeClient, 'get'>, kind: Kind): Promise<boolean> {
  try {
    await client.get(KINDS[kind].path, { query: { limit: 1 } });
    return false;
  } catch (error) {
    if (error instanceof KubeError && error.status === 403) return true;
    if (!isNotFound(error)) throw error;
    // A kind that this cluster does not have counts as a kind without objects.
    if (kind !== 'nodetopologies') return false;
    throw notInstalled(error);
  }
}
