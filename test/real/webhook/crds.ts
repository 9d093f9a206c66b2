import type { KubernetesObject } from '../control-plane.ts';

/**
 * The definitions of other products, reduced to what is read here: any content, the scope and the subresources of the
 * real ones.
 */
interface Kind {
  readonly group: string;
  readonly versions: readonly string[];
  readonly kind: string;
  readonly plural: string;
  readonly hasStatus: boolean;
}

const KINDS: readonly Kind[] = [
  { group: 'kubevirt.io', versions: ['v1'], kind: 'VirtualMachine', plural: 'virtualmachines', hasStatus: true },
  // KubeVirt's definition of instances has no status subresource: its controllers write whole objects.
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
];

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;

export const FOREIGN_DEFINITIONS: readonly KubernetesObject[] = KINDS.map(
  ({ group, versions, kind, plural, hasStatus }) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
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
