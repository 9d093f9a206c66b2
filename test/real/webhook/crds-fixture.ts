import type { KubernetesObject } from '../control-plane-stage.ts';

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;

export interface ForeignKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural?: string;
  readonly scope?: 'Cluster';
  readonly hasStatus?: true;
  readonly schema?: Readonly<Record<string, object>>;
}

export function definitionOf({
  group,
  version,
  kind,
  plural,
  scope,
  hasStatus,
  schema,
}: ForeignKind): KubernetesObject {
  const singular = kind.toLowerCase();
  const names = { kind, plural: plural ?? `${singular}s`, singular, listKind: `${kind}List` };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${names.plural}.${group}` },
    spec: {
      group,
      scope: scope ?? 'Namespaced',
      names,
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          ...(hasStatus && { subresources: { status: {} } }),
          schema: { openAPIV3Schema: { type: 'object', properties: schema ?? { spec: open, status: open } } },
        },
      ],
    },
  };
}

const [V1, BETA] = ['v1', 'v1beta1'];
const KINDS: readonly ForeignKind[] = [
  { group: 'kubevirt.io', version: V1, kind: 'VirtualMachine', hasStatus: true },
  // KubeVirt's definition of instances has no status subresource: its controllers write complete objects.
  { group: 'kubevirt.io', version: V1, kind: 'VirtualMachineInstance' },
  { group: 'kubevirt.io', version: V1, kind: 'VirtualMachineInstanceMigration', hasStatus: true },
  { group: 'kubevirt.io', version: V1, kind: 'VirtualMachineInstanceReplicaSet', hasStatus: true },
  { group: 'pool.kubevirt.io', version: BETA, kind: 'VirtualMachinePool', hasStatus: true },
  ...(['Instancetype', 'Preference'] as const).flatMap((what): ForeignKind[] => [
    { group: 'instancetype.kubevirt.io', version: BETA, kind: `VirtualMachine${what}` },
    { group: 'instancetype.kubevirt.io', version: BETA, kind: `VirtualMachineCluster${what}`, scope: 'Cluster' },
  ]),
  { group: 'snapshot.kubevirt.io', version: BETA, kind: 'VirtualMachineRestore', hasStatus: true },
  { group: 'snapshot.kubevirt.io', version: BETA, kind: 'VirtualMachineSnapshotContent', hasStatus: true },
  { group: 'clone.kubevirt.io', version: BETA, kind: 'VirtualMachineClone', hasStatus: true },
  {
    group: 'k8s.cni.cncf.io',
    version: V1,
    kind: 'NetworkAttachmentDefinition',
    plural: 'network-attachment-definitions',
  },
];

export const FOREIGN_DEFINITIONS: readonly KubernetesObject[] = KINDS.map(definitionOf);
