import { parseQuantity } from '../../model/quantity.ts';
import {
  at,
  type Container,
  isRecord,
  type JsonRecord,
  type JsonValue,
  type KubeObject,
  type KubePod,
  listAt,
  sameJson,
} from '../objects.ts';
import type { ResourceType } from './built-in-types.ts';
import { definitionCauses } from './definitions.ts';
import {
  badRequest,
  forbiddenChange,
  invalid,
  invalidValue,
  requiredValue,
  type StatusCause,
  undecodable,
} from './errors.ts';
import { webhookConfigurationCauses } from './webhook-client.ts';

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const rule = (name: string, pattern: string, longest: number) => {
  return { test: new RegExp(`^${pattern}$`), longest, message: `a lowercase RFC 1123 ${name} must match '${pattern}'` };
};
const RULES = { label: rule('label', LABEL, 63), subdomain: rule('subdomain', SUBDOMAIN, 253) };

function podCauses(object: KubeObject): StatusCause[] {
  if (listAt(object, 'spec', 'containers').length === 0) return [requiredValue('spec.containers')];
  const { spec } = object as KubePod;
  const causes: StatusCause[] = [];
  const names = new Set<string>();
  for (const list of ['initContainers', 'containers'] as const) {
    for (const [index, container] of (spec[list] ?? []).entries()) {
      const field = `spec.${list}[${index}]`;
      const { name } = container;
      if (!RULES.label.test.test(name ?? '')) causes.push(invalidValue(`${field}.name`, name, RULES.label.message));
      if (names.has(name)) {
        const message = `Duplicate value: ${JSON.stringify(name)}`;
        causes.push({ reason: 'FieldValueDuplicate', field: `${field}.name`, message });
      }
      names.add(name);
      causes.push(...resourceCauses(`${field}.resources`, container));
    }
  }
  return causes;
}

/** Whether a resource is extended: it has its own domain, is counted in whole devices, and cannot be shared. */
const isExtended = (name: string) => name.includes('/') && !name.includes('kubernetes.io/');

function resourceCauses(field: string, { resources }: Container): StatusCause[] {
  const causes: StatusCause[] = [];
  const amounts = (which: 'requests' | 'limits') => {
    const read = new Map<string, bigint>();
    for (const [name, text] of Object.entries(resources?.[which] ?? {})) {
      const path = `${field}.${which}[${name}]`;
      try {
        const { nano } = parseQuantity(String(text));
        if (nano < 0n) causes.push(invalidValue(path, text, 'must be greater than or equal to 0'));
        if (isExtended(name) && nano % 1_000_000_000n !== 0n) {
          causes.push(invalidValue(path, text, 'must be an integer'));
        }
        read.set(name, nano);
      } catch (error) {
        causes.push(invalidValue(path, text, (error as Error).message));
      }
    }
    return read;
  };
  const limits = amounts('limits');
  for (const [name, request] of amounts('requests')) {
    const limit = limits.get(name);
    const refuse = (rule: string) => {
      const why = `must be ${rule} ${name} limit of ${resources?.limits?.[name]}`;
      causes.push(invalidValue(`${field}.requests`, resources?.requests?.[name], why));
    };
    if (limit === undefined && isExtended(name)) {
      causes.push(requiredValue(`${field}.limits`, 'Limit must be set for non overcommitable resources'));
    }
    if (limit === undefined) continue;
    if (isExtended(name) && request !== limit) refuse('equal to');
    else if (request > limit) refuse('less than or equal to');
  }
  return causes;
}

/** Only images, deadlines and additional tolerations of a pod may change; only a binding sets its node. */
function podUpdateCauses(old: KubeObject, object: KubeObject): StatusCause[] {
  const fixed = (pod: KubeObject): JsonValue => {
    const spec = structuredClone((pod as KubePod).spec);
    for (const container of [...spec.containers, ...(spec.initContainers ?? [])]) delete container.image;
    delete spec.activeDeadlineSeconds;
    delete spec.terminationGracePeriodSeconds;
    delete spec.tolerations;
    delete spec.schedulingGates;
    return spec;
  };
  const before = (old as KubePod).spec.tolerations ?? [];
  const after = (object as KubePod).spec.tolerations ?? [];
  const keepsTolerations = before.every((toleration) => after.some((other) => sameJson(toleration, other)));
  if (keepsTolerations && sameJson(fixed(old), fixed(object))) return [];
  const fields = 'containers[*].image, activeDeadlineSeconds, tolerations (additions), terminationGracePeriodSeconds';
  return [forbiddenChange('spec', `pod updates may not change fields other than ${fields}`)];
}

/** Format of Go's MicroTime: exactly six fractional digits. JavaScript's toISOString() has three and is refused. */
const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$/;
const MICRO_TIMES: Readonly<Record<string, readonly string[]>> = {
  Lease: ['spec.acquireTime', 'spec.renewTime'],
  Event: ['eventTime', 'series.lastObservedTime'],
};

export function checkForm(type: ResourceType, apiVersion: string, body: JsonValue | undefined): KubeObject {
  if (!isRecord(body)) throw badRequest('the body of the request must be a JSON object');
  if (body.apiVersion !== undefined && body.apiVersion !== apiVersion) {
    throw badRequest(
      `the API version in the data (${body.apiVersion}) does not match the expected one (${apiVersion})`,
    );
  }
  if (body.kind !== undefined && body.kind !== type.kind) {
    throw badRequest(`the kind in the data (${body.kind}) does not match the expected kind (${type.kind})`);
  }
  const metadata = body.metadata ?? {};
  if (!isRecord(metadata)) throw badRequest('metadata must be an object');
  checkTexts(metadata);
  checkMicroTimes(type, body);
  return { ...body, apiVersion, kind: type.kind, metadata: { ...metadata } } as KubeObject;
}

function checkTexts(metadata: JsonRecord): void {
  for (const field of ['labels', 'annotations']) {
    for (const [key, value] of Object.entries(isRecord(metadata[field]) ? metadata[field] : {})) {
      if (typeof value === 'string') continue;
      const goField = `Go struct field ObjectMeta.metadata.${field} of type string (key ${key})`;
      throw badRequest(`json: cannot unmarshal ${typeof value} into ${goField}`);
    }
  }
}

function checkMicroTimes(type: ResourceType, body: JsonRecord): void {
  for (const path of MICRO_TIMES[type.kind] ?? []) {
    const value = at(body, ...path.split('.'));
    if (value === undefined || value === null || (typeof value === 'string' && MICRO_TIME.test(value))) continue;
    const format = '"2006-01-02T15:04:05.000000Z07:00"';
    const why = `parsing time ${JSON.stringify(value)} as ${format}: ${path} needs exactly six digits of fraction`;
    throw undecodable(type, why);
  }
}

/** What is wrong with an object of a kind. @param old the object before an update */
const KIND_CAUSES: Readonly<Record<string, (object: KubeObject, old?: KubeObject) => StatusCause[]>> = {
  Pod: (pod, old) => [...podCauses(pod), ...(old ? podUpdateCauses(old, pod) : [])],
  Lease: leaseCauses,
  Event: (event, old) => (old ? [] : eventCauses(event)),
  MutatingWebhookConfiguration: webhookConfigurationCauses,
  ValidatingWebhookConfiguration: webhookConfigurationCauses,
  CustomResourceDefinition: (definition, old) => (old ? [] : definitionCauses(definition)),
};

export function validate(type: ResourceType, object: KubeObject, old?: KubeObject): void {
  const causes = [...nameCauses(type, object), ...(KIND_CAUSES[type.kind]?.(object, old) ?? [])];
  if (causes.length > 0) throw invalid(type, object.metadata.name ?? '', causes);
}

function nameCauses(type: ResourceType, { metadata }: KubeObject): StatusCause[] {
  if (!metadata.name) return [requiredValue('metadata.name', 'name or generateName is required')];
  const { test, longest, message } = RULES[type.names];
  const faults = [
    ...(metadata.name.length > longest ? [`must be no more than ${longest} characters`] : []),
    ...(test.test(metadata.name) ? [] : [message]),
  ];
  return faults.map((why) => invalidValue('metadata.name', metadata.name, why));
}

function leaseCauses(object: KubeObject): StatusCause[] {
  const duration = at(object, 'spec', 'leaseDurationSeconds');
  if (typeof duration !== 'number' || duration > 0) return [];
  return [invalidValue('spec.leaseDurationSeconds', duration, 'must be greater than 0')];
}

/** Events of objects without a namespace are in `default`; others are in their object's namespace. */
function eventCauses(object: KubeObject): StatusCause[] {
  const causes: StatusCause[] = [];
  const involved = at(object, 'involvedObject', 'namespace') ?? '';
  const home = involved === '' ? 'default' : involved;
  if (object.metadata.namespace !== home) {
    causes.push(invalidValue('involvedObject.namespace', involved, 'does not match event.namespace'));
  }
  if (object.eventTime !== undefined && object.eventTime !== null) {
    for (const field of ['reportingComponent', 'reportingInstance', 'action', 'reason']) {
      if (!object[field]) causes.push(requiredValue(field));
    }
  }
  return causes;
}
