import { join } from 'node:path';
import { nodeTarget } from '../../kube/events.ts';
import { createPodResourcesClient, POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { Assignments } from '../assignments/assignments.ts';
import { RefusedStarts } from '../device-plugin/allocation-checker.ts';
import { MovedNetworks } from '../device-plugin/moved-networks.ts';
import { KubeletConfigReader, type KubeletConfigSources } from '../host/kubelet-config-reader.ts';
import { readConfigz } from '../host/kubelet-configz.ts';
import { KubeletRuns } from '../host/kubelet-runs.ts';
import { readNode } from '../kube-objects/lease.ts';
import { type Duty, Problems } from '../lifecycle/duty.ts';
import { Networks } from '../networks/networks.ts';
import { askSwitch } from '../open-vswitch/answers.ts';
import { ClockCheck } from '../report/clock-check.ts';
import { Report } from '../report/report.ts';
import { createDevicePluginDuty } from './device-plugin.ts';
import { createDpuLeaseDuties, createGateDuties } from './dpu.ts';
import type { AgentParts, HostParts, Vacate } from './parts.ts';
import { createInterruptDuties, createOvsDuty, createVmPinningDuty } from './thread-affinity.ts';

export type AgentDuties = ReturnType<typeof createDuties>;

/** The agent of a DPU follows no kubelet, and its Open vSwitch and VMs are not this machine's. */
const WITHOUT_HOST = {
  assignments: undefined,
  ovs: undefined,
  vms: undefined,
  launcherProblem: undefined,
  interference: undefined,
};

export function createDuties(parts: AgentParts) {
  const lease = createDpuLeaseDuties(parts);
  if (parts.config.mode === 'dpu') return { duties: lease.duties, ...WITHOUT_HOST };
  const { duties, vacate, ...host } = hostDuties(parts);
  const gate = createGateDuties(parts, { assignments: host.assignments, vacate, health: lease.health });
  return { duties: [...duties, ...lease.duties, ...gate], ...host };
}

function hostDuties(parts: AgentParts) {
  const { config, nodeName, client, events, metrics, log } = parts;
  const { kubeletDir, mode } = config;
  const runs = new KubeletRuns({ sysfsRoot: config.sysfsRoot, kubeletDir, log });
  const kubeletConfig = new KubeletConfigReader(kubeletConfigSources(parts, runs.generation), log).read;
  const assignments = new Assignments({
    kubeletDir,
    cdiDir: config.cdiDir,
    online: () => runs.run?.facts.host.online ?? CpuSet.EMPTY,
    log,
    onFailure: (code) => metrics.podResourcesFailures.inc({ code }),
    configuredPolicy: async () => (await kubeletConfig()).config?.cpuManager.policy,
    onKubelet: runs.subscribe,
  });
  assignments.subscribe((view) => {
    metrics.assignmentsCurrent.set(view.problems.length === 0 ? 1 : 0);
    metrics.exclusiveCpus.set(view.owned.size);
    // A kubelet that knows other CPUs has started, or the kernel has changed them.
    const { cpusOfCheckpoint = CpuSet.EMPTY } = view;
    if (runs.kernel !== undefined && !cpusOfCheckpoint.isSubsetOf(runs.kernel.online)) runs.check();
  });
  const networks = new Networks({
    sysfsRoot: config.sysfsRoot,
    host: async () => (await runs.read()).host,
    onHost: runs.subscribe,
    ovsRundir: mode === 'full' ? config.ovsRundir : undefined,
    networkMap: config.networkMap,
    lastMap: join(config.stateDir, 'network-map.json'),
    onFileProblem: parts.unsaved.set,
    labels: async (signal) => (await readNode(client, nodeName, signal)).labels,
    log,
  });
  networks.subscribe(() => {
    const { problems, mapFault } = networks.view();
    metrics.networksProblems.set(problems.length + (mapFault === undefined ? 0 : 1));
    if (mapFault === undefined) return;
    events.record(nodeTarget(nodeName), { type: 'Warning', reason: 'InvalidNetworkMap', message: mapFault });
  });
  const refusals = new RefusedStarts(monotonicSeconds);
  const sources = { runs, assignments, networks, refusals, kubeletConfig };
  const ovsDuty = mode === 'full' ? createOvsDuty(parts, sources) : undefined;
  const ovs = ovsDuty?.ovs;
  const ovsSilence = mode === 'full' ? new Problems() : undefined;
  const vmDuty = config.vmPinning === 'on' ? createVmPinningDuty(parts, { runs, assignments }) : undefined;
  const vms = vmDuty?.vms;
  const interrupts = createInterruptDuties(parts, { ...sources, ovs }, vms);
  const { moves, interference } = interrupts;
  const vacate = barrierOf([ovs, moves]);
  const host = { ...sources, ovs, ovsSilence, vms, vacate, interference };
  const report = createReportDuty(parts, host);

  const movedNetworks = new MovedNetworks({
    networks,
    host: async () => (await runs.read()).host,
    podResources: () => createPodResourcesClient(join(kubeletDir, POD_RESOURCES_SOCKET)),
    ...parts,
  });

  const duties: Duty[] = [
    { name: 'kubelet-runs', run: (signal) => runs.follow(signal) },
    { name: 'assignments', run: (signal) => runs.read().then(() => assignments.run(signal)) },
    { name: 'networks', run: (signal) => networks.run(signal) },
    { name: 'report', run: (signal) => report.run(signal) },
    { name: 'device-plugin', run: createDevicePluginDuty(parts, host).run },
    { name: 'moved-networks', run: (signal) => movedNetworks.run(signal) },
  ];
  if (ovsDuty !== undefined) duties.push({ name: 'ovs-affinity', run: ovsDuty.run });
  if (ovsSilence !== undefined) {
    const run = (signal: AbortSignal) => askSwitch(config.ovsRundir, ovsSilence.set, signal);
    duties.push({ name: 'ovs-answers', run });
  }
  if (vmDuty !== undefined) duties.push({ name: 'vm-pinning', run: vmDuty.run });
  duties.push(...interrupts.duties);
  const { launcherProblem } = vmDuty ?? {};
  return { duties, vacate, assignments, ovs, vms, launcherProblem, interference: interrupts.status };
}

/** One barrier for everything that leaves the CPUs of a container before it starts. */
export function barrierOf(parts: readonly ({ readonly vacate: Vacate } | undefined)[]): Vacate {
  return async (cpus, signal) => void (await Promise.all(parts.map((part) => part?.vacate(cpus, signal))));
}

export function kubeletConfigSources(
  { config, token }: Pick<AgentParts, 'config' | 'token'>,
  generation?: () => string,
): KubeletConfigSources {
  const { kubeletDir, kubeletConfig, kubeletConfigDir: configDir, kubeletEndpoint: endpoint } = config;
  const configz: KubeletConfigSources['configz'] = async (at) => {
    const bearer = token();
    if (bearer === undefined) throw new Error('no bearer token for the kubelet’s configz endpoint');
    return readConfigz({ ...at, token: bearer });
  };
  return {
    kubeletDir,
    config: kubeletConfig,
    configDir,
    endpoint,
    generation,
    configz: endpoint === '' ? undefined : configz,
  };
}

export function createReportDuty(
  parts: AgentParts,
  { runs, assignments, networks, ovs, ovsSilence, vms, interference, refusals, kubeletConfig }: HostParts,
): Report {
  const { failures, unsaved, client } = parts;
  const clock = new ClockCheck();
  const sources = [runs, assignments, networks, failures, unsaved, refusals, vms, ovs, ovsSilence, interference];
  return new Report({
    ...parts,
    subscribe(listener) {
      const ends = sources.map((source) => source?.subscribe(listener));
      return () => {
        for (const end of ends) end?.();
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
        run,
        runMode,
        kernel,
        kubeletConfig: config,
        kubeletConfigProblems: problems,
        view: assignments.view(),
        // A report without networks would look like a node without any.
        networks: networks.isComplete || failures.current.includes('networks') ? view : undefined,
        pmdCpus: ovs === undefined ? view.pmdCpus : view.pmdCpus.union(ovs.pmdCpus()),
        pinsVms: vms !== undefined,
        pinning: vms?.pinning() ?? [],
        refusals: refusals.current(),
        interference: interference?.disturbed() ?? [],
        ovsProblems: ovs?.problems() ?? [],
        ovsSilence: ovsSilence?.current,
        unsaved: unsaved.current,
        clockProblems: clock.problems(client.clockOffset?.() ?? 0),
        failedDuties: failures.current,
      };
    },
  });
}
