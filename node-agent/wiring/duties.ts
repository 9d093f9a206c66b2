import { dirname, join } from 'node:path';
import { nodeTarget } from '../../kube/events.ts';
import { createPodResourcesClient, POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { type Assignments, createAssignments } from '../assignments/assignments.ts';
import { createRefusedStarts } from '../device-plugin/allocation-checker.ts';
import { createMovedNetworks } from '../device-plugin/moved-networks.ts';
import { kubeletGeneration } from '../device-plugin/resources.ts';
import { createHostFacts } from '../host/host-facts.ts';
import { createKubeletConfigReader, type KubeletConfigSources } from '../host/kubelet-config-reader.ts';
import { readConfigz } from '../host/kubelet-configz.ts';
import { readNode } from '../kube-objects/lease.ts';
import type { Duty } from '../lifecycle/duty.ts';
import { createLastMapFile } from '../networks/map-source.ts';
import { createNetworks } from '../networks/networks.ts';
import type { OvsAffinity } from '../ovs-affinity/ovs-affinity.ts';
import { createHeartbeat } from '../report/heartbeat.ts';
import { createReport } from '../report/report.ts';
import { createDevicePluginDuty } from './device-plugin.ts';
import { createDpuLeaseDuties } from './dpu-lease.ts';
import { createGateDuties } from './gate.ts';
import type { AgentParts, HostParts } from './parts.ts';
import { createOvsDuty, createVmPinningDuty, type VmPinningDuty } from './thread-affinity.ts';

export interface AgentDuties {
  readonly duties: readonly Duty[];
  /** Undefined if the agent does not follow a kubelet. */
  readonly assignments: Assignments | undefined;
  /** Undefined if this host runs no Open vSwitch. */
  readonly ovs: OvsAffinity | undefined;
  /** Undefined if the agent does not manage VMs. */
  readonly vms: VmPinningDuty | undefined;
}

export function createDuties(parts: AgentParts): AgentDuties {
  const lease = createDpuLeaseDuties(parts);
  if (parts.config.mode === 'dpu')
    return { duties: lease.duties, assignments: undefined, ovs: undefined, vms: undefined };
  const { duties, assignments, ovs, vms } = hostDuties(parts);
  const gate = createGateDuties(parts, { assignments, ovs, health: lease.health });
  return { duties: [...duties, ...lease.duties, ...gate], assignments, ovs, vms };
}

function hostDuties(parts: AgentParts): AgentDuties & { duties: Duty[] } {
  const { config, nodeName, client, events, metrics, log } = parts;
  const { kubeletDir, mode } = config;
  const facts = createHostFacts(config.sysfsRoot, log);
  const kubeletConfig = createKubeletConfigReader(kubeletConfigSources(parts), log);
  const assignments = createAssignments({
    kubeletDir,
    cdiDir: config.cdiDir,
    online: () => facts.current()?.host.online ?? CpuSet.EMPTY,
    log,
    onFailure: (code) => metrics.podResourcesFailures.inc({ code }),
    configuredPolicy: async () => (await kubeletConfig()).config?.cpuManager.policy,
  });
  assignments.subscribe((view) => {
    metrics.assignmentsCurrent.set(view.problems.length === 0 ? 1 : 0);
    metrics.exclusiveCpus.set(view.owned.size);
  });
  const networks = createNetworks({
    sysfsRoot: config.sysfsRoot,
    host: async () => (await facts.read()).host,
    ovsRundir: mode === 'full' ? config.ovsRundir : undefined,
    networkMap: config.networkMap,
    lastMap: createLastMapFile(join(config.stateDir, 'network-map.json'), log),
    labels: async (signal) => (await readNode(client, nodeName, signal)).labels,
    log,
  });
  networks.subscribe(() => {
    const { problems, mapFault } = networks.view();
    metrics.networksProblems.set(problems.length + (mapFault === undefined ? 0 : 1));
    if (mapFault === undefined) return;
    events.record(nodeTarget(nodeName), { type: 'Warning', reason: 'InvalidNetworkMap', message: mapFault });
  });
  const refusals = createRefusedStarts(monotonicSeconds);
  const sources = { facts, assignments, networks, refusals, kubeletConfig };
  const ovsDuty = mode === 'full' ? createOvsDuty(parts, sources) : undefined;
  const ovs = ovsDuty?.ovs;
  const vms = config.vmPinning === 'on' ? createVmPinningDuty(parts, { facts, assignments }) : undefined;
  const host = { ...sources, ovs, vms };
  const report = createReportDuty(parts, host);

  const duties: Duty[] = [
    {
      name: 'assignments',
      run: async (signal) => {
        await facts.read();
        await assignments.run(signal);
      },
    },
    { name: 'networks', run: networks.run },
    { name: 'report', run: report.run },
    {
      name: 'heartbeat',
      run: createHeartbeat({ ...parts, wallClock: Date.now, onCreated: report.resync }).run,
    },
    { name: 'device-plugin', run: createDevicePluginDuty(parts, host).run },
    {
      name: 'moved-networks',
      run: createMovedNetworks({
        networks,
        host: async () => (await facts.read()).host,
        podResources: () => createPodResourcesClient(join(kubeletDir, POD_RESOURCES_SOCKET)),
        ...parts,
      }).run,
    },
  ];
  if (ovsDuty !== undefined) duties.push({ name: 'ovs-affinity', run: ovsDuty.run });
  if (vms !== undefined) duties.push({ name: 'vm-pinning', run: vms.run });
  return { duties, assignments, ovs, vms };
}

export function kubeletConfigSources({ config, token }: Pick<AgentParts, 'config' | 'token'>): KubeletConfigSources {
  const { kubeletConfig, kubeletConfigDir, kubeletDir, kubeletEndpoint: endpoint } = config;
  return {
    kubeletDir,
    config: kubeletConfig,
    configDir: kubeletConfigDir,
    endpoint,
    configz:
      endpoint === ''
        ? undefined
        : async (at) => {
            const bearer = token();
            if (bearer === undefined) throw new Error('no bearer token for the kubelet’s configz endpoint');
            return readConfigz({ ...at, token: bearer });
          },
    generation: () => kubeletGeneration(join(kubeletDir, dirname(POD_RESOURCES_SOCKET))),
  };
}

export function createReportDuty(
  parts: AgentParts,
  { facts, assignments, networks, ovs, vms, refusals, kubeletConfig }: HostParts,
) {
  const { failures } = parts;
  const sources = [assignments, networks, failures, refusals, ...(vms ? [vms] : []), ...(ovs ? [ovs] : [])];
  return createReport({
    ...parts,
    subscribe(listener) {
      const ends = sources.map((source) => source.subscribe(listener));
      return () => {
        for (const end of ends) end();
      };
    },
    inputs: async () => {
      const { host: _host, description, ...hostFacts } = await facts.read();
      const { config, problems } = await kubeletConfig();
      const view = networks.view();
      return {
        ...hostFacts,
        host: description,
        kubeletConfig: config,
        kubeletConfigProblems: problems,
        view: assignments.view(),
        // A report without networks would look like a node without any.
        networks: networks.isComplete || failures.current.has('networks') ? view : undefined,
        pmdCpus: ovs === undefined ? view.pmdCpus : view.pmdCpus.union(ovs.pmdCpus()),
        pinsVms: vms !== undefined,
        pinning: vms?.pinning() ?? [],
        refusals: refusals.current(),
        ovsProblems: ovs?.problems() ?? [],
        failedDuties: [...failures.current].sort(),
      };
    },
  });
}
