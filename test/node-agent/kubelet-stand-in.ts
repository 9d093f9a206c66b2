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
  type DynamicResource,
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
  /** The directory of CDI; missing until the first claim. */
  readonly cdiDir: string;
  /** The answer of GetAllocatableResources, as a CPU list. */
  allocatable: string;
  /** The answer of List: `{'namespace/pod': {container: cpus}}`. */
  pods: Record<string, Record<string, string>>;
  /** Devices in the answer of List: `{'namespace/pod': {resource: ids}}`. */
  devices: Record<string, Record<string, string[]>>;
  /** Claims of the first container in the answer of List: `{'namespace/pod': {'namespace/claim': uid}}`. */
  claims: Record<string, Record<string, string>>;
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
  /** What dra-driver-cpu writes when it prepares a claim, and removes with undefined. */
  writeClaim(uid: string, cpus: string | undefined): void;
  plugin(endpoint: string): DevicePluginClient;
}

export function createFakeKubelet(directory: string): FakeKubelet {
  const podSocket = join(directory, 'pod-resources/kubelet.sock');
  const registrationSocket = join(directory, 'device-plugins', KUBELET_SOCKET);
  for (const name of ['pod-resources', 'device-plugins']) mkdirSync(join(directory, name), { recursive: true });
  const cdiDir = join(directory, 'cdi');
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
        containers: Object.entries(containers).map(([container, cpus], i) => ({
          name: container,
          cpuIds: CpuSet.parse(cpus).toArray().reverse(),
          devices: Object.entries(kubelet.devices[key] ?? {}).map(([resourceName, deviceIds]) => ({
            resourceName,
            deviceIds,
          })),
          dynamicResources: i > 0 ? [] : Object.entries(kubelet.claims[key] ?? {}).map(claimOf),
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
    cdiDir,
    allocatable: '',
    pods: {},
    devices: {},
    claims: {},
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
    writeClaim(uid, cpus) {
      mkdirSync(cdiDir, { recursive: true });
      const file = join(cdiDir, `dra.k8s.io-cpu_claim-${uid}.json`);
      if (cpus === undefined) return rmSync(file);
      const env = [`DRA_CPUSET_${uid}=${cpus}`, `DRA_CPUSET_ASSIGNED=${cpus}`];
      const devices = [{ name: `claim-${uid}`, containerEdits: { env } }];
      replaceFile(file, JSON.stringify({ cdiVersion: '0.8.0', kind: 'dra.k8s.io/cpu', devices }));
    },
    plugin: (endpoint) => createDevicePluginClient(join(directory, 'device-plugins', endpoint)),
  };
  return kubelet;
}

/** A claim on the grouped CPUs of a NUMA node, as the kubelet lists it. */
function claimOf([key, uid]: [string, string]): DynamicResource {
  const [claimNamespace = '', claimName = ''] = key.split('/');
  const cdiDevices = [{ name: `dra.k8s.io/cpu=claim-${uid}` }];
  const claim = { cdiDevices, driverName: 'dra.cpu', poolName: 'n', deviceName: 'cpudevnuma000' };
  return { claimNamespace, claimName, claimResources: [claim] };
}
