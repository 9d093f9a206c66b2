import * as z from 'zod';
import { isNotFound, type KubeClient } from '../../kube/client.ts';
import { objectMeta } from '../../kube/resources.ts';
import { startedInstance, virtualMachine } from '../../kube/virtual-machines.ts';
import { CPU_MASK_ANNOTATION } from '../../model/names.ts';
import { type MaskedVm, maskedVmOf } from '../../model/placement/mask-fit.ts';
import { type InstanceFacts, pauseOf } from '../../model/vm-state/facts.ts';
import { readAgentLeases } from '../support/agents.ts';
import { hostsOf, type ReportedHost } from '../support/hosts.ts';
import { assertReported, readAll, readTopologies } from '../support/lists.ts';

export interface FoundVm {
  readonly namespace: string;
  readonly name: string;
  readonly kind: 'VirtualMachine' | 'VirtualMachineInstance';
  readonly masked: MaskedVm;
  /** The annotation, unchanged. */
  readonly text: string;
  /** Node of each of its launchers, by the launcher's uid. */
  readonly running:
    | {
        readonly node: string;
        readonly pods: Readonly<Record<string, string>>;
        readonly pause: InstanceFacts['pause'];
      }
    | undefined;
}

export interface VerifyFacts {
  readonly vms: readonly FoundVm[];
  readonly nodes: readonly { readonly name: string; readonly labels: ReadonlyMap<string, string> }[];
  readonly hosts: readonly ReportedHost[];
}

const labelled = z.object({ metadata: objectMeta });
const API = '/apis/kubevirt.io/v1';

/**
 * Reads VMs, VMIs without a VM, nodes and reports. Without KubeVirt there are no VMs.
 * @param namespace undefined: all
 * @param now milliseconds since 1970
 * @throws CliError if Plumbline is not installed or no node has a report; KubeError
 */
export async function readVerifyFacts(
  client: KubeClient,
  namespace: string | undefined,
  now: number,
): Promise<VerifyFacts> {
  const within = namespace === undefined ? API : `${API}/namespaces/${namespace}`;
  const [machines, instances, nodes, topologies, leases] = await Promise.all([
    readIfInstalled(client, `${within}/virtualmachines`, virtualMachine),
    readIfInstalled(client, `${within}/virtualmachineinstances`, startedInstance),
    readAll(client, '/api/v1/nodes', labelled),
    readTopologies(client),
    readAgentLeases(client, now),
  ]);
  assertReported(topologies);
  const { hosts } = hostsOf(topologies);
  const running = new Map(instances.map(({ metadata, status }) => [keyOf(metadata), runningOf({ metadata, status })]));
  const found = [
    ...machines.map(({ metadata, spec: { template, instancetype } }) => ({
      kind: 'VirtualMachine' as const,
      metadata,
      template: {
        metadata: { annotations: template.metadata?.annotations },
        spec: template.spec,
        vcpusUnknown: instancetype != null,
      },
    })),
    ...instances
      .filter(({ metadata }) => !metadata.ownerReferences?.some(({ kind }) => kind === 'VirtualMachine'))
      .map(({ metadata, spec }) => ({
        kind: 'VirtualMachineInstance' as const,
        metadata,
        template: { metadata, spec, vcpusUnknown: false },
      })),
  ];
  const vms = found.flatMap(({ kind, metadata, template }): FoundVm[] => {
    const masked = maskedVmOf(template);
    if (masked === undefined) return [];
    const { namespace: home = '', name = '' } = metadata;
    const text = template.metadata.annotations?.[CPU_MASK_ANNOTATION] ?? '';
    return [{ kind, namespace: home, name, masked, text, running: running.get(keyOf(metadata)) }];
  });
  return {
    vms: vms.sort((a, b) => keyOf(a).localeCompare(keyOf(b))),
    nodes: nodes.map(({ metadata }) => ({
      name: metadata.name ?? '',
      labels: new Map(Object.entries(metadata.labels ?? {})),
    })),
    // The last report of an agent with an expired Lease is old.
    hosts: hosts.filter(({ name }) => leases?.silent.has(name) !== true),
  };
}

/** Empty without KubeVirt; a missing permission is an error, as an empty list would look like success. @throws KubeError */
async function readIfInstalled<Item>(...args: Parameters<typeof readAll<Item>>): Promise<Item[]> {
  try {
    return await readAll(...args);
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

const keyOf = ({ namespace = '', name = '' }: { namespace?: string | undefined; name?: string | undefined }) =>
  `${namespace}/${name}`;

function runningOf(vmi: Pick<z.infer<typeof startedInstance>, 'metadata' | 'status'>): FoundVm['running'] {
  const { nodeName, activePods, phase } = vmi.status ?? {};
  if (nodeName === undefined || phase !== 'Running') return undefined;
  return { node: nodeName, pods: activePods ?? {}, pause: pauseOf(vmi) };
}
