import type { KubernetesObject } from '../control-plane.ts';
import { FOREIGN_DEFINITIONS } from '../webhook/crds.ts';

/**
 * The definitions of other products whose objects are in the manifests. They are reduced to the fields of the
 * manifests, with their real types, and closed: strict validation refuses other fields, such as mistyped ones.
 */
interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly scope?: 'Cluster';
  /** Properties of the object in addition to its metadata. */
  readonly schema: Readonly<Record<string, object>>;
}

const text = { type: 'string' };
const flag = { type: 'boolean' };
const texts = { type: 'array', items: text };
const map = { type: 'object', additionalProperties: text };
const object = (properties: object, required: readonly string[] = []) => ({ type: 'object', properties, required });
const fields = (type: object, ...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, type]));
const list = (items: object) => ({ type: 'array', items });
const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
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
    alert: text,
    record: text,
    expr: { 'x-kubernetes-int-or-string': true },
    for: duration,
    labels: map,
    annotations: map,
  },
  ['expr'],
);
const endpoint = object({
  port: text,
  path: text,
  interval: duration,
  relabelings: list(object({ sourceLabels: texts, targetLabel: text })),
});

const KINDS: readonly Kind[] = [
  {
    group: 'cert-manager.io',
    version: 'v1',
    kind: 'Issuer',
    plural: 'issuers',
    schema: {
      spec: object({ selfSigned: object({ crlDistributionPoints: texts }), ca: object({ secretName: text }) }),
    },
  },
  {
    group: 'cert-manager.io',
    version: 'v1',
    kind: 'Certificate',
    plural: 'certificates',
    schema: {
      spec: object(
        {
          secretName: text,
          issuerRef: object({ name: text, kind: text, group: text }, ['name']),
          dnsNames: texts,
          ipAddresses: texts,
          isCA: flag,
          commonName: text,
          duration: text,
          renewBefore: text,
          usages: texts,
          privateKey: object({
            algorithm: { type: 'string', enum: ['RSA', 'ECDSA', 'Ed25519'] },
            rotationPolicy: { type: 'string', enum: ['Never', 'Always'] },
          }),
        },
        ['secretName', 'issuerRef'],
      ),
    },
  },
  {
    group: 'monitoring.coreos.com',
    version: 'v1',
    kind: 'ServiceMonitor',
    plural: 'servicemonitors',
    schema: {
      spec: object(
        {
          jobLabel: text,
          namespaceSelector: object({ any: flag, matchNames: texts }),
          selector: labelSelector,
          endpoints: list(endpoint),
        },
        ['selector', 'endpoints'],
      ),
    },
  },
  {
    group: 'monitoring.coreos.com',
    version: 'v1',
    kind: 'PrometheusRule',
    plural: 'prometheusrules',
    schema: { spec: object({ groups: list(object({ name: text, rules: list(rule) }, ['name'])) }) },
  },
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
  ...['Subnet', 'Vlan'].map((kind) => ({
    group: 'kubeovn.io',
    version: 'v1',
    kind,
    plural: `${kind.toLowerCase()}s`,
    scope: 'Cluster' as const,
    schema: { spec: anything },
  })),
];

const definitionOf = ({ group, version, kind, plural, scope, schema }: Kind): KubernetesObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: scope ?? 'Namespaced',
    names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: schema } },
      },
    ],
  },
});

export const DEFINITIONS: readonly KubernetesObject[] = [...FOREIGN_DEFINITIONS, ...KINDS.map(definitionOf)];

/** KubeVirt's own CR, which only the guide writes. */
export const KUBEVIRTS = definitionOf({
  ...{ group: 'kubevirt.io', version: 'v1', kind: 'KubeVirt', plural: 'kubevirts' },
  schema: { spec: anything },
});
