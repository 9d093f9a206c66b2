import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Server, status } from '@grpc/grpc-js';
import {
  type ContainerDevices,
  type ContainerResources,
  type PodResources,
  type PodResourcesListerServer,
  PodResourcesListerService,
} from '../../kube/kubelet-api/gen/pod-resources.ts';
import { bindUnix, closeServer, RpcError, SERVER_OPTIONS, unaryHandler } from '../../kube/kubelet-api/transport.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import type { KubeletState } from '../../model/kubelet/state.ts';
import type { KubePod } from '../objects.ts';

interface PodResourcesDeps {
  readonly directory: string;
  readonly pods: () => Iterable<KubePod>;
  readonly state: () => KubeletState;
  /** The CPUs that the CPU manager can assign; empty under policy none. */
  readonly allocatableCpus: CpuSet;
}

/** Serves PodResources v1: the CPUs and devices of each container. */
export function createPodResources({ directory, pods, state, allocatableCpus }: PodResourcesDeps) {
  const socket = join(directory, 'kubelet.sock');
  let server: Server | undefined;

  const lister: PodResourcesListerServer = {
    list: unaryHandler(() => ({ podResources: [...pods()].map((pod) => describePod(pod, state())) })),
    getAllocatableResources: unaryHandler(() => {
      const devices = [...state().pools].flatMap(([resource, pool]) => {
        const healthy = pool.devices.filter((device) => device.healthy);
        // Once for each NUMA node of a device; a device whose topology names none is not listed.
        return healthy.flatMap(({ id, nodes }) =>
          nodes === undefined
            ? [containerDevices(resource, [id], undefined)]
            : nodes.map((node) => containerDevices(resource, [id], [node])),
        );
      });
      return { devices, cpuIds: allocatableCpus.toArray(), memory: [] };
    }),
    get: unaryHandler(() => {
      throw new RpcError(status.UNIMPLEMENTED, 'the agent uses List');
    }),
  };
  return {
    async start(): Promise<void> {
      await mkdir(directory, { recursive: true });
      await rm(socket, { force: true });
      server = new Server(SERVER_OPTIONS);
      server.addService(PodResourcesListerService, lister);
      await bindUnix(server, socket);
    },
    async stop(): Promise<void> {
      if (server) await closeServer(server, 0.1);
      await rm(socket, { force: true });
    },
  };
}

/** Init containers that end are not listed; restartable ones are. */
function describePod(pod: KubePod, state: KubeletState): PodResources {
  const { uid = '', name, namespace = '' } = pod.metadata;
  const sidecars = (pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  const containers = [...sidecars, ...pod.spec.containers].map((container): ContainerResources => {
    const devices = state.devices.get(uid)?.get(container.name) ?? new Map<string, ReadonlySet<string>>();
    return {
      name: container.name,
      cpuIds: state.assignments.get(uid)?.get(container.name)?.toArray() ?? [],
      devices: [...devices].map(([resource, ids]) => {
        const pool = state.pools.get(resource)?.devices ?? [];
        const nodes = pool.filter((device) => ids.has(device.id)).flatMap((device) => device.nodes ?? []);
        return containerDevices(resource, [...ids], nodes.length > 0 ? nodes : undefined);
      }),
      memory: [],
      dynamicResources: [],
    };
  });
  return { name, namespace, containers };
}

function containerDevices(
  resourceName: string,
  deviceIds: string[],
  nodes: readonly number[] | undefined,
): ContainerDevices {
  const topology = nodes && { nodes: [...new Set(nodes)].map((ID) => ({ ID })) };
  return { resourceName, deviceIds, topology };
}
