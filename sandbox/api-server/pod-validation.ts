import { parseQuantity } from '../../model/quantity.ts';
import { at, type Container, type Json, type KubeObject, type Pod, sameJson } from '../objects.ts';
import { type Cause, forbiddenChange, invalidValue, requiredValue } from './errors.ts';

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** Validation errors of a pod: containers, their names, and resources that a node cannot account for. */
export function podCauses(object: KubeObject): Cause[] {
  const containers = at(object, 'spec', 'containers');
  if (!Array.isArray(containers) || containers.length === 0) {
    return [requiredValue('spec.containers')];
  }
  const { spec } = object as Pod;
  const causes: Cause[] = [];
  const names = new Set<string>();
  for (const list of ['initContainers', 'containers'] as const) {
    for (const [index, container] of (spec[list] ?? []).entries()) {
      const field = `spec.${list}[${index}]`;
      const { name } = container;
      if (!NAME.test(name ?? '')) {
        causes.push(invalidValue(`${field}.name`, name, 'a lowercase RFC 1123 label is needed'));
      }
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

function resourceCauses(field: string, { resources }: Container): Cause[] {
  const causes: Cause[] = [];
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
    const path = `${field}.requests`;
    const value = resources?.requests?.[name];
    const limitText = `${name} limit of ${resources?.limits?.[name]}`;
    if (limit === undefined) {
      if (isExtended(name)) {
        causes.push(requiredValue(`${field}.limits`, 'Limit must be set for non overcommitable resources'));
      }
    } else if (isExtended(name) && request !== limit) {
      causes.push(invalidValue(path, value, `must be equal to ${limitText}`));
    } else if (request > limit) {
      causes.push(invalidValue(path, value, `must be less than or equal to ${limitText}`));
    }
  }
  return causes;
}

/**
 * Validation errors of a pod update. Only images, deadlines and additional tolerations of a running pod may change;
 * only a binding sets its node.
 */
export function podUpdateCauses(old: KubeObject, object: KubeObject): Cause[] {
  const fixed = (pod: KubeObject): Json => {
    const spec = structuredClone((pod as Pod).spec);
    for (const container of [...spec.containers, ...(spec.initContainers ?? [])]) delete container.image;
    delete spec.activeDeadlineSeconds;
    delete spec.terminationGracePeriodSeconds;
    delete spec.tolerations;
    delete spec.schedulingGates;
    return spec;
  };
  const before = (old as Pod).spec.tolerations ?? [];
  const after = (object as Pod).spec.tolerations ?? [];
  const kept = before.every((toleration) => after.some((other) => sameJson(toleration, other)));
  if (kept && sameJson(fixed(old), fixed(object))) return [];
  return [
    forbiddenChange(
      'spec',
      'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds`',
    ),
  ];
}
