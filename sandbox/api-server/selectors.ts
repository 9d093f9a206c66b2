import { matchesValue } from '../../model/launcher/node-selection.ts';
import { at, type JsonRecord, type KubeObject } from '../objects.ts';
import type { ResourceType } from './built-in-types.ts';
import { badRequest } from './errors.ts';

export type Predicate = (object: KubeObject) => boolean;

type LabelTest = (labels: Readonly<Record<string, string>>) => boolean;

/** Parses a label selector in text form: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. */
export function labelSelector(text: string): Predicate {
  // Commas inside parentheses separate values.
  const parts = text.split(/,(?![^(]*\))/).filter((part) => part.trim() !== '');
  const tests = parts.map(labelTest);
  return ({ metadata }) => tests.every((test) => test(metadata.labels ?? {}));
}

/** Compiles a LabelSelector object (`matchLabels`, `matchExpressions`); an empty one matches everything. */
export function labelSelectorObject(selector: JsonRecord | undefined): LabelTest {
  const matchLabels = Object.entries((selector?.matchLabels ?? {}) as Record<string, string>);
  const expressions = (selector?.matchExpressions ?? []) as { key: string; operator: string; values?: string[] }[];
  const tests = [
    ...matchLabels.map(([key, value]) => requirement(key, 'In', [value])),
    ...expressions.map(({ key, operator, values = [] }) => requirement(key, operator, values)),
  ];
  return (labels) => tests.every((test) => test(labels));
}

/** Parses a field selector (`metadata.name=x,status.phase!=Running`) over the fields that the resource supports. */
export function fieldSelector(type: ResourceType, text: string): Predicate {
  const tests = text
    .split(',')
    .filter((part) => part !== '')
    .map((part): Predicate => {
      const match = /^([^=!]+)(==|=|!=)(.*)$/.exec(part);
      if (!match) throw badRequest(`invalid selector: '${text}'; can't understand '${part}'`);
      const [, field = '', operator, expected] = match;
      if (!type.fields.includes(field)) throw badRequest(`field label not supported: ${field}`);
      return (object) => (String(at(object, ...field.split('.')) ?? '') === expected) === (operator !== '!=');
    });
  return (object) => tests.every((test) => test(object));
}

function labelTest(part: string): LabelTest {
  const text = part.trim();
  const set = /^(\S+)\s+(in|notin)\s+\(([^)]*)\)$/.exec(text);
  if (set) {
    const [, key = '', operator = '', list = ''] = set;
    const values = list.split(',').map((value) => value.trim());
    return requirement(key, operator === 'in' ? 'In' : 'NotIn', values);
  }
  const equality = /^([^\s=!]+)\s*(==|=|!=)\s*([^\s=!]*)$/.exec(text);
  if (equality) {
    const [, key = '', operator = '', value = ''] = equality;
    return requirement(key, operator === '!=' ? 'NotIn' : 'In', [value]);
  }
  const presence = /^(!?)\s*([\w./-]+)$/.exec(text);
  if (presence) return requirement(presence[2]!, presence[1] === '!' ? 'DoesNotExist' : 'Exists', []);
  throw badRequest(`unable to parse requirement: found '${text}'`);
}

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'];

function requirement(key: string, operator: string, values: readonly string[]): LabelTest {
  if (!OPERATORS.includes(operator)) throw badRequest(`"${operator}" is not a valid label selector operator`);
  return (labels) => matchesValue({ key, operator, values }, labels[key]);
}
