import type { KubeletState } from '../../model/kubelet/state.ts';
import { formatTime } from '../../model/lease/timing.ts';
import { NODES } from '../api-server/built-in-types.ts';
import type { LocalClient } from '../clients/local-client.ts';
import type { KubeNode } from '../objects.ts';
import type { EmulatedKubeletSettings } from './managers.ts';

export interface KubeletFacts {
  readonly name: string;
  readonly settings: EmulatedKubeletSettings;
  readonly labels: Readonly<Record<string, string>>;
  /** Resources other than CPUs and the devices of plugins: memory, hugepages, devices of plugins that are not emulated. */
  readonly resources: Readonly<Record<string, string>>;
}

type Amounts = Record<string, string>;

/** The labels that KubeVirt's node labeller and the kubelet set on a node that can run VMs. */
function nodeLabels({ name, settings, labels }: KubeletFacts): Record<string, string> {
  return {
    'kubernetes.io/hostname': name,
    'kubernetes.io/arch': 'amd64',
    'kubernetes.io/os': 'linux',
    'kubevirt.io/schedulable': 'true',
    'machine-type.node.kubevirt.io/q35': 'true',
    ...(settings.cpuManagerPolicy === 'static' && { cpumanager: 'true', 'kubevirt.io/cpumanager': 'true' }),
    ...labels,
  };
}

function nodeAmounts({ settings, resources }: KubeletFacts, pools: KubeletState['pools']) {
  const { host, reserved } = settings;
  const capacity: Amounts = { cpu: String(host.online.size), pods: '110', ...resources };
  const allocatable: Amounts = { ...capacity, cpu: String(host.online.minus(reserved).size) };
  for (const [resource, { devices }] of pools) {
    capacity[resource] = String(devices.length);
    allocatable[resource] = String(devices.filter(({ healthy }) => healthy).length);
  }
  return { capacity, allocatable };
}

function nodeObjectOf(facts: KubeletFacts, pools: KubeletState['pools'], now: string): KubeNode {
  const times = { lastHeartbeatTime: now, lastTransitionTime: now };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: facts.name, labels: nodeLabels(facts) },
    spec: {},
    status: {
      ...nodeAmounts(facts, pools),
      conditions: [
        { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status', ...times },
      ],
      addresses: [{ type: 'Hostname', address: facts.name }],
      nodeInfo: {
        kubeletVersion: facts.settings.version,
        operatingSystem: 'linux',
        architecture: 'amd64',
        osImage: 'Plumbline sandbox',
        containerRuntimeVersion: 'sandbox://1',
        kernelVersion: '',
        machineID: '',
        systemUUID: '',
        bootID: '',
      },
    },
  };
}

/** Creates or updates the Node. Devices without a registered plugin are not allocatable. */
export async function publishNode(client: LocalClient, facts: KubeletFacts, pools: KubeletState['pools']) {
  const desired = nodeObjectOf(facts, pools, formatTime(Date.now()));
  const present = client.get(NODES, undefined, facts.name);
  if (!present) return void (await client.create(NODES, desired));
  await client.edit(NODES, present, (draft) => {
    draft.metadata.labels = { ...draft.metadata.labels, ...nodeLabels(facts) };
  });
  await client.edit(NODES, present, (draft) => bringUpToDate(draft, desired), 'status');
}

function bringUpToDate(draft: KubeNode, { status: desired }: KubeNode): void {
  const before = draft.status ?? {};
  const gone = Object.keys(before.allocatable ?? {}).filter((name) => desired?.allocatable?.[name] === undefined);
  const conditions = (before.conditions ?? []).filter(({ type }) => type !== 'Ready');
  draft.status = {
    ...before,
    ...desired,
    // Another program may have set where this node is reached.
    addresses: before['addresses'] ?? desired?.['addresses'],
    capacity: { ...before.capacity, ...desired?.capacity },
    allocatable: { ...Object.fromEntries(gone.map((name) => [name, '0'])), ...desired?.allocatable },
    conditions: [...conditions, ...(desired?.conditions ?? [])],
  };
}
