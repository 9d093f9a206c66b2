import { CpuSet } from '../../model/cpu-set.ts';
import type { DeviceHolder } from '../device-plugin/allocation-check.ts';
import { createAllocationChecker } from '../device-plugin/allocation-checker.ts';
import { createPluginThread } from '../device-plugin/plugin-thread.ts';
import { advertisedResources } from '../device-plugin/resources.ts';
import { DEFAULT_MAX_PODS } from '../host/kubelet-config.ts';
import { readNode } from '../kube-objects/lease.ts';
import type { AgentParts, HostParts } from './parts.ts';

/** Maximum seconds that a container's start waits for the main thread: the check and a vacate take two at most. */
const ANSWER_DEADLINE_SECONDS = 5;

/** Creates the device plugin: the resources to advertise, and the checks before a container with its devices starts. */
export function createDevicePluginDuty(
  parts: AgentParts,
  { facts, assignments, networks, ovs, kubeletConfig, refusals }: HostParts,
) {
  const { client, nodeName, config } = parts;
  const { kubeletDir, allocationCheck: policy, logLevel } = config;
  const allocationChecker = createAllocationChecker({ ...parts, policy, refusals });

  const wholeCoresOnly = async () => {
    const { config: kubelet } = await kubeletConfig();
    return kubelet?.cpuManager.policy === 'static' && kubelet.cpuManager.options['full-pcpus-only'] === 'true';
  };

  /** From the kubelet's configuration, or else from the Node on the API server. */
  const maxPods = async (signal: AbortSignal): Promise<number | undefined> => {
    const { config: kubelet } = await kubeletConfig();
    if (kubelet !== undefined) return kubelet.maxPods;
    const node = await readNode(client, nodeName, signal).catch(() => undefined);
    return node?.maxPods;
  };

  /** The check precedes the vacate: if it refuses the container, no CPUs need to be vacated. */
  const beforeStart = async (
    resource: string,
    holder: DeviceHolder | undefined,
    signal: AbortSignal,
  ): Promise<string | undefined> => {
    const { host } = await facts.read();
    if (holder !== undefined) {
      const advertised = advertisedResources(networks.view().networks, 1).find(({ name }) => name === resource);
      const cells = CpuSet.of(advertised?.cells ?? []);
      const request = { holder, resource, cells, host, wholeCoresOnly: await wholeCoresOnly() };
      const refusal = await allocationChecker.check(request, signal);
      if (refusal !== undefined) return refusal;
    }
    // While the container's CPUs are unknown, they are among the CPUs known to be owned.
    await ovs?.vacate(holder?.cpus ?? assignments.view().owned, signal);
    return undefined;
  };

  return createPluginThread({
    ...parts,
    program: parts.pluginProgram,
    data: async () => ({
      kubeletDir,
      host: (await facts.read()).description,
      policy,
      logLevel,
      answerWithin: ANSWER_DEADLINE_SECONDS,
    }),
    advertisement: async (signal) => {
      if (!networks.isComplete) return undefined;
      const slots = (await maxPods(signal)) ?? DEFAULT_MAX_PODS;
      const { networks: nodeNetworks, down } = networks.view();
      const resources = advertisedResources(nodeNetworks, slots, down);
      return { resources, wholeCoresOnly: await wholeCoresOnly() };
    },
    subscribe: networks.subscribe,
    beforeStart,
  });
}
