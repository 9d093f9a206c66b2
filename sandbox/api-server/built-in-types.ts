import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import type { KubeMigration, KubeNode, KubeObject, KubePod, KubeVmi } from '../objects.ts';

export interface ResourceType<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly hasStatus: boolean;
  /** Whether it comes from a CustomResourceDefinition. Such objects do not support strategic merge patches. */
  readonly custom: boolean;
  readonly names: 'subdomain' | 'label';
  readonly fields: readonly string[];
  readonly view?: T;
}

export const apiVersionOf = ({ group, version }: Pick<ResourceType, 'group' | 'version'>) =>
  group === '' ? version : `${group}/${version}`;

export const collectionOf = ({ group, plural }: Pick<ResourceType, 'group' | 'plural'>) => `${group}/${plural}`;

const types: ResourceType[] = [];

/** In the order of their definitions below. */
export const BUILT_IN_TYPES: readonly ResourceType[] = types;

function define<T extends KubeObject = KubeObject>(
  kind: string,
  plural: string,
  { namespaced = true, fields = [], ...rest }: Partial<Omit<ResourceType, 'kind' | 'plural' | 'view'>> = {},
): ResourceType<T> {
  const type = {
    group: '',
    version: 'v1',
    kind,
    plural,
    shortNames: [],
    categories: [],
    namespaced,
    hasStatus: false,
    custom: false,
    names: 'subdomain',
    fields: ['metadata.name', ...(namespaced ? ['metadata.namespace'] : []), ...fields],
    ...rest,
  } as const;
  types.push(type);
  return type;
}

export const PODS = define<KubePod>('Pod', 'pods', {
  shortNames: ['po'],
  categories: ['all'],
  hasStatus: true,
  fields: ['spec.nodeName', 'spec.schedulerName', 'spec.serviceAccountName', 'spec.restartPolicy', 'status.phase'],
});
export const NODES = define<KubeNode>('Node', 'nodes', { shortNames: ['no'], namespaced: false, hasStatus: true });
export const NAMESPACES = define('Namespace', 'namespaces', {
  shortNames: ['ns'],
  namespaced: false,
  hasStatus: true,
  names: 'label',
  fields: ['status.phase'],
});
const INVOLVED = ['kind', 'name', 'namespace', 'uid', 'apiVersion', 'fieldPath'].map(
  (field) => `involvedObject.${field}`,
);
export const EVENTS = define('Event', 'events', {
  shortNames: ['ev'],
  fields: ['reason', 'type', 'reportingComponent', ...INVOLVED],
});
define('ConfigMap', 'configmaps', { shortNames: ['cm'] });
export const SECRETS = define('Secret', 'secrets');
define('ServiceAccount', 'serviceaccounts', { shortNames: ['sa'] });
define('Service', 'services', { shortNames: ['svc'], categories: ['all'], hasStatus: true, names: 'label' });
export const LEASES = define('Lease', 'leases', { group: 'coordination.k8s.io' });
define('Endpoints', 'endpoints', { shortNames: ['ep'] });
export const ENDPOINT_SLICES = define('EndpointSlice', 'endpointslices', { group: 'discovery.k8s.io' });

const WORKLOADS = { group: 'apps', categories: ['all'], hasStatus: true };
export const DEPLOYMENTS = define('Deployment', 'deployments', { ...WORKLOADS, shortNames: ['deploy'] });
export const DAEMON_SETS = define('DaemonSet', 'daemonsets', { ...WORKLOADS, shortNames: ['ds'] });

const RBAC = { group: 'rbac.authorization.k8s.io' };
export const ROLES = define('Role', 'roles', RBAC);
export const ROLE_BINDINGS = define('RoleBinding', 'rolebindings', RBAC);

const ADMISSION = { group: 'admissionregistration.k8s.io', namespaced: false };
export const MUTATING_WEBHOOKS = define('MutatingWebhookConfiguration', 'mutatingwebhookconfigurations', ADMISSION);
export const VALIDATING_WEBHOOKS = define(
  'ValidatingWebhookConfiguration',
  'validatingwebhookconfigurations',
  ADMISSION,
);

export const CUSTOM_RESOURCE_DEFINITIONS = define('CustomResourceDefinition', 'customresourcedefinitions', {
  group: 'apiextensions.k8s.io',
  shortNames: ['crd', 'crds'],
  namespaced: false,
  hasStatus: true,
});

const KUBEVIRT = { group: 'kubevirt.io', categories: ['all'], custom: true };
export const VIRTUAL_MACHINES = define('VirtualMachine', 'virtualmachines', {
  ...KUBEVIRT,
  shortNames: ['vm', 'vms'],
  hasStatus: true,
});
/** KubeVirt's CRD of instances has no status subresource: virt-controller and virt-handler write whole objects. */
export const VIRTUAL_MACHINE_INSTANCES = define<KubeVmi>('VirtualMachineInstance', 'virtualmachineinstances', {
  ...KUBEVIRT,
  shortNames: ['vmi', 'vmis'],
});
export const MIGRATIONS = define<KubeMigration>('VirtualMachineInstanceMigration', 'virtualmachineinstancemigrations', {
  ...KUBEVIRT,
  shortNames: ['vmim', 'vmims'],
  hasStatus: true,
});
export const NETWORK_ATTACHMENT_DEFINITIONS = define('NetworkAttachmentDefinition', 'network-attachment-definitions', {
  group: 'k8s.cni.cncf.io',
  shortNames: ['net-attach-def'],
  custom: true,
});
export const NODE_TOPOLOGIES = define(NODE_TOPOLOGY_API.kind, NODE_TOPOLOGY_API.plural, {
  group: NODE_TOPOLOGY_API.group,
  version: NODE_TOPOLOGY_API.version,
  shortNames: ['ntopo'],
  namespaced: false,
  hasStatus: true,
  custom: true,
});

const BY_COLLECTION = new Map(types.map((type) => [collectionOf(type), type]));

export const typeOfCollection = (collection: string): ResourceType | undefined => BY_COLLECTION.get(collection);

export function typeAt(group: string, version: string, plural: string): ResourceType | undefined {
  const type = typeOfCollection(collectionOf({ group, plural }));
  return type?.version === version ? type : undefined;
}
