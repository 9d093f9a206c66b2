import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Server } from '@grpc/grpc-js';
import {
  createDevicePluginClient,
  type DevicePluginClient,
  KUBELET_SOCKET,
} from '../../kube/kubelet-api/device-plugin-client.ts';
import {
  type RegisterRequest,
  type RegistrationServer,
  RegistrationService,
} from '../../kube/kubelet-api/gen/device-plugin.ts';
import {
  type ContainerDevices,
  type PodResourcesListerServer,
  PodResourcesListerService,
} from '../../kube/kubelet-api/gen/pod-resources.ts';
import { bindUnix, SERVER_OPTIONS, unaryHandler } from '../../kube/kubelet-api/transport.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { podResourcesOf } from '../support/pod-resources.ts';
import { replaceFile } from './support.ts';

/** The kubelet's sockets and files, controlled by the test. */
export interface FakeKubelet {
  readonly directory: string;
  /** The answer of GetAllocatableResources, as a CPU list. */
  allocatable: string;
  /** The answer of List: `{'namespace/pod': {container: cpus}}`. */
  pods: Record<string, Record<string, string>>;
  /** Devices in the answer of List: `{'namespace/pod': {resource: ids}}`. */
  devices: Record<string, Record<string, string[]>>;
  /** Devices in the answer of GetAllocatableResources. */
  allocatableDevices: ContainerDevices[];
  /** From now on, answers every PodResources call in this way. */
  behaviour: () => void | Promise<void>;
  /** PodResources calls so far. */
  calls: number;
  readonly registrations: RegisterRequest[];
  start(): Promise<void>;
  /** Stops both services and removes their sockets. */
  stop(): Promise<void>;
  writeCheckpoint(defaultCpus: string, entries?: Record<string, Record<string, string>>, policy?: string): void;
  plugin(endpoint: string): DevicePluginClient;
}

export function createFakeKubelet(directory: string): FakeKubelet {
  const podSocket = join(directory, 'pod-resources/kubelet.sock');
  const registrationSocket = join(directory, 'device-plugins', KUBELET_SOCKET);
  for (const name of ['pod-resources', 'device-plugins']) mkdirSync(join(directory, name), { recursive: true });
  let servers: Server[] = [];

  const answer = async <Response>(make: () => Response): Promise<Response> => {
    kubelet.calls++;
    await kubelet.behaviour();
    return make();
  };
  const podsOf = () =>
    Object.entries(kubelet.pods).map(([key, containers]) => {
      const [namespace = '', name = ''] = key.split('/');
      return podResourcesOf({
        name,
        namespace,
        containers: Object.entries(containers).map(([container, cpus]) => ({
          name: container,
          cpuIds: CpuSet.parse(cpus).toArray().reverse(),
          devices: Object.entries(kubelet.devices[key] ?? {}).map(([resourceName, deviceIds]) => ({
            resourceName,
            deviceIds,
          })),
        })),
      });
    });
  const lister: PodResourcesListerServer = {
    list: unaryHandler(() => answer(() => ({ podResources: podsOf() }))),
    getAllocatableResources: unaryHandler(() =>
      answer(() => ({
        devices: kubelet.allocatableDevices,
        cpuIds: CpuSet.parse(kubelet.allocatable).toArray(),
        memory: [],
      })),
    ),
    get: unaryHandler(({ podName, podNamespace }) =>
      answer(() => ({
        podResources: podsOf().find(({ name, namespace }) => name === podName && namespace === podNamespace),
      })),
    ),
  };
  const registration: RegistrationServer = {
    register: unaryHandler((request) => {
      kubelet.registrations.push(request);
      return {};
    }),
  };

  const kubelet: FakeKubelet = {
    directory,
    allocatable: '',
    pods: {},
    devices: {},
    allocatableDevices: [],
    behaviour: () => {},
    calls: 0,
    registrations: [],
    async start() {
      const first = new Server(SERVER_OPTIONS);
      first.addService(PodResourcesListerService, lister);
      await bindUnix(first, podSocket);
      const second = new Server(SERVER_OPTIONS);
      second.addService(RegistrationService, registration);
      await bindUnix(second, registrationSocket);
      servers = [first, second];
    },
    async stop() {
      for (const server of servers) server.forceShutdown();
      servers = [];
      rmSync(podSocket, { force: true });
      rmSync(registrationSocket, { force: true });
    },
    writeCheckpoint(defaultCpus, entries = {}, policy = 'static') {
      const state = { policyName: policy, defaultCpuSet: defaultCpus, entries, checksum: 1 };
      replaceFile(join(directory, 'cpu_manager_state'), JSON.stringify(state));
    },
    plugin: (endpoint) => createDevicePluginClient(join(directory, 'device-plugins', endpoint)),
  };
  return kubelet;
}
