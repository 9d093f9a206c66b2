import { join } from 'node:path';
import { pino } from 'pino';
import { createConsole } from '../../console/server/console.ts';
import type {
  AskDiagnosis,
  AskDrain,
  AskExtender,
  AskInterference,
  AskSwitch,
} from '../../console/server/questions.ts';
import { remedyLines } from '../../diagnosis/remedy.ts';
import { type AskAgent, agentAt, agentOf } from '../agent/ask.ts';
import { fetchInterference, interferencePicture } from '../agent/interference.ts';
import { fetchOvsStatus, switchPicture } from '../agent/ovs-status.ts';
import { readDrain } from '../drain/read.ts';
import { explain } from '../explain/explain.ts';
import { readSubject } from '../explain/subject.ts';
import { askAddress, askInCluster, explainUrl } from '../extender/ask.ts';
import { type ClusterAccess, type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { usageError } from '../support/exit-status.ts';
import { bundleDirectory, printLines, printMessage, untilInterrupted } from '../support/output.ts';
import { unreadableKinds } from './unreadable-kinds.ts';

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

const askerOfAgent = (cluster: ClusterAccess, { agent = {} }: ConsoleFlags, node: string): AskAgent => {
  const url = agent[node];
  return url === undefined ? agentOf(cluster, node, AGENT_PORT) : agentAt(url, cluster.requestTimeout);
};

const switchAskerOf = (cluster: ClusterAccess, flags: ConsoleFlags): AskSwitch =>
  answering(async (node: string) => switchPicture(await fetchOvsStatus(askerOfAgent(cluster, flags, node))));

const interferenceAskerOf = (cluster: ClusterAccess, flags: ConsoleFlags): AskInterference =>
  answering(async (node: string) => interferencePicture(await fetchInterference(askerOfAgent(cluster, flags, node))));

const diagnoserOf = (cluster: ClusterAccess, flags: ConsoleFlags): AskDiagnosis =>
  answering(async (kind: 'vm' | 'pod', reference: string) => {
    const [namespace = '', name = ''] = reference.split('/');
    const subject = await readSubject(cluster.client, { kind, namespace, name }, namespace);
    const { verdict, reason, text, causes, remedies, notes } = await explain(cluster, subject, flags, Date.now());
    const texts = { causes: causes.map((cause) => cause.text), remedies: remedies.map(remedyLines), notes };
    return { verdict, reason, text, ...texts };
  });

const drainAskerOf = ({ client }: ClusterAccess): AskDrain =>
  answering(async (node: string) => {
    const { vms, orderMatters, notes } = await readDrain(client, [node], Date.now());
    const entries = vms.map(({ namespace, name, outcome, place, text, remedies }) => ({
      vm: `${namespace}/${name}`,
      outcome,
      to: place?.node,
      cpus: `${place?.cpus ?? ''}`,
      text,
      remedies: remedies.map(remedyLines),
    }));
    return { orderMatters, vms: entries, notes };
  });

async function serve(cluster: ClusterAccess, host: string, flags: ConsoleFlags, signal: AbortSignal): Promise<void> {
  const page = createConsole({
    client: cluster.client,
    address: { host, port: flags.port },
    assets: join(bundleDirectory(), 'console'),
    ask: askerOf(cluster, flags),
    askSwitch: switchAskerOf(cluster, flags),
    askDrain: drainAskerOf(cluster),
    askInterference: interferenceAskerOf(cluster, flags),
    diagnose: diagnoserOf(cluster, flags),
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

/** Selects how to query the extender. @throws CliError if --extender is not a URL */
function askerOf(cluster: ClusterAccess, { extender: url }: ConsoleFlags): AskExtender {
  if (url === undefined)
    return (pod) => askInCluster(cluster, { pod }).catch((error: Error) => ({ why: error.message }));
  explainUrl(url);
  return answering((pod: string) => askAddress(url, pod, cluster.requestTimeout));
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
