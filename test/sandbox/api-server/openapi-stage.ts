import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../../cli/demo/until.ts';
import { apiVersionOf, BUILT_IN_TYPES, type ResourceType } from '../../../sandbox/api-server/built-in-types.ts';
import { referencesIn } from '../../../sandbox/api-server/openapi.ts';
import { isRecord, type JsonRecord, type JsonValue } from '../../../sandbox/objects.ts';
import { installStrategy, KUBEVIRT } from '../../kubevirt/install-strategy-fixture.ts';
import { type ControlPlane, type KubernetesObject, startControlPlane } from '../../real/control-plane-stage.ts';
import { objectsOf } from '../../real/install/rendered-fixture.ts';
import { definitionOf } from '../../real/webhook/crds-fixture.ts';
import { root } from '../../support/bundles.ts';

/** The file that the sandbox reads. */
export const COMPONENTS = join(root, 'sandbox/api-server/gen/components.json');

/** Source: network-attachment-definition-client, artifacts/networks-crd.yaml */
const NETWORK_ATTACHMENT_DEFINITIONS = definitionOf({
  group: 'k8s.cni.cncf.io',
  version: 'v1',
  kind: 'NetworkAttachmentDefinition',
  plural: 'network-attachment-definitions',
  schema: { spec: { type: 'object', properties: { config: { type: 'string' } } } },
});

/** The properties that kubectl and the check of unknown fields use. */
const KEPT = new Set([
  ...['type', 'format', '$ref', 'allOf', 'oneOf', 'anyOf', 'items', 'required', 'enum', 'additionalProperties'],
  ...['x-kubernetes-group-version-kind', 'x-kubernetes-patch-merge-key', 'x-kubernetes-patch-strategy'],
  ...['x-kubernetes-list-type', 'x-kubernetes-list-map-keys', 'x-kubernetes-map-type'],
  ...['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-int-or-string', 'x-kubernetes-embedded-resource'],
]);

/** The schemas of the sandbox's types and what they refer to, from a real API server with KubeVirt's definitions. */
export async function realComponents(): Promise<Record<string, JsonRecord>> {
  const plane = await startControlPlane();
  try {
    const ours = objectsOf(readFileSync(join(root, 'manifests/base/crd/nodetopologies.yaml'), 'utf8'));
    await plane.create(...ours, NETWORK_ATTACHMENT_DEFINITIONS, ...(await kubeVirtDefinitions(plane)));
    const found: Record<string, JsonRecord> = {};
    const groups = new Set(BUILT_IN_TYPES.map(pathOfDocument));
    for (const path of [...groups].sort()) {
      const types = BUILT_IN_TYPES.filter((type) => pathOfDocument(type) === path);
      const schemas = await until(`the document of ${path}`, 120, () => documentOf(plane, path, types));
      const add = (name: string): void => {
        const schema = schemas[name];
        if (schema === undefined || found[name] !== undefined) return;
        const reduced = name.startsWith(OWN) ? ownSchema(schema) : reducedSchema(schema);
        found[name] = reduced;
        for (const reference of referencesIn(reduced)) add(reference);
      };
      for (const name of Object.keys(schemas)) if (types.some((type) => isOf(schemas[name], type))) add(name);
    }
    return Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1)));
  } finally {
    await plane.stop();
  }
}

/** The prefix of Plumbline's own schemas. */
const OWN = 'dev.plumbline.';

const pathOfDocument = (type: ResourceType) => `${type.group === '' ? 'api' : 'apis'}/${apiVersionOf(type)}`;

/** Undefined until it has every type: definitions are served some time after their creation. */
async function documentOf(plane: ControlPlane, path: string, types: readonly ResourceType[]) {
  try {
    const document = (await plane.client.get(`/openapi/v3/${path}`)) as {
      components: { schemas: Record<string, JsonRecord> };
    };
    const { schemas } = document.components;
    return types.every((type) => Object.values(schemas).some((schema) => isOf(schema, type))) ? schemas : undefined;
  } catch {
    return undefined;
  }
}

/** As virt-operator installs them, without the conversion that it serves itself. */
async function kubeVirtDefinitions({ client, adminKubeconfig, create }: ControlPlane): Promise<KubernetesObject[]> {
  await create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: KUBEVIRT } });
  const installed = await installStrategy({ client, kubeconfig: adminKubeconfig, registry: 'registry.example' });
  const wanted = ['virtualmachines.kubevirt.io', 'virtualmachineinstances.kubevirt.io'];
  return installed.filter(
    ({ kind, metadata }) => kind === 'CustomResourceDefinition' && wanted.includes(metadata.name),
  );
}

function isOf(schema: JsonRecord | undefined, { group, version, kind }: ResourceType): boolean {
  const own = schema?.['x-kubernetes-group-version-kind'];
  return (
    Array.isArray(own) &&
    own.some((one) => isRecord(one) && one.group === group && one.version === version && one.kind === kind)
  );
}

/** Plumbline's own type, with the descriptions of its own fields. */
function ownSchema(schema: JsonRecord): JsonRecord {
  const { properties } = schema;
  const status = isRecord(properties) ? properties.status : undefined;
  if (!isRecord(properties) || !isRecord(status)) throw new Error('the definition of NodeTopology has no status');
  const reduced = reducedSchema(schema);
  return { ...reduced, properties: { ...(reduced.properties as JsonRecord), status: reducedSchema(status, true) } };
}

/** Without properties that no client here reads. @param texts whether descriptions are kept */
function reducedSchema(schema: JsonRecord, texts = false): JsonRecord {
  const reduced: JsonRecord = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'description' && texts) reduced.description = value;
    else if (key === 'properties' && isRecord(value)) {
      reduced.properties = Object.fromEntries(
        Object.entries(value).map(([name, one]) => [name, isRecord(one) ? reducedSchema(one, texts) : one]),
      );
    } else if (KEPT.has(key)) reduced[key] = reducedValue(value, texts);
  }
  return reduced;
}

function reducedValue(value: JsonValue | undefined, texts: boolean): JsonValue | undefined {
  if (Array.isArray(value))
    return value.map((one) => (isRecord(one) && isSchema(one) ? reducedSchema(one, texts) : one));
  return isRecord(value) ? reducedSchema(value, texts) : value;
}

const isSchema = (value: JsonRecord) => ['type', '$ref', 'properties', 'allOf'].some((key) => key in value);
