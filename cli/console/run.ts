import { join } from 'node:path';
import { createConsole } from '../../console/server/console.ts';
import type { AskExtender, AskSwitch } from '../../console/server/questions.ts';
import { agentAt, agentOf } from '../agent/ask.ts';
import { fetchOvsStatus, switchPicture } from '../agent/ovs-status.ts';
import { askInCluster } from '../extender/ask.ts';
import { askAddress, explainUrl } from '../extender/ask-address.ts';
import { type ClusterAccess, type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { usageError } from '../support/exit-status.ts';
import { printLines } from '../support/output.ts';
import { bundleDirectory } from '../support/program-files.ts';
import { HOST } from './host.ts';
import { createTerminalLog } from './log.ts';
import { unreadableKinds } from './permissions.ts';

export interface ConsoleFlags extends ClusterFlags {
  readonly port: number;
  readonly extender?: string;
  readonly agent?: Readonly<Record<string, string>>;
}

/** Seconds that browsers get to receive pending data when the command ends. */
const DRAIN = 1;

/** Serves the page until it is interrupted. @throws CliError, KubeError */
export function run(flags: ConsoleFlags): Promise<void> {
  return usingCluster(flags, (cluster) => serve(cluster, flags, join(bundleDirectory(), 'console')));
}

async function serve(cluster: ClusterAccess, flags: ConsoleFlags, assets: string): Promise<void> {
  const { client } = cluster;
  const ask = askerOf(cluster, flags);
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    const page = createConsole({
      client,
      address: { host: HOST, port: flags.port },
      assets,
      ask,
      askSwitch: switchAskerOf(cluster, flags),
      without: await unreadableKinds(client),
      log: createTerminalLog(),
    });
    await page.server.start().catch((error: NodeJS.ErrnoException) => {
      throw usageError(`--port ${flags.port}: ${error.message}; choose another port, or omit --port for a free one`);
    });
    printLines([`console: http://${HOST}:${page.server.port}/`]);
    await page.run(stopping.signal);
    page.closeStreams();
    await page.server.stop(DRAIN);
  } finally {
    process.removeListener('SIGINT', stop).removeListener('SIGTERM', stop);
  }
}

/** Selects how to query the extender. @throws CliError if --extender is not a URL */
function askerOf(cluster: ClusterAccess, { extender: url }: ConsoleFlags): AskExtender {
  if (url !== undefined) explainUrl(url);
  return async (pod) => {
    try {
      if (url !== undefined) return { answer: await askAddress(url, pod) };
      return await askInCluster(cluster, { pod });
    } catch (error) {
      return { why: (error as Error).message };
    }
  };
}

/** The agent's probe port on its node. */
const AGENT_PORT = 8082;

function switchAskerOf(cluster: ClusterAccess, { agent = {} }: ConsoleFlags): AskSwitch {
  return async (node) => {
    try {
      const url = agent[node];
      const ask = url === undefined ? agentOf(cluster, node, AGENT_PORT) : agentAt(url);
      return { answer: switchPicture(await fetchOvsStatus(ask)) };
    } catch (error) {
      return { why: (error as Error).message };
    }
  };
}
