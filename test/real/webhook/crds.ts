import type { KubernetesObject } from '../control-plane.ts';

/**
 * The definitions of other products, reduced to what the tests use: any content, the scope and the subresources of the
 * real ones.
 */
interface Kind {
  readonly group: string;
  readonly versions: readonly string[];
  readonly kind: string;
  readonly plural: string;
  readonly hasStatus: boolean;
  readonly scope?: 'Cluster';
}

const KINDS: readonly Kind[] = [
  { group: 'kubevirt.io', versions: ['v1'], kind: 'VirtualMachine', plural: 'virtualmachines', hasStatus: true },
  // KubeVirt's definition of instances has no status subresource: its controllers write complete objects.
  {
    group: 'kubevirt.io',
    versions: ['v1'],
    kind: 'VirtualMachineInstance',
    plural: 'virtualmachineinstances',
    hasStatus: false,
  },
  {
    group: 'kubevirt.io',
    versions: ['v1'],
    kind: 'VirtualMachineInstanceReplicaSet',
    plural: 'virtualmachineinstancereplicasets',
    hasStatus: true,
  },
  {
    group: 'pool.kubevirt.io',
    versions: ['v1beta1'],
    kind: 'VirtualMachinePool',
    plural: 'virtualmachinepools',
    hasStatus: true,
  },
  {
    group: 'k8s.cni.cncf.io',
    versions: ['v1'],
    kind: 'NetworkAttachmentDefinition',
    plural: 'network-attachment-definitions',
    hasStatus: false,
  },
  ...['Instancetype', 'Preference'].flatMap((what): Kind[] =>
    (['', 'Cluster'] as const).map((scope) => ({
      group: 'instancetype.kubevirt.io',
      versions: ['v1beta1'],
      kind: `VirtualMachine${scope}${what}`,
      plural: `virtualmachine${scope}${what}s`.toLowerCase(),
      hasStatus: false,
      ...(scope === 'Cluster' && { scope }),
    })),
  ),
  ...['Restore', 'SnapshotContent'].map((what) => ({
    group: 'snapshot.kubevirt.io',
    versions: ['v1beta1'],
    kind: `VirtualMachine${what}`,
    plural: `virtualmachine${what}s`.toLowerCase(),
    hasStatus: true,
  })),
  {
    group: 'clone.kubevirt.io',
    versions: ['v1beta1'],
    kind: 'VirtualMachineClone',
    plural: 'virtualmachineclones',
    hasStatus: true,
  },
];

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;

export const FOREIGN_DEFINITIONS: readonly KubernetesObject[] = KINDS.map(
  ({ group, versions, kind, plural, hasStatus, scope = 'Namespaced' }) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: versions.map((name) => ({
        name,
        served: true,
        storage: true,
        ...(hasStatus ? { subresources: { status: {} } } : {}),
        schema: {
          openAPIV3Schema: { type: 'object', properties: { spec: open, status: open } },
        },
      })),
    },
  }),
);
