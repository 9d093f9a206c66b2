import { mkdirSync, renameSync, rmSync } from 'node:fs';
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
export class FakeKubelet {
  readonly directory: string;
  /** The directory of CDI; missing until the first claim. */
  readonly cdiDir: string;
  /** The answer of GetAllocatableResources, as a CPU list. */
  allocatable = '';
  /** The answer of List: `{'namespace/pod': {container: cpus}}`. */
  pods: Record<string, Record<string, string>> = {};
  /** Devices in the answer of List: `{'namespace/pod': {resource: ids}}`. */
  devices: Record<string, Record<string, string[]>> = {};
  /** Claims of the first container in the answer of List: `{'namespace/pod': {'namespace/claim': uid}}`. */
  claims: Record<string, Record<string, string>> = {};
  /** Devices in the answer of GetAllocatableResources. */
  allocatableDevices: ContainerDevices[] = [];
  /** PodResources calls so far. */
  calls = 0;
  /** Runs before each answer of PodResources: may wait, and throw. */
  beforeAnswer: () => Promise<void> = async () => {};
  readonly registrations: RegisterRequest[] = [];
  private readonly podSocket: string;
  private readonly registrationSocket: string;
  private servers: Server[] = [];

  /** @param podResources where PodResources is served, if another process serves the kubelet's socket */
  constructor(directory: string, { podResources = 'pod-resources', cdiDir = join(directory, 'cdi') } = {}) {
    this.directory = directory;
    this.cdiDir = cdiDir;
    this.podSocket = join(directory, podResources, 'kubelet.sock');
    this.registrationSocket = join(directory, 'device-plugins', KUBELET_SOCKET);
    for (const name of ['pod-resources', podResources, 'device-plugins'])
      mkdirSync(join(directory, name), { recursive: true });
  }

  async start(): Promise<void> {
    const lister: PodResourcesListerServer = {
      list: unaryHandler(async () => {
        await this.beforeAnswer();
        return { podResources: this.listedPods() };
      }),
      getAllocatableResources: unaryHandler(async () => {
        this.calls++;
        await this.beforeAnswer();
        return { devices: this.allocatableDevices, cpuIds: CpuSet.parse(this.allocatable).toArray(), memory: [] };
      }),
      get: unaryHandler(async ({ podName, podNamespace }) => {
        await this.beforeAnswer();
        const podResources = this.listedPods().find((pod) => pod.name === podName && pod.namespace === podNamespace);
        return { podResources };
      }),
    };
    const registration: RegistrationServer = {
      register: unaryHandler((request) => {
        this.registrations.push(request);
        return {};
      }),
    };
    const first = new Server(SERVER_OPTIONS);
    first.addService(PodResourcesListerService, lister);
    await listenOn(first, this.podSocket);
    const second = new Server(SERVER_OPTIONS);
    second.addService(RegistrationService, registration);
    await listenOn(second, this.registrationSocket);
    this.servers = [first, second];
  }

  private listedPods() {
    this.calls++;
    return Object.entries(this.pods).map(([key, containers]) => {
      const [namespace = '', name = ''] = key.split('/');
      return podResourcesOf({
        name,
        namespace,
        containers: Object.entries(containers).map(([container, cpus], i) => ({
          name: container,
          cpuIds: CpuSet.parse(cpus).toArray().reverse(),
          devices: Object.entries(this.devices[key] ?? {}).map(([name, deviceIds]) => ({
            resourceName: name,
            deviceIds,
          })),
          dynamicResources: i > 0 ? [] : Object.entries(this.claims[key] ?? {}).map(claimOf),
        })),
      });
    });
  }

  /** Stops both services. Their sockets stay, as those of a kubelet that was stopped. */
  kill(): void {
    for (const server of this.servers) server.forceShutdown();
    this.servers = [];
  }

  /** Stops both services and removes their sockets. */
  async stop(): Promise<void> {
    this.kill();
    rmSync(this.podSocket, { force: true });
    rmSync(this.registrationSocket, { force: true });
  }

  writeCheckpoint(defaultCpus: string, entries: Record<string, Record<string, string>> = {}, policy = 'static'): void {
    const state = { policyName: policy, defaultCpuSet: defaultCpus, entries, checksum: 1 };
    replaceFile(join(this.directory, 'cpu_manager_state'), JSON.stringify(state));
  }

  /** What dra-driver-cpu writes when it prepares a claim, and removes with undefined. */
  writeClaim(uid: string, cpus: string | undefined): void {
    mkdirSync(this.cdiDir, { recursive: true });
    const file = join(this.cdiDir, `dra.k8s.io-cpu_claim-${uid}.json`);
    if (cpus === undefined) {
      rmSync(file);
      return;
    }
    const env = [`DRA_CPUSET_${uid}=${cpus}`, `DRA_CPUSET_ASSIGNED=${cpus}`];
    const devices = [{ name: `claim-${uid}`, containerEdits: { env } }];
    replaceFile(file, JSON.stringify({ cdiVersion: '0.8.0', kind: 'dra.k8s.io/cpu', devices }));
  }

  plugin(endpoint: string): DevicePluginClient {
    return createDevicePluginClient(join(this.directory, 'device-plugins', endpoint));
  }
}

/** A server that closes removes the name at which it began to listen: here, one that is gone by then. */
async function listenOn(server: Server, path: string): Promise<void> {
  await bindUnix(server, `${path}.new`);
  renameSync(`${path}.new`, path);
}

/** A claim on the grouped CPUs of a NUMA node, as the kubelet lists it. */
function claimOf([key, uid]: [string, string]): DynamicResource {
  const [claimNamespace = '', claimName = ''] = key.split('/');
  const cdiDevices = [{ name: `dra.k8s.io/cpu=claim-${uid}` }];
  const claim = { cdiDevices, driverName: 'dra.cpu', poolName: 'n', deviceName: 'cpudevnuma000' };
  return { claimNamespace, claimName, claimResources: [claim] };
}
