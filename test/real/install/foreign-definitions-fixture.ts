import type { KubernetesObject } from '../control-plane-stage.ts';
import { definitionOf, FOREIGN_DEFINITIONS, type ForeignKind } from '../webhook/crds-fixture.ts';

const text = { type: 'string' };
const flag = { type: 'boolean' };
const texts = { type: 'array', items: text };
const map = { type: 'object', additionalProperties: text };
const object = (properties: object, required: readonly string[] = []) => ({ type: 'object', properties, required });
const fields = (type: object, ...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, type]));
const list = (items: object) => ({ type: 'array', items });
const labelSelector = object({
  matchLabels: map,
  matchExpressions: list(object({ key: text, operator: text, values: texts })),
});
const duration = {
  type: 'string',
  pattern: '^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$',
};

const rule = object(
  {
    ...fields(text, 'alert', 'record'),
    expr: { 'x-kubernetes-int-or-string': true },
    for: duration,
    ...fields(map, 'labels', 'annotations'),
  },
  ['expr'],
);
const endpoint = object({
  ...fields(text, 'port', 'path'),
  interval: duration,
  relabelings: list(object({ sourceLabels: texts, targetLabel: text })),
});

const CERTIFICATE = {
  ...fields(text, 'secretName', 'commonName', 'duration', 'renewBefore'),
  ...fields(texts, 'dnsNames', 'ipAddresses', 'usages'),
  issuerRef: object(fields(text, 'name', 'kind', 'group'), ['name']),
  isCA: flag,
  privateKey: object({
    algorithm: { type: 'string', enum: ['RSA', 'ECDSA', 'Ed25519'] },
    rotationPolicy: { type: 'string', enum: ['Never', 'Always'] },
  }),
};
const MONITOR = {
  jobLabel: text,
  namespaceSelector: object({ any: flag, matchNames: texts }),
  selector: labelSelector,
  endpoints: list(endpoint),
};
const ISSUER = { selfSigned: object({ crlDistributionPoints: texts }), ca: object({ secretName: text }) };
const RULES = { groups: list(object({ name: text, rules: list(rule) }, ['name'])) };

const kindOf = (group: string, kind: string, properties: object, required?: readonly string[]): ForeignKind => ({
  group,
  version: 'v1',
  kind,
  schema: { spec: object(properties, required) },
});

const KINDS: readonly ForeignKind[] = [
  kindOf('cert-manager.io', 'Issuer', ISSUER),
  kindOf('cert-manager.io', 'Certificate', CERTIFICATE, ['secretName', 'issuerRef']),
  kindOf('monitoring.coreos.com', 'ServiceMonitor', MONITOR, ['selector', 'endpoints']),
  kindOf('monitoring.coreos.com', 'PrometheusRule', RULES),
  {
    group: 'security.openshift.io',
    version: 'v1',
    kind: 'SecurityContextConstraints',
    plural: 'securitycontextconstraints',
    scope: 'Cluster',
    schema: {
      ...fields(flag, 'allowHostDirVolumePlugin', 'allowHostIPC', 'allowHostNetwork', 'allowHostPID', 'allowHostPorts'),
      ...fields(flag, 'allowPrivilegeEscalation', 'allowPrivilegedContainer', 'readOnlyRootFilesystem'),
      ...fields(texts, 'allowedCapabilities', 'defaultAddCapabilities', 'requiredDropCapabilities', 'seccompProfiles'),
      ...fields(texts, 'volumes', 'users', 'groups'),
      ...fields(object({ type: text }), 'fsGroup', 'runAsUser', 'supplementalGroups'),
      seLinuxContext: object({ type: text, seLinuxOptions: object({ type: text }) }),
    },
  },
  // Watched by the console, and not in the manifests.
  { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachineInstanceMigration' },
  ...['Subnet', 'Vlan'].map((kind) => ({ group: 'kubeovn.io', version: 'v1', kind, scope: 'Cluster' as const })),
];

/**
 * The definitions of other products whose objects are in the manifests. They are reduced to the fields of the
 * manifests, with their real types, and closed: strict validation refuses other fields, such as mistyped ones.
 */
export const DEFINITIONS: readonly KubernetesObject[] = [...FOREIGN_DEFINITIONS, ...KINDS.map(definitionOf)];

export const KUBEVIRTS = definitionOf({ group: 'kubevirt.io', version: 'v1', kind: 'KubeVirt' });
