import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import type { KubeObject, Node, Pod, VirtualMachineInstance } from '../objects.ts';
import type { Column } from './columns.ts';
import * as columns from './columns.ts';

/** One served resource in one version. `T` is the typed view of its objects. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** Whether only /status can write the status. */
  readonly hasStatus: boolean;
  /** Whether it comes from a CustomResourceDefinition. Such objects do not support strategic merge patches. */
  readonly custom: boolean;
  readonly names: 'subdomain' | 'label';
  /** Paths of the fields that field selectors support. */
  readonly fields: readonly string[];
  readonly columns: readonly Column[];
  /** Never set; carries the type of the view. */
  readonly view?: T;
}

export const apiVersionOf = ({ group, version }: Pick<ResourceType, 'group' | 'version'>) =>
  group === '' ? version : `${group}/${version}`;

/** Name of the collection in the store that contains a resource. */
export const collectionOf = ({ group, plural }: Pick<ResourceType, 'group' | 'plural'>) => `${group}/${plural}`;

type Given = Pick<ResourceType, 'kind' | 'plural'> & Partial<Omit<ResourceType, 'view'>>;

function define<T extends KubeObject = KubeObject>({
  namespaced = true,
  fields = [],
  ...given
}: Given): ResourceType<T> {
  return {
    group: '',
    version: 'v1',
    shortNames: [],
    categories: [],
    namespaced,
    hasStatus: false,
    custom: false,
    names: 'subdomain',
    fields: ['metadata.name', ...(namespaced ? ['metadata.namespace'] : []), ...fields],
    columns: columns.ANY,
    ...given,
  };
}

export const PODS = define<Pod>({
  kind: 'Pod',
  plural: 'pods',
  shortNames: ['po'],
  categories: ['all'],
  hasStatus: true,
  fields: ['spec.nodeName', 'spec.schedulerName', 'spec.serviceAccountName', 'spec.restartPolicy', 'status.phase'],
  columns: columns.POD,
});
export const NODES = define<Node>({
  kind: 'Node',
  plural: 'nodes',
  shortNames: ['no'],
  namespaced: false,
  hasStatus: true,
  columns: columns.NODE,
});
export const NAMESPACES = define({
  kind: 'Namespace',
  plural: 'namespaces',
  shortNames: ['ns'],
  namespaced: false,
  hasStatus: true,
  names: 'label',
  fields: ['status.phase'],
  columns: columns.NAMESPACE,
});
const INVOLVED = ['kind', 'name', 'namespace', 'uid', 'apiVersion', 'fieldPath'].map(
  (field) => `involvedObject.${field}`,
);
export const EVENTS = define({
  kind: 'Event',
  plural: 'events',
  shortNames: ['ev'],
  fields: ['reason', 'type', 'reportingComponent', ...INVOLVED],
  columns: columns.EVENT,
});
export const SECRETS = define({ kind: 'Secret', plural: 'secrets' });
export const LEASES = define({
  group: 'coordination.k8s.io',
  kind: 'Lease',
  plural: 'leases',
  columns: columns.LEASE,
});

const ADMISSION = { group: 'admissionregistration.k8s.io', namespaced: false };
export const MUTATING_WEBHOOKS = define({
  ...ADMISSION,
  kind: 'MutatingWebhookConfiguration',
  plural: 'mutatingwebhookconfigurations',
});
export const VALIDATING_WEBHOOKS = define({
  ...ADMISSION,
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
});

const KUBEVIRT = { group: 'kubevirt.io', categories: ['all'], custom: true };
export const VIRTUAL_MACHINES = define({
  ...KUBEVIRT,
  kind: 'VirtualMachine',
  plural: 'virtualmachines',
  shortNames: ['vm', 'vms'],
  hasStatus: true,
  columns: columns.VIRTUAL_MACHINE,
});
/** KubeVirt's CRD of instances has no status subresource: virt-controller and virt-handler write whole objects. */
export const VIRTUAL_MACHINE_INSTANCES = define<VirtualMachineInstance>({
  ...KUBEVIRT,
  kind: 'VirtualMachineInstance',
  plural: 'virtualmachineinstances',
  shortNames: ['vmi', 'vmis'],
  columns: columns.VIRTUAL_MACHINE_INSTANCE,
});
export const NETWORK_ATTACHMENT_DEFINITIONS = define({
  group: 'k8s.cni.cncf.io',
  kind: 'NetworkAttachmentDefinition',
  plural: 'network-attachment-definitions',
  shortNames: ['net-attach-def'],
  custom: true,
});
export const NODE_TOPOLOGIES = define({
  group: NODE_TOPOLOGY_API.group,
  version: NODE_TOPOLOGY_API.version,
  kind: NODE_TOPOLOGY_API.kind,
  plural: NODE_TOPOLOGY_API.plural,
  shortNames: ['ntopo'],
  namespaced: false,
  hasStatus: true,
  custom: true,
  columns: columns.NODE_TOPOLOGY,
});

export const BUILT_IN_TYPES: readonly ResourceType[] = [
  PODS,
  NODES,
  NAMESPACES,
  EVENTS,
  define({ kind: 'ConfigMap', plural: 'configmaps', shortNames: ['cm'] }),
  SECRETS,
  define({ kind: 'ServiceAccount', plural: 'serviceaccounts', shortNames: ['sa'] }),
  define({
    kind: 'Service',
    plural: 'services',
    shortNames: ['svc'],
    categories: ['all'],
    hasStatus: true,
    names: 'label',
  }),
  LEASES,
  define({ kind: 'Endpoints', plural: 'endpoints', shortNames: ['ep'] }),
  define({ group: 'discovery.k8s.io', kind: 'EndpointSlice', plural: 'endpointslices' }),
  MUTATING_WEBHOOKS,
  VALIDATING_WEBHOOKS,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  NODE_TOPOLOGIES,
];

const BY_COLLECTION = new Map(BUILT_IN_TYPES.map((type) => [collectionOf(type), type]));

export const typeOfCollection = (collection: string): ResourceType | undefined => BY_COLLECTION.get(collection);

export function typeAt(group: string, version: string, plural: string): ResourceType | undefined {
  const type = typeOfCollection(collectionOf({ group, plural }));
  return type?.version === version ? type : undefined;
}
