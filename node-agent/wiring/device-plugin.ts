import { CpuSet } from '../../model/cpu-set.ts';
import { hintCells } from '../../model/networks/preferred-hint.ts';
import { sleep } from '../../runtime/time.ts';
import { createAllocationChecker } from '../device-plugin/allocation-checker.ts';
import type { DeviceHolder } from '../device-plugin/holder.ts';
import { createPluginThread } from '../device-plugin/plugin-thread.ts';
import { advertisedResources, slotsOf } from '../device-plugin/resources.ts';
import { DEFAULT_MAX_PODS } from '../host/kubelet-config.ts';
import { readNode } from '../kube-objects/node.ts';
import type { AgentParts, HostParts } from './parts.ts';

/** Seconds that a container's start waits for the main thread: the allocation check and a vacate take two at most. */
const ANSWER_WITHIN = 5;

/** Seconds until a kubelet whose configuration is not known is asked again. */
const ASK_AGAIN = 5;

/** The device plugin: what it advertises, and what a container with its devices waits for. */
export function createDevicePluginDuty(
  { config, client, events, pluginProgram, log, metrics }: AgentParts,
  { facts, assignments, networks, ovs, kubeletConfig, refusals, near }: HostParts,
) {
  const { kubeletDir, allocationCheck: policy, logLevel } = config;
  const allocationChecker = createAllocationChecker({ client, events, policy, refusals, log, metrics });

  const wholeCoresOnly = async () => {
    const { config: found } = await kubeletConfig();
    return found?.cpuManager.policy === 'static' && found.cpuManager.options['full-pcpus-only'] === 'true';
  };

  /** What the kubelet is configured with, or has reported to the API server. */
  const maxPods = async (signal: AbortSignal): Promise<number | undefined> => {
    const { config: found } = await kubeletConfig();
    if (found !== undefined) return found.maxPods;
    const node = await readNode(client, config.nodeName, signal).catch(() => undefined);
    return node?.maxPods;
  };

  let isRemembered = false;
  let advertiseAgain = () => {};
  /** What former agents served here: not waited for, since no network's device depends on it. */
  const rememberNear = async (signal: AbortSignal): Promise<void> => {
    if (isRemembered) return;
    const node = await readNode(client, config.nodeName, signal).catch(() => undefined);
    if (node === undefined || isRemembered) return;
    isRemembered = true;
    near.remember(node.resources);
    advertiseAgain();
  };

  let isWaiting = false;
  /** Nothing tells when the kubelet's configuration can be read. */
  const askLater = (signal: AbortSignal): void => {
    if (isWaiting) return;
    isWaiting = true;
    const again = () => {
      isWaiting = false;
      advertiseAgain();
    };
    sleep(ASK_AGAIN, signal).then(again, () => undefined);
  };

  /** By the networks' NUMA nodes: those that their preferred devices name at the moment; undefined where that is not known. */
  const hint = async (signal: AbortSignal): Promise<((cells: CpuSet) => CpuSet) | undefined> => {
    void rememberNear(signal);
    const { config: found } = await kubeletConfig();
    const { host } = await facts.read();
    const { reserved, owned } = assignments.view();
    if (found === undefined) askLater(signal);
    if (found === undefined || reserved === undefined) return undefined;
    const { pmdCpus } = networks.view();
    const polled = ovs === undefined ? pmdCpus : pmdCpus.union(ovs.pmdCpus());
    const givesMemory = found.memoryManager.policy === 'Static';
    const node = { host, topologyPolicy: found.topologyManager.policy, givesMemory, reserved, owned, polled };
    return (cells) => hintCells(node, cells);
  };

  /** Checked first: a container that is refused does not start, and nothing has to make room for it. */
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
    // While it is unknown which CPUs are this container's, they are among those that are known to be owned.
    await ovs?.vacate(holder?.cpus ?? assignments.view().owned, signal);
    return undefined;
  };

  return createPluginThread({
    program: pluginProgram,
    data: async () => ({
      kubeletDir,
      host: (await facts.read()).description,
      policy,
      logLevel,
      answerWithin: ANSWER_WITHIN,
    }),
    advertisement: async (signal) => {
      if (!networks.known) return undefined;
      const slots = Math.max(config.deviceSlots ?? 0, (await maxPods(signal)) ?? DEFAULT_MAX_PODS);
      const { networks: known, down } = networks.view();
      const resources = advertisedResources(known, slots, config.uplinkCarrier === 'follow' ? down : new Set());
      const preferred = near.advertised(known, slotsOf(slots), await hint(signal));
      return { resources: [...resources, ...preferred], wholeCoresOnly: await wholeCoresOnly() };
    },
    subscribe(listener) {
      advertiseAgain = listener;
      const ends = [networks, assignments].map((source) => source.subscribe(listener));
      return () => {
        for (const end of ends) end();
      };
    },
    beforeStart,
    log,
    metrics,
  });
}
