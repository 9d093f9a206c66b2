import { join } from 'node:path';
import { createPodResourcesClient, POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { AllocationChecker } from '../device-plugin/allocation-checker.ts';
import { beforeStartCheck, type StartCheck } from '../device-plugin/before-start.ts';
import { DevicePlugin } from '../device-plugin/device-plugin.ts';
import { advertisedResources } from '../device-plugin/plugin-server.ts';
import { DEFAULT_MAX_PODS } from '../host/kubelet-config.ts';
import { readNode } from '../kube-objects/lease.ts';
import { ChangeSignal, repeat } from '../lifecycle/duty.ts';
import type { AgentParts, HostParts } from './parts.ts';

/** Maximum seconds that a container's start waits for the check: reading the pod and a vacate take three at most. */
const ANSWER_DEADLINE_SECONDS = 5;

/** Seconds between reads of a value without notifications: the kubelet's maxPods. */
const CHECK_SECONDS = 60;

/** Creates the device plugin: the resources to advertise, and the checks before a container with its devices starts. */
export function createDevicePluginDuty(
  parts: AgentParts,
  { runs, assignments, networks, vacate, kubeletConfig, refusals }: HostParts,
) {
  const { client, nodeName, config, metrics, log } = parts;
  const { kubeletDir, allocationCheck: policy } = config;
  const allocationChecker = new AllocationChecker({ ...parts, policy, refusals });

  const wholeCoresOnly = async () => {
    const { config: kubelet } = await kubeletConfig();
    return kubelet?.cpuManager.policy === 'static' && kubelet.cpuManager.options['full-pcpus-only'] === 'true';
  };

  /** From the kubelet's configuration, or else from the Node on the API server. */
  const maxPods = async (signal: AbortSignal): Promise<number | undefined> => {
    const { config: kubelet } = await kubeletConfig();
    return (kubelet ?? (await readNode(client, nodeName, signal).catch(() => undefined)))?.maxPods;
  };

  /** The check precedes the vacate: if it refuses the container, no CPUs need to be vacated. */
  const check: StartCheck = async (resource, holder, signal) => {
    const { host } = await runs.read();
    if (holder !== undefined) {
      const advertised = advertisedResources(networks.view().networks, 1).find(({ name }) => name === resource);
      const cells = CpuSet.of(advertised?.cells ?? []);
      const request = { holder, resource, cells, host, wholeCoresOnly: await wholeCoresOnly() };
      const refusal = await allocationChecker.check(request, signal);
      if (refusal !== undefined) return refusal;
    }
    // While the container's CPUs are unknown, they are among the CPUs known to be owned.
    const cpus = holder?.cpus ?? assignments.view().owned;
    await vacate(cpus, signal);
    return undefined;
  };

  return {
    async run(signal: AbortSignal): Promise<void> {
      // Each check needs the host.
      await runs.read();
      const podResources = createPodResourcesClient(join(kubeletDir, POD_RESOURCES_SOCKET));
      const count = (metric: typeof metrics.preStarts) => (resource: string, outcome: string) =>
        metric.inc({ resource: metrics.resourceLabel(resource), outcome });
      const plugin = new DevicePlugin({
        kubeletDir,
        beforeStart: beforeStartCheck({
          podResources,
          check,
          answerWithin: ANSWER_DEADLINE_SECONDS,
          log,
          onOutcome: count(metrics.preStarts),
        }),
        onRegistration: count(metrics.registrations),
        log,
      });
      const changes = new ChangeSignal();
      const end = networks.subscribe(changes.set);
      const advertise = async () => {
        const slots = networks.isComplete && ((await maxPods(signal)) ?? DEFAULT_MAX_PODS);
        const { networks: nodeNetworks, down } = networks.view();
        if (slots !== false) plugin.advertise(advertisedResources(nodeNetworks, slots, down));
        return CHECK_SECONDS;
      };
      const warning = 'reading the devices to advertise failed; keeping the last ones';
      const rounds = { problems: new ProblemLog(log), warning, changes } as const;
      try {
        await Promise.all([plugin.run(signal), repeat(signal, advertise, rounds)]);
      } finally {
        end();
        podResources.close();
      }
    },
  };
}
