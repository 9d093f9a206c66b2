import { createReport } from '../report/report.ts';
import type { AgentParts, HostParts } from './parts.ts';

/** Creates the report of a node with a kubelet, from the other duties and their changes. */
export function createReportDuty(
  { client, config: { nodeName }, failures, log, metrics }: AgentParts,
  { facts, assignments, networks, ovs, vms, refusals, kubeletConfig }: HostParts,
) {
  return createReport({
    client,
    nodeName,
    subscribe(listener) {
      const ends = [assignments, networks, failures, refusals, ...(vms ? [vms] : []), ...(ovs ? [ovs] : [])].map(
        (source) => source.subscribe(listener),
      );
      return () => {
        for (const end of ends) end();
      };
    },
    inputs: async () => {
      const { description: host, memory, isolated } = await facts.read();
      const { config, problems } = await kubeletConfig();
      const view = networks.view();
      return {
        host,
        memory,
        isolated,
        kubeletConfig: config,
        kubeletConfigProblems: problems,
        view: assignments.view(),
        // A report without networks would look like a node without any.
        networks: networks.known || failures.current.has('networks') ? view : undefined,
        pmdCpus: ovs === undefined ? view.pmdCpus : view.pmdCpus.union(ovs.pmdCpus()),
        pinsVms: vms !== undefined,
        pinning: vms?.pinning() ?? [],
        refusals: refusals.current(),
        ovsProblems: ovs?.problems() ?? [],
        failedDuties: [...failures.current].sort(),
      };
    },
    log,
    metrics,
  });
}
