import * as z from 'zod';
import { watchedDeployment } from '../../console/server/cluster.ts';
import { watchedPod } from '../../console/server/pods.ts';
import { watchedInstance, watchedMachine } from '../../console/server/vms.ts';
import { explainedMigration } from '../../diagnosis/objects.ts';
import { resourceSlice } from '../../kube/cluster-view/resource-slices.ts';
import { nodeTopologyStatus } from '../../kube/node-topology.ts';
import { lease, networkAttachmentDefinition, node, objectMeta } from '../../kube/resources.ts';
import { startedInstance, virtualMachine, virtualMachineInstance } from '../../kube/virtual-machines.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { launcherPodSchema } from '../../node-agent/vm-pinning/launchers.ts';
import { observedPod } from '../../scheduler-plugin/cluster/pod-view.ts';
import { schedulingPod } from '../../scheduler-plugin/extender/args.ts';
import { namespaceSchema, subnet, vlan } from '../../webhook/cluster/cluster-view.ts';
import { observedNode } from '../../webhook/cluster/node-cache.ts';

/** The place of a field in an object: `spec`, `containers`, `0`, `name`. */
type Path = readonly string[];
/** A field that the writer of an object fills, as the schema of its kind reads it. */
interface Field {
  readonly path: Path;
  readonly type: 'text' | 'list' | 'map';
  readonly schema: z.ZodType;
}
/** Bytes of one field: as much as the API server's store accepts in an object, with some reserve. */
const MAX_FIELD_BYTES = 1_000_000;
/** The schema without what makes it optional, gives it a default or checks the size of its input first. */
function inner(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return inner(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodCatch) return inner(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodPipe) {
    const input = schema.in as z.ZodType;
    return inner(input instanceof z.ZodCustom ? (schema.out as z.ZodType) : input);
  }
  if (schema instanceof z.ZodUnion) return inner(schema.options[0] as z.ZodType);
  return schema;
}
/** Every text, list and map below a schema; of a list its first item, of a map the entry with the key `0`. */
function fieldsOf(schema: z.ZodType, path: Path = []): Field[] {
  const type = inner(schema);
  if (type instanceof z.ZodObject)
    return Object.entries(type.shape).flatMap(([key, field]) => fieldsOf(field as z.ZodType, [...path, key]));
  if (type instanceof z.ZodArray)
    return [{ path, type: 'list', schema: type }, ...fieldsOf(type.element as z.ZodType, [...path, '0'])];
  if (type instanceof z.ZodRecord)
    return [{ path, type: 'map', schema: type }, ...fieldsOf(type.valueType as z.ZodType, [...path, '0'])];
  return type instanceof z.ZodString ? [{ path, type: 'text', schema: type }] : [];
}
/** The smallest value that a schema accepts, with a value at a path. */
function valueAt(schema: z.ZodType, [key, ...rest]: Path, value: unknown): unknown {
  if (key === undefined) return value;
  const type = inner(schema);
  if (type instanceof z.ZodArray) return [valueAt(type.element as z.ZodType, rest, value)];
  if (type instanceof z.ZodRecord) return { [key]: valueAt(type.valueType as z.ZodType, rest, value) };
  if (!(type instanceof z.ZodObject)) throw new Error(`${key} is not below an object, list or map`);
  const least = smallest(type) as object;
  return { ...least, [key]: valueAt(type.shape[key] as z.ZodType, rest, value) };
}
function smallest(schema: z.ZodType): unknown {
  if (schema.safeParse(undefined).success) return undefined;
  const type = inner(schema);
  if (type instanceof z.ZodObject)
    return Object.fromEntries(Object.entries(type.shape).map(([key, field]) => [key, smallest(field as z.ZodType)]));
  if (type instanceof z.ZodArray) return schema.safeParse([]).success ? [] : [smallest(type.element as z.ZodType)];
  if (type instanceof z.ZodRecord) return {};
  if (type instanceof z.ZodLiteral) return type.value;
  if (type instanceof z.ZodEnum) return type.options[0];
  if (type instanceof z.ZodNumber) return 0;
  return type instanceof z.ZodBoolean ? false : 'compute';
}
/** The hostile values of a field: more than its maximum, and a list of as many items as it may have. */
function hostileValues({ type, schema }: Field): [label: string, create: () => unknown][] {
  if (schema instanceof z.ZodArray) {
    const { maxItems = Number.POSITIVE_INFINITY } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
    return [
      ['1 MB of items', () => items(schema, Number.POSITIVE_INFINITY)],
      [`${maxItems} items`, () => items(schema, maxItems)],
    ];
  }
  if (schema instanceof z.ZodRecord) {
    const value = smallest(schema.valueType as z.ZodType);
    const keys = Array.from({ length: 40_000 }, (_, i) => `key-${i}`);
    return [
      ['40,000 entries', () => Object.fromEntries(keys.map((key) => [key, value]))],
      ['a key of 1 MB', () => ({ ['k'.repeat(MAX_FIELD_BYTES)]: value })],
    ];
  }
  return [[`a ${type} of 1 MB`, () => 'x'.repeat(MAX_FIELD_BYTES)]];
}
function items({ element }: z.ZodArray, maxItems: number): unknown[] {
  const item = smallest(element as z.ZodType) ?? {};
  const count = Math.min(maxItems, Math.floor(MAX_FIELD_BYTES / (JSON.stringify(item).length + 1)));
  return Array.from({ length: count }, () => item);
}
/** A value with every field at its maximum; of each list and map as much as an object can have of all of them. */
function largest(schema: z.ZodType): unknown {
  const type = inner(schema);
  if (type instanceof z.ZodObject)
    return Object.fromEntries(Object.entries(type.shape).map(([key, field]) => [key, largest(field as z.ZodType)]));
  if (type instanceof z.ZodArray) {
    const { maxItems = Number.POSITIVE_INFINITY } = z.toJSONSchema(type, { io: 'input', unrepresentable: 'any' });
    const item = largest(type.element as z.ZodType) ?? {};
    const count = Math.min(maxItems, Math.ceil(MAX_FIELD_BYTES / 10 / (JSON.stringify(item).length + 1)));
    return Array.from({ length: count }, () => item);
  }
  if (type instanceof z.ZodRecord) {
    const value = largest(type.valueType as z.ZodType);
    return Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`key-${i}`, value]));
  }
  return type instanceof z.ZodString
    ? 'x'.repeat(Math.min(type.maxLength ?? 1000, MAX_FIELD_BYTES / 10))
    : smallest(type);
}
export interface Attack {
  /** `spec.containers.0.name: a text of 1 MB` */
  readonly label: string;
  /** The JSON of an object that has the hostile field, and otherwise the fields of `base`. */
  json(base: JsonObject): string;
}
/** The attacks on a kind, derived from its schema: a new field is attacked without another line of a test. */
export function attacksOn(schema: z.ZodType): Attack[] {
  const fields = fieldsOf(schema).filter(
    ({ path }) => !['metadata.name', 'metadata.namespace'].includes(path.join('.')),
  );
  const attacks = fields.flatMap((field) =>
    hostileValues(field).map(
      ([label, create]): Attack => ({
        label: `${field.path.join('.')}: ${label}`,
        json: (base) => JSON.stringify(merge(base, valueAt(schema, field.path, create()) as JsonObject)),
      }),
    ),
  );
  return [
    ...attacks,
    { label: 'every field at its maximum', json: (base) => JSON.stringify(merge(largest(schema) as JsonObject, base)) },
  ];
}
function merge(base: JsonObject, hostile: JsonObject): JsonObject {
  const fields = Object.entries(hostile).filter(([, value]) => value !== undefined);
  const merged = fields.map(([key, value]) => {
    const before = base[key];
    return [key, isObject(before) && isObject(value) ? merge(before, value) : value];
  });
  return { ...base, ...Object.fromEntries(merged) };
}

const topology = z.object({ metadata: objectMeta, status: nodeTopologyStatus });
/** The schema of each kind that a daemon watches, by daemon. */
export const WATCHED: Readonly<Record<string, Readonly<Record<string, z.ZodType>>>> = {
  webhook: {
    namespaces: namespaceSchema,
    nodes: observedNode,
    topologies: topology,
    definitions: networkAttachmentDefinition,
    subnets: subnet,
    vlans: vlan,
    VMIs: virtualMachineInstance,
  },
  extender: {
    nodes: node,
    pods: observedPod,
    topologies: topology,
    leases: lease,
    resourceSlices: resourceSlice,
    VMIs: startedInstance,
    VMs: virtualMachine,
    // Not watched: the pod in a call of kube-scheduler.
    filter: z.object({ Pod: schedulingPod }),
  },
  agent: { launchers: launcherPodSchema },
  console: {
    topologies: topology,
    nodes: node,
    pods: watchedPod,
    leases: lease,
    VMIs: watchedInstance,
    VMs: watchedMachine,
    migrations: explainedMigration,
    deployments: watchedDeployment,
    resourceSlices: resourceSlice,
  },
};
