import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeClient } from '../kube/client.ts';
import { createPodResourcesClient } from '../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet } from '../model/cpu-set.ts';
import { DPU_LEASE_HOLDER, DPU_LEASE_NAMESPACE, DPU_LEASE_PREFIX } from '../model/names.ts';
import { createAffinity } from '../native/affinity.ts';
import type { Logger } from '../runtime/log.ts';
import { type Assignments, createAssignments, POD_RESOURCES_SOCKET } from './assignments/assignments.ts';
import type { NodeAgentConfig } from './config.ts';
import { createBeforeStart } from './device-plugin/before-start.ts';
import { createDevicePlugin } from './device-plugin/device-plugin.ts';
import { advertisedResources } from './device-plugin/resources.ts';
import { createDpuLease } from './dpu-lease/dpu.ts';
import { createDpuHostLease } from './dpu-lease/dpu-host.ts';
import { createProcessProbe } from './dpu-lease/probe.ts';
import type { Duty } from './duty.ts';
import { type HostFacts, readHostFacts } from './host/host-facts.ts';
import { createKubeletConfigReader } from './host/kubelet-config-log.ts';
import type { AgentMetrics } from './metrics.ts';
import { createOvsAffinity, type OvsAffinity } from './ovs-affinity/ovs-affinity.ts';
import { procThreads } from './ovs-affinity/threads.ts';
import { createHeartbeat } from './report/heartbeat.ts';
import { createReport } from './report/report.ts';

/** What every duty is made from. */
export interface AgentParts {
  readonly config: NodeAgentConfig;
  readonly client: KubeClient;
  readonly metrics: AgentMetrics;
  readonly log: Logger;
}

/** The duties of a mode, and what of them the readiness probe asks. */
export interface AgentDuties {
  readonly duties: readonly Duty[];
  /** Undefined where the agent does not follow a kubelet. */
  readonly assignments: Assignments | undefined;
}

/** CPUs of the machine that this process runs on, whatever host it is told to describe: the kernel knows no others. */
const MACHINE_ONLINE = '/sys/devices/system/cpu/online';

/** Puts the duties of the configured mode together; none runs yet. */
export function createDuties(parts: AgentParts): AgentDuties {
  const lease = leaseDuties(parts);
  if (parts.config.mode === 'dpu') return { duties: lease, assignments: undefined };
  const { duties, assignments } = hostDuties(parts);
  return { duties: [...duties, ...lease], assignments };
}

function leaseDuties({ config, client, metrics, log }: AgentParts): Duty[] {
  const { mode, nodeName, dpuLeaseInterval: interval, dpuLeaseDuration: duration } = config;
  if (mode === 'full' || interval === 0 || config.dpuLease === 'observe') return [];
  const timing = { interval, duration };
  const lease = {
    namespace: DPU_LEASE_NAMESPACE,
    name: DPU_LEASE_PREFIX + nodeName,
    holder: DPU_LEASE_HOLDER,
    duration,
  };
  if (mode === 'dpu-host') {
    return [{ name: 'dpu-lease', run: createDpuHostLease({ client, nodeName, lease, timing, log }).run }];
  }
  const probe = createProcessProbe(config.ovsRundir);
  return [
    { name: 'dpu-lease', run: createDpuLease({ client, lease, timing, probe, log, metrics, wallClock: Date.now }).run },
  ];
}

function hostDuties(parts: AgentParts): { duties: Duty[]; assignments: Assignments } {
  const { config, client, metrics, log } = parts;
  const { nodeName, kubeletDir, mode } = config;
  const facts = createFacts(parts);
  const assignments = createAssignments({
    kubeletDir,
    online: () => facts.known()?.host.online ?? CpuSet.EMPTY,
    log,
    onFailure: (code) => metrics.podResourcesFailures.inc({ code }),
  });
  assignments.subscribe((view) => {
    metrics.assignmentsCurrent.set(view.problems.length === 0 ? 1 : 0);
    metrics.exclusiveCpus.set(view.owned.size);
  });
  const ovs = mode === 'full' ? createOvs(parts, assignments) : undefined;

  const devicePlugin = async (signal: AbortSignal): Promise<void> => {
    const resources = advertisedResources((await facts.read()).networks, config.deviceSlots);
    const podResources = createPodResourcesClient(join(kubeletDir, POD_RESOURCES_SOCKET));
    const beforeStart = createBeforeStart({
      podResources,
      owned: () => assignments.view().owned,
      vacate: async (cpus, callSignal) => ovs?.vacate(cpus, callSignal),
    });
    try {
      await createDevicePlugin({ kubeletDir, resources, beforeStart, log, metrics }).run(signal);
    } finally {
      podResources.close();
    }
  };

  const kubeletConfig = createKubeletConfigReader(configCandidates(config), log);
  const report = createReport({
    client,
    nodeName,
    subscribe: (listener) => assignments.subscribe(listener),
    inputs: async () => {
      const { description: host, networks, networkProblems } = await facts.read();
      const { config: found, problems } = await kubeletConfig();
      return {
        host,
        kubeletConfig: found,
        kubeletConfigProblems: problems,
        view: assignments.view(),
        networks,
        networkProblems,
        pmdCpus: ovs?.pmdCpus() ?? CpuSet.EMPTY,
      };
    },
    log,
    metrics,
  });

  const duties: Duty[] = [
    {
      name: 'assignments',
      run: async (signal) => {
        await facts.read();
        await assignments.run(signal);
      },
    },
    { name: 'report', run: report.run },
    { name: 'heartbeat', run: createHeartbeat({ client, nodeName, log, metrics, wallClock: Date.now }).run },
    { name: 'device-plugin', run: devicePlugin },
  ];
  if (ovs !== undefined) duties.push({ name: 'ovs-affinity', run: ovs.run });
  return { duties, assignments };
}

function createOvs({ config, metrics, log }: AgentParts, assignments: Assignments): OvsAffinity {
  return createOvsAffinity({
    affinity: createAffinity(),
    threads: procThreads,
    machine: () => CpuSet.parse(readFileSync(MACHINE_ONLINE, 'utf8')),
    now: () => performance.now(),
    rundir: config.ovsRundir,
    enablerFile: config.ovsEnabler,
    growthDelay: config.ovsGrowthDelay,
    assignments,
    log,
    metrics,
  });
}

/** Reads the host's facts once; a failure is not remembered, so a duty that is run again asks again. */
function createFacts({ config: { sysfsRoot, networkMap }, log }: AgentParts) {
  let known: HostFacts | undefined;
  let reading: Promise<HostFacts> | undefined;
  return {
    known: () => known,
    read(): Promise<HostFacts> {
      reading ??= readHostFacts({ sysfsRoot, networkMap, log }).then(
        (facts) => {
          known = facts;
          return facts;
        },
        (error: unknown) => {
          reading = undefined;
          throw error;
        },
      );
      return reading;
    },
  };
}

function configCandidates({ kubeletConfig, kubeletDir }: NodeAgentConfig): string[] {
  if (kubeletConfig !== undefined) return [kubeletConfig];
  return [join(kubeletDir, 'config.yaml'), '/etc/kubernetes/kubelet.conf'];
}
