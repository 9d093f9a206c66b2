import { ClockCheck } from '../report/clock-check.ts';
import { Report } from '../report/report.ts';
import type { AgentParts, HostParts } from './parts.ts';

export function createReportDuty(
  parts: AgentParts,
  { runs, assignments, networks, ovs, ovsSilence, vms, interference, refusals, kubeletConfig }: HostParts,
): Report {
  const { failures, unsaved, client } = parts;
  const clock = new ClockCheck();
  const optional = [vms, ovs, ovsSilence, interference].filter((source) => source !== undefined);
  const sources = [runs, assignments, networks, failures, unsaved, refusals, ...optional];
  return new Report({
    ...parts,
    subscribe(listener) {
      const ends = sources.map((source) => source.subscribe(listener));
      return () => {
        for (const end of ends) end();
      };
    },
    inputs: async () => {
      if (runs.run === undefined) await runs.read();
      const { config, problems } = await kubeletConfig();
      const view = networks.view();
      // The free pages of this moment: when a VM ends, the kubelet's count and the kernel's change together.
      if ((runs.kernel?.freePages.size ?? 0) > 0) runs.check();
      const { run, mode: runMode, kernel } = runs;
      if (run === undefined) throw new Error('the host has not been read');
      return {
        ...{ run, runMode, kernel },
        kubeletConfig: config,
        kubeletConfigProblems: problems,
        view: assignments.view(),
        // A report without networks would look like a node without any.
        networks: networks.isComplete || failures.current.has('networks') ? view : undefined,
        pmdCpus: ovs === undefined ? view.pmdCpus : view.pmdCpus.union(ovs.pmdCpus()),
        pinsVms: vms !== undefined,
        pinning: vms?.pinning() ?? [],
        refusals: refusals.current(),
        interference: interference?.disturbed() ?? [],
        ovsProblems: ovs?.problems() ?? [],
        ovsSilence: ovsSilence?.current,
        unsaved: unsaved.current,
        clockProblems: clock.problems(client.clockOffset?.() ?? 0),
        failedDuties: [...failures.current].sort(),
      };
    },
  });
}
