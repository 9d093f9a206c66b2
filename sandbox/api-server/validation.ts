import { at, isObject, type Json, type JsonObject, type KubeObject, sameJson } from '../objects.ts';
import { badRequest, type Cause, forbiddenChange, invalid, invalidValue, requiredValue } from './errors.ts';
import { podCauses, podUpdateCauses } from './pod-validation.ts';
import type { ResourceType } from './resource-types.ts';
import { webhookConfigurationCauses } from './webhook-client.ts';

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const RULES = {
  label: {
    test: new RegExp(`^${LABEL}$`),
    longest: 63,
    said: `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`,
  },
  subdomain: {
    test: new RegExp(`^${SUBDOMAIN}$`),
    longest: 253,
    said: `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${SUBDOMAIN}')`,
  },
} as const;

/** Format of Go's MicroTime: exactly six fractional digits. JavaScript's toISOString() has three and is refused. */
const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$/;
const MICRO_TIMES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  Lease: [
    ['spec', 'acquireTime'],
    ['spec', 'renewTime'],
  ],
  Event: [['eventTime'], ['series', 'lastObservedTime']],
};

/**
 * Refuses objects that cannot be decoded as their type: wrong apiVersion or kind, labels that are not strings, times
 * that Go cannot parse.
 * @throws ApiError 400
 */
export function checkForm(type: ResourceType, apiVersion: string, body: Json | undefined): KubeObject {
  if (!isObject(body)) throw badRequest('the body of the request must be a JSON object');
  if (body.apiVersion !== undefined && body.apiVersion !== apiVersion) {
    throw badRequest(
      `the API version in the data (${String(body.apiVersion)}) does not match the expected API version (${apiVersion})`,
    );
  }
  if (body.kind !== undefined && body.kind !== type.kind) {
    throw badRequest(`the kind in the data (${String(body.kind)}) does not match the expected kind (${type.kind})`);
  }
  const metadata = body.metadata ?? {};
  if (!isObject(metadata)) throw badRequest('metadata must be an object');
  checkTexts(metadata);
  checkMicroTimes(type, body);
  return { ...body, apiVersion, kind: type.kind, metadata: { ...metadata } } as KubeObject;
}

function checkTexts(metadata: JsonObject): void {
  for (const field of ['labels', 'annotations']) {
    for (const [key, value] of Object.entries(isObject(metadata[field]) ? metadata[field] : {})) {
      if (typeof value === 'string') continue;
      throw badRequest(
        `json: cannot unmarshal ${typeof value} into Go struct field ObjectMeta.metadata.${field} of type string (key ${key})`,
      );
    }
  }
}

function checkMicroTimes(type: ResourceType, body: JsonObject): void {
  for (const path of MICRO_TIMES[type.kind] ?? []) {
    const value = at(body, ...path);
    if (value === undefined || value === null || (typeof value === 'string' && MICRO_TIME.test(value))) continue;
    throw badRequest(
      `${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}: parsing time ${JSON.stringify(value)} as "2006-01-02T15:04:05.000000Z07:00": ${path.join('.')} needs exactly six digits of fraction`,
    );
  }
}

/**
 * Refuses an object that violates the rules of its type.
 * @param old the object before an update
 * @throws ApiError 422 naming every invalid field
 */
export function validate(type: ResourceType, object: KubeObject, old?: KubeObject): void {
  const causes = [...nameCauses(type, object), ...kindCauses(type, object, old)];
  if (causes.length > 0) throw invalid(type, object.metadata.name ?? '', causes);
}

function nameCauses(type: ResourceType, { metadata }: KubeObject): Cause[] {
  if (!metadata.name) return [requiredValue('metadata.name', 'name or generateName is required')];
  const { test, longest, said } = RULES[type.names];
  const causes: Cause[] = [];
  if (metadata.name.length > longest) {
    causes.push(invalidValue('metadata.name', metadata.name, `must be no more than ${longest} characters`));
  }
  if (!test.test(metadata.name)) causes.push(invalidValue('metadata.name', metadata.name, said));
  return causes;
}

function kindCauses(type: ResourceType, object: KubeObject, old: KubeObject | undefined): Cause[] {
  switch (type.kind) {
    case 'Pod':
      return [...podCauses(object), ...(old ? podUpdateCauses(old, object) : [])];
    case 'Lease':
      return leaseCauses(object);
    case 'Event':
      return old ? [] : eventCauses(object);
    case 'MutatingWebhookConfiguration':
    case 'ValidatingWebhookConfiguration':
      return webhookConfigurationCauses(object);
    case 'Node':
      return old ? nodeUpdateCauses(old, object) : [];
    default:
      return [];
  }
}

function nodeUpdateCauses(old: KubeObject, object: KubeObject): Cause[] {
  const before = at(old, 'spec', 'podCIDR');
  if (before === undefined || sameJson(before, at(object, 'spec', 'podCIDR'))) return [];
  return [forbiddenChange('spec', 'node updates may only change labels, taints, or capacity')];
}

function leaseCauses(object: KubeObject): Cause[] {
  const causes: Cause[] = [];
  const duration = at(object, 'spec', 'leaseDurationSeconds');
  if (typeof duration === 'number' && duration <= 0) {
    causes.push(invalidValue('spec.leaseDurationSeconds', duration, 'must be greater than 0'));
  }
  const transitions = at(object, 'spec', 'leaseTransitions');
  if (typeof transitions === 'number' && transitions < 0) {
    causes.push(invalidValue('spec.leaseTransitions', transitions, 'must be greater than or equal to 0'));
  }
  return causes;
}

/**
 * Validation errors of an Event. Events of objects without a namespace are in `default`; others are in their object's
 * namespace.
 */
function eventCauses(object: KubeObject): Cause[] {
  const causes: Cause[] = [];
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
