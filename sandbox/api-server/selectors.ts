import { at, type JsonRecord, type KubeObject } from '../objects.ts';
import type { ResourceType } from './built-in-types.ts';
import { badRequest } from './errors.ts';

export type Predicate = (object: KubeObject) => boolean;

type LabelTest = (labels: Readonly<Record<string, string>>) => boolean;

/** Parses a label selector in text form: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. */
export function labelSelector(text: string): Predicate {
  const tests = splitOutsideParentheses(text).map(labelTest);
  return ({ metadata }) => tests.every((test) => test(metadata.labels ?? {}));
}

/** Compiles a LabelSelector object (`matchLabels`, `matchExpressions`); an empty one matches everything. */
export function labelSelectorObject(selector: JsonRecord | undefined): LabelTest {
  const tests: LabelTest[] = Object.entries((selector?.matchLabels ?? {}) as Record<string, string>).map(
    ([key, value]) =>
      (labels) =>
        labels[key] === value,
  );
  for (const { key, operator, values = [] } of (selector?.matchExpressions ?? []) as {
    key: string;
    operator: string;
    values?: string[];
  }[]) {
    tests.push(requirement(key, operator.toLowerCase(), values));
  }
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
    return requirement(
      key,
      operator,
      list.split(',').map((value) => value.trim()),
    );
  }
  const equality = /^([^\s=!]+)\s*(==|=|!=)\s*([^\s=!]*)$/.exec(text);
  if (equality) {
    const [, key = '', operator = '', value = ''] = equality;
    return requirement(key, operator === '!=' ? 'notin' : 'in', [value]);
  }
  const presence = /^(!?)\s*([\w./-]+)$/.exec(text);
  if (presence) return requirement(presence[2]!, presence[1] === '!' ? 'doesnotexist' : 'exists', []);
  throw badRequest(`unable to parse requirement: found '${text}'`);
}

function requirement(key: string, operator: string, values: readonly string[]): LabelTest {
  switch (operator) {
    case 'in':
      return (labels) => labels[key] !== undefined && values.includes(labels[key]);
    case 'notin':
      return (labels) => labels[key] === undefined || !values.includes(labels[key]);
    case 'exists':
      return (labels) => labels[key] !== undefined;
    case 'doesnotexist':
      return (labels) => labels[key] === undefined;
    default:
      throw badRequest(`"${operator}" is not a valid label selector operator`);
  }
}

function splitOutsideParentheses(text: string): string[] {
  return text.split(/,(?![^(]*\))/).filter((part) => part.trim() !== '');
}
