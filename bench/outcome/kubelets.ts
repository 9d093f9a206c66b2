import { CpuSet } from '../../model/cpu-set.ts';
import { createHost } from '../../model/host.ts';
import type { Device } from '../../model/kubelet/devices.ts';
import { podRequestOf } from '../../model/kubelet/pod-request.ts';
import type { KubeletState } from '../../model/kubelet/state.ts';
import { PLACED_RESOURCE, physnetResource } from '../../model/names.ts';
import { countDevices, type DeviceResource } from '../../node-agent/assignments/devices.ts';
import { NODES, PODS } from '../../sandbox/api-server/built-in-types.ts';
import { ApiError } from '../../sandbox/api-server/errors.ts';
import type { LocalChange } from '../../sandbox/clients/local-client.ts';
import { publishNode } from '../../sandbox/kubelet/node-object.ts';
import { isReadinessStale, setReady, setRejected, setRunning } from '../../sandbox/kubelet/pod-status.ts';
import { type EmulatedKubeletSettings, rulesOf } from '../../sandbox/kubelet/settings.ts';
import type { KubePod } from '../../sandbox/objects.ts';
import { shortage } from '../../sandbox/pod-requests.ts';
import type { RemoteClient } from '../../test/support/remote-client.ts';
import { cellOf, type Fleet, hostOf, PHYSNETS, reservedOf, VF_RESOURCE, VFS, vfCellOf } from './fleets.ts';

/** The kubelets of a fleet. Each admits the pods bound to it by the rules in model/kubelet. */
export interface Kubelets {
  readonly nodes: readonly KubeletNode[];
  start(): Promise<void>;
  stop(): void;
}

export interface KubeletNode {
  readonly name: string;
  readonly settings: EmulatedKubeletSettings;
  /** Changes with every admission and release. */
  readonly state: KubeletState;
  /** Admitted pods that still exist. */
  readonly pods: ReadonlyMap<string, KubePod>;
}

/** The result of a kubelet's admission of a launcher. */
export type Admitted =
  | { readonly pod: KubePod; readonly node: string; readonly cpus: CpuSet }
  | { readonly pod: KubePod; readonly node: string; readonly reason: string; readonly message: string };

export interface KubeletsOptions {
  readonly client: RemoteClient;
  readonly fleet: Fleet;
  /** Whether Plumbline's agents serve devices for the physnets. */
  readonly agents: boolean;
  readonly onAdmission: (outcome: Admitted) => void;
  /** Called after CPUs of a node were assigned or released. */
  readonly onChange: (node: KubeletNode) => void;
  readonly onFault: (error: unknown) => void;
}

const VERSION = 'v1.36.2';
/** Number of devices that an agent serves for each physnet, equal to the pod limit of a node. */
const SLOTS = 110;
const RESOURCES = {
  memory: '256Gi',
  'ephemeral-storage': '100Gi',
  'devices.kubevirt.io/kvm': '1k',
  'devices.kubevirt.io/tun': '1k',
  'devices.kubevirt.io/vhost-net': '1k',
};

export const nodeName = (index: number): string => `node-${String(index).padStart(3, '0')}`;

export function createKubelets(options: KubeletsOptions): Kubelets {
  const { client, fleet, onFault } = options;
  const nodes = new Map(
    Array.from({ length: fleet.nodes }, (_, i) => [nodeName(i), createNode(nodeName(i), options)] as const),
  );
  let end = () => {};
  return {
    nodes: [...nodes.values()],
    async start() {
      for (const { register } of nodes.values()) await register();
      end = client.follow(PODS, (change) => {
        const { nodeName: name } = change.object.spec;
        if (name !== undefined) nodes.get(name)?.onPod(change)?.catch(onFault);
      });
    },
    stop: () => end(),
  };
}

function settingsOf(fleet: Fleet): EmulatedKubeletSettings {
  return {
    version: VERSION,
    host: createHost(hostOf(fleet)),
    reserved: CpuSet.parse(reservedOf(fleet)),
    cpuManagerPolicy: 'static',
    cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' },
    topologyManagerPolicy: fleet.policy,
    topologyManagerScope: 'container',
  };
}

function devicesOf(fleet: Fleet, agents: boolean): Map<string, readonly Device[]> {
  const devices = (resource: string, length: number, nodes?: readonly number[]) =>
    [
      resource,
      Array.from({ length }, (_, i) => ({ id: `${resource}-${i}`, healthy: true, ...(nodes && { nodes }) })),
    ] as const;
  const vfs = devices(VF_RESOURCE, VFS, [vfCellOf(fleet)]);
  if (!agents) return new Map([vfs]);
  return new Map([
    vfs,
    ...PHYSNETS.map((physnet) => devices(physnetResource(physnet), SLOTS, [cellOf(physnet, fleet)])),
    devices(PLACED_RESOURCE, SLOTS),
  ]);
}

/** The devices of other plugins than the agent, as the agent counts them. */
export function countedDevices({ pools, devices }: KubeletState): readonly DeviceResource[] {
  const healthy = [...pools].flatMap(([resourceName, pool]) =>
    pool.devices.map(({ id, nodes = [] }) => ({
      resourceName,
      deviceIds: [id],
      topology: { nodes: nodes.map((ID) => ({ ID })) },
    })),
  );
  const inUse = [...devices.values()].flatMap((containers) =>
    [...containers.values()].flatMap((resources) =>
      [...resources].map(([resourceName, ids]) => ({ resourceName, deviceIds: [...ids] })),
    ),
  );
  return countDevices(healthy, inUse);
}

function createNode(name: string, { client, fleet, agents, onAdmission, onChange }: KubeletsOptions) {
  const settings = settingsOf(fleet);
  const rules = rulesOf(settings);
  const devices = devicesOf(fleet, agents);
  let state = rules.initialState(new Map([...devices].map(([resource, list]) => [resource, { devices: list }])));
  const pods = new Map<string, KubePod>();
  const refused = new Set<string>();
  const time = () => new Date().toISOString().replace(/\.\d+Z/, 'Z');
  const node: KubeletNode = {
    name,
    settings,
    get state() {
      return state;
    },
    pods,
  };

  const setStatus = async (pod: KubePod, change: (draft: KubePod) => void) => {
    try {
      await client.edit(PODS, pod, (draft) => draft.metadata.uid === pod.metadata.uid && change(draft), 'status');
    } catch (error) {
      if (!(error instanceof ApiError && error.http === 404)) throw error;
    }
  };
  const reject = async (pod: KubePod, reason: string, message: string) => {
    refused.add(pod.metadata.uid ?? '');
    onAdmission({ pod, node: name, reason, message });
    await setStatus(pod, (draft) => setRejected(draft, reason, message, time()));
    await client.record('kubelet', pod, { type: 'Warning', reason, message });
  };
  const admit = async (pod: KubePod, uid: string) => {
    const admission = rules.admit(state, podRequestOf(pod, uid));
    if (!admission.admitted) return reject(pod, admission.reason, admission.message);
    const given = admission.state.devices.get(uid);
    const short = shortage(pod, pods.values(), client.get(NODES, undefined, name), given);
    if (short !== undefined) return reject(pod, short.reason, short.message);
    state = admission.state;
    pods.set(uid, pod);
    onChange(node);
    await setStatus(pod, (draft) => setRunning(draft, time()));
    const cpus = admission.containers.find((container) => container.name === 'compute')?.cpus ?? CpuSet.EMPTY;
    onAdmission({ pod, node: name, cpus });
  };
  const release = (uid: string) => {
    refused.delete(uid);
    if (!pods.delete(uid)) return;
    state = rules.remove(state, uid);
    onChange(node);
  };
  const remove = async (pod: KubePod, uid: string) => {
    try {
      await client.delete(PODS, pod, { gracePeriodSeconds: 0, preconditions: { uid } });
    } catch (error) {
      if (!(error instanceof ApiError && error.http === 409)) throw error;
    }
  };

  return Object.assign(node, {
    async register() {
      await publishNode(client, { name, settings, labels: {}, resources: RESOURCES }, state.pools);
    },
    async onPod({ type, object: pod }: LocalChange<KubePod>) {
      const { uid = '', deletionTimestamp } = pod.metadata;
      const phase = pod.status?.phase;
      if (type === 'DELETED') release(uid);
      else if (deletionTimestamp) {
        release(uid);
        await remove(pod, uid);
      } else if (phase === 'Failed' || phase === 'Succeeded') release(uid);
      else if (pods.has(uid)) {
        pods.set(uid, pod);
        if (isReadinessStale(pod)) await setStatus(pod, (draft) => setReady(draft, time()));
      } else if (!refused.has(uid) && phase !== 'Running') await admit(pod, uid);
    },
  });
}
