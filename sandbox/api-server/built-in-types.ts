import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import { at, type KubeObject, type Node, type Pod, type VirtualMachineInstance } from '../objects.ts';
import * as columns from './columns.ts';
import { collectionOf, type ResourceType } from './resource-types.ts';

const text = (...path: string[]) => {
  return (object: KubeObject) => {
    const value = at(object, ...path);
    return value === undefined || value === null ? '' : String(value);
  };
};

const NAME = { 'metadata.name': text('metadata', 'name') };
const NAME_AND_NAMESPACE = { ...NAME, 'metadata.namespace': text('metadata', 'namespace') };

type Given = Pick<ResourceType, 'version' | 'kind' | 'plural'> & Partial<Omit<ResourceType, 'view'>>;

function define<T extends KubeObject = KubeObject>(given: Given): ResourceType<T> {
  const namespaced = given.namespaced ?? true;
  return {
    group: '',
    shortNames: [],
    categories: [],
    namespaced,
    hasStatus: false,
    custom: false,
    names: 'subdomain',
    fields: namespaced ? NAME_AND_NAMESPACE : NAME,
    columns: columns.ANY,
    ...given,
  };
}

export const PODS = define<Pod>({
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  shortNames: ['po'],
  categories: ['all'],
  hasStatus: true,
  fields: {
    ...NAME_AND_NAMESPACE,
    'spec.nodeName': text('spec', 'nodeName'),
    'spec.schedulerName': text('spec', 'schedulerName'),
    'spec.serviceAccountName': text('spec', 'serviceAccountName'),
    'spec.restartPolicy': text('spec', 'restartPolicy'),
    'status.phase': text('status', 'phase'),
  },
  columns: columns.POD,
});

export const NODES = define<Node>({
  version: 'v1',
  kind: 'Node',
  plural: 'nodes',
  shortNames: ['no'],
  namespaced: false,
  hasStatus: true,
  fields: { ...NAME, 'spec.unschedulable': (object) => String(at(object, 'spec', 'unschedulable') === true) },
  columns: columns.NODE,
});

export const NAMESPACES = define({
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  shortNames: ['ns'],
  namespaced: false,
  hasStatus: true,
  names: 'label',
  fields: { ...NAME, 'status.phase': text('status', 'phase') },
  columns: columns.NAMESPACE,
});

export const EVENTS = define({
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  shortNames: ['ev'],
  fields: {
    ...NAME_AND_NAMESPACE,
    reason: text('reason'),
    type: text('type'),
    'involvedObject.kind': text('involvedObject', 'kind'),
    'involvedObject.name': text('involvedObject', 'name'),
    'involvedObject.namespace': text('involvedObject', 'namespace'),
    'involvedObject.uid': text('involvedObject', 'uid'),
    'involvedObject.apiVersion': text('involvedObject', 'apiVersion'),
    'involvedObject.fieldPath': text('involvedObject', 'fieldPath'),
    reportingComponent: text('reportingComponent'),
    source: text('source', 'component'),
  },
  columns: columns.EVENT,
});

const CONFIG_MAPS = define({
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  shortNames: ['cm'],
});
export const SECRETS = define({ version: 'v1', kind: 'Secret', plural: 'secrets' });
const SERVICE_ACCOUNTS = define({
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  shortNames: ['sa'],
});
const SERVICES = define({
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  shortNames: ['svc'],
  categories: ['all'],
  hasStatus: true,
  names: 'label',
});
export const LEASES = define({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  columns: columns.LEASE,
});
const ENDPOINTS = define({ version: 'v1', kind: 'Endpoints', plural: 'endpoints', shortNames: ['ep'] });
export const ENDPOINT_SLICES = define({
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
});
export const MUTATING_WEBHOOKS = define({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'MutatingWebhookConfiguration',
  plural: 'mutatingwebhookconfigurations',
  namespaced: false,
});
export const VALIDATING_WEBHOOKS = define({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  namespaced: false,
});
export const VIRTUAL_MACHINES = define({
  group: 'kubevirt.io',
  version: 'v1',
  kind: 'VirtualMachine',
  plural: 'virtualmachines',
  shortNames: ['vm', 'vms'],
  categories: ['all'],
  hasStatus: true,
  custom: true,
  columns: columns.VIRTUAL_MACHINE,
});
/** KubeVirt's CRD of instances has no status subresource: virt-controller and virt-handler write whole objects. */
export const VIRTUAL_MACHINE_INSTANCES = define<VirtualMachineInstance>({
  group: 'kubevirt.io',
  version: 'v1',
  kind: 'VirtualMachineInstance',
  plural: 'virtualmachineinstances',
  shortNames: ['vmi', 'vmis'],
  categories: ['all'],
  custom: true,
  columns: columns.VIRTUAL_MACHINE_INSTANCE,
});
export const NETWORK_ATTACHMENT_DEFINITIONS = define({
  group: 'k8s.cni.cncf.io',
  version: 'v1',
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
  CONFIG_MAPS,
  SECRETS,
  SERVICE_ACCOUNTS,
  SERVICES,
  LEASES,
  ENDPOINTS,
  ENDPOINT_SLICES,
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
