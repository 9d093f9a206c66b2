import type { Command } from 'commander';
import { type ClusterFlags, usingCluster, withCluster } from '../support/cluster.ts';
import { usageError } from '../support/exit-status.ts';
import { type AskAgent, agentAt, agentOf } from './ask.ts';

/** Where an agent answers unless its --probe-host and --probe-port say otherwise. */
const AGENT = 'http://127.0.0.1:8082';

export interface AgentFlags extends ClusterFlags {
  readonly agent: string;
}

/** The argument and the flags by which a command names the agent that it asks. */
export function withAgent(command: Command): Command {
  command
    .argument('[node]', 'the node whose agent is asked, through the API server; default: the one on this machine')
    .option(
      '--agent <url>',
      'where the agent answers its probes (its --probe-host and --probe-port); of a node, the port',
      AGENT,
    );
  return withCluster(command);
}

/** Runs something with the agent that was named. @throws CliError, KubeError */
export async function usingAgent<T>(
  node: string | undefined,
  { agent, ...cluster }: AgentFlags,
  use: (ask: AskAgent) => Promise<T>,
): Promise<T> {
  if (!URL.canParse(agent)) throw usageError(`--agent ${agent}: expected a URL, as ${AGENT}`);
  if (node === undefined) return use(agentAt(agent));
  const port = Number(new URL(agent).port || 80);
  return usingCluster(cluster, (access) => use(agentOf(access, node, port)));
}
