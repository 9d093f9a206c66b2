import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import type { Subcommand } from '../support/command.ts';
import { ArgumentError } from '../support/exit-status.ts';
import type { OutputFormat } from '../support/output.ts';
import type { AskAgent } from './ask.ts';

const AGENT = 'http://127.0.0.1:8082';

export interface AgentFlags extends ClusterFlags {
  readonly agent: string;
  readonly output?: OutputFormat;
}

export const withAgent = (command: Subcommand) =>
  command
    .argument('[node]', 'node whose agent to ask, through the API server; default: the agent on this machine')
    .option(
      '--agent <url>',
      'address of the agent’s probes (its --probe-host and --probe-port); for another node, only the port counts',
      AGENT,
    )
    .withCluster()
    .withOutput('json', 'yaml', 'wide');

/** Calls a function with the selected agent. @throws CliError, KubeError */
export async function usingAgent<T>(
  node: string | undefined,
  { agent, ...cluster }: AgentFlags,
  use: (ask: AskAgent) => Promise<T>,
): Promise<T> {
  if (!URL.canParse(agent)) throw new ArgumentError(`--agent '${agent}': expected a URL such as ${AGENT}`);
  const { agentAt, agentOf } = await import('./ask.ts');
  if (node === undefined) return use(agentAt(agent, cluster.requestTimeout));
  const port = Number(new URL(agent).port || 80);
  return usingCluster(cluster, (access) => use(agentOf(access, node, port)));
}
