import type { KubernetesObject } from '../control-plane.ts';

/** Kinds of other products, whether they have a status subresource, and whether they are cluster-scoped. */
const KINDS: readonly (readonly [
  group: string,
  version: string,
  kind: string,
  hasStatus: boolean,
  isCluster?: true,
])[] = [
  ['kubevirt.io', 'v1', 'VirtualMachine', true],
  // KubeVirt's definition of instances has no status subresource: its controllers write complete objects.
  ['kubevirt.io', 'v1', 'VirtualMachineInstance', false],
  ['kubevirt.io', 'v1', 'VirtualMachineInstanceReplicaSet', true],
  ['pool.kubevirt.io', 'v1beta1', 'VirtualMachinePool', true],
  ['instancetype.kubevirt.io', 'v1beta1', 'VirtualMachineInstancetype', false],
  ['instancetype.kubevirt.io', 'v1beta1', 'VirtualMachineClusterInstancetype', false, true],
  ['instancetype.kubevirt.io', 'v1beta1', 'VirtualMachinePreference', false],
  ['instancetype.kubevirt.io', 'v1beta1', 'VirtualMachineClusterPreference', false, true],
  ['snapshot.kubevirt.io', 'v1beta1', 'VirtualMachineRestore', true],
  ['snapshot.kubevirt.io', 'v1beta1', 'VirtualMachineSnapshotContent', true],
  ['clone.kubevirt.io', 'v1beta1', 'VirtualMachineClone', true],
  ['k8s.cni.cncf.io', 'v1', 'NetworkAttachmentDefinition', false],
];

const pluralOf = (kind: string) =>
  kind === 'NetworkAttachmentDefinition' ? 'network-attachment-definitions' : `${kind.toLowerCase()}s`;
const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;

/** The definitions of other products, reduced to what the tests use: any content, and the scope of the real ones. */
export const FOREIGN_DEFINITIONS: readonly KubernetesObject[] = KINDS.map(
  ([group, version, kind, hasStatus, isCluster]) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${pluralOf(kind)}.${group}` },
    spec: {
      group,
      scope: isCluster ? 'Cluster' : 'Namespaced',
      names: { kind, plural: pluralOf(kind), singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          ...(hasStatus && { subresources: { status: {} } }),
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: open, status: open } } },
        },
      ],
    },
  }),
);
