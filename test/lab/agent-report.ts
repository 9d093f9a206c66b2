import { isDeepStrictEqual } from 'node:util';
import { NODE_TOPOLOGY_API as API, nodeTopology } from '../../kube/node-topology.ts';
import type { HostReport } from '../../model/kubelet/host-report.ts';
import { monotonicSeconds, sleep } from '../../runtime/time.ts';
import type { Cluster, LabNode } from './cluster.ts';
import type { LabMachine } from './lab.ts';
import { reportOfStatus } from './report.ts';
import { type GuestAgent, installUnit } from './scenarios/guest-agent.ts';

/** Seconds: the agent queries the kubelet 0.5 s after a change, but takes a minute to start on a busy machine. */
const PUBLISHED_SECONDS = 180;
const POLL_SECONDS = 0.3;

export type AgentReport = ReturnType<typeof agentReport>;

/** Starts the agent in the guest as its DaemonSet would. */
export async function startAgent(lab: LabMachine, cluster: Cluster, node: LabNode, signal: AbortSignal) {
  const agent = await installUnit(lab, cluster, node);
  await agent.start();
  return agentReport(agent, cluster, node, signal);
}

export function agentReport(agent: GuestAgent, cluster: Cluster, node: LabNode, signal: AbortSignal) {
  const published = async (names: ReadonlyMap<string, string>): Promise<HostReport | undefined> => {
    const object = await cluster.client.get(`/apis/${API.apiVersion}/${API.plural}/${node.name}`);
    const { status } = nodeTopology.parse(object);
    return status && reportOfStatus(status, names);
  };
  return {
    restart: () => agent.start(),
    stop: async () => void (await agent.stop()),
    current: published,
    /** The published report, once it is the expected one, or at the deadline. @param names of pods by uid */
    async settled(names: ReadonlyMap<string, string>, expected: HostReport): Promise<HostReport> {
      const end = monotonicSeconds() + PUBLISHED_SECONDS;
      for (;;) {
        const report = await published(names).catch(() => undefined);
        if (isDeepStrictEqual(report, expected)) return expected;
        if (monotonicSeconds() > end) {
          if (report === undefined) throw new Error('the agent publishes no report');
          return report;
        }
        await sleep(POLL_SECONDS, signal);
      }
    },
  };
}
