import { parse } from '@babel/parser';

/** One change to a source text that a test should notice. */
export interface Mutant {
  /** Character offsets of what is replaced; `end` is exclusive. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** 1 is the first. */
  readonly line: number;
  /** What kind of change it is: `&& to ||`. */
  readonly operator: string;
  /** An expression can be wrapped by a probe; a statement is preceded by one. */
  readonly kind: 'expression' | 'statement';
}

/** As Babel has it: what is read of any node. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly loc: { readonly start: { readonly line: number } };
  readonly [key: string]: unknown;
}

/** A binary operator and what takes its place. */
const OPERATORS: Readonly<Record<string, string>> = {
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '%': '*',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
};

/** Methods with an opposite. */
const METHODS: Readonly<Record<string, string>> = {
  some: 'every',
  every: 'some',
  min: 'max',
  max: 'min',
  startsWith: 'endsWith',
  endsWith: 'startsWith',
  find: 'findLast',
  findLast: 'find',
};

/** Methods whose call is replaced by what it was called on: nothing is left out, or put in order. */
const DROPPED = new Set(['filter', 'sort', 'toSorted', 'reverse', 'toReversed', 'slice', 'trim', 'toLowerCase']);

/** Words in messages are for people to judge, and so is what goes into a log. */
const SILENT = new Set(['log', 'logger', 'console']);

/**
 * Every mutant of a source file, in the order of the text.
 * @param text TypeScript
 * @throws SyntaxError if it is none
 */
export function mutantsOf(text: string): Mutant[] {
  const { program } = parse(text, { sourceType: 'module', plugins: ['typescript', 'explicitResourceManagement'] });
  const found: Mutant[] = [];
  visit(program as unknown as Node, text, found);
  return found.sort((a, b) => a.start - b.start || a.end - b.end);
}

function visit(node: Node, text: string, found: Mutant[]): void {
  if (isForTypesOnly(node)) return;
  found.push(...mutationsOf(node, text));
  for (const child of childrenOf(node)) visit(child, text, found);
}

/** Types, imports and exports of names: nothing of them runs. An expression with a type is looked into. */
function isForTypesOnly({ type }: Node): boolean {
  if (type === 'ImportDeclaration' || type === 'ExportAllDeclaration') return true;
  return type.startsWith('TS') && !['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression'].includes(type);
}

function childrenOf(node: Node): Node[] {
  return Object.entries(node).flatMap(([key, value]) => {
    // Names of properties and types are no values.
    if (['loc', 'typeAnnotation', 'typeParameters', 'typeArguments', 'returnType'].includes(key)) return [];
    if (key === 'key' && node['computed'] !== true) return [];
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return values.filter(isNode);
  });
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value && 'loc' in value;
}

function mutationsOf(node: Node, text: string): Mutant[] {
  const change = (part: Node, replacement: string, operator: string, kind: Mutant['kind'] = 'expression'): Mutant => ({
    start: part.start,
    end: part.end,
    replacement,
    line: part.loc.start.line,
    operator,
    kind,
  });
  const textOf = (part: unknown) => text.slice((part as Node).start, (part as Node).end);

  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression': {
      const [left, right, operator] = [node['left'], node['right'], String(node['operator'])];
      if (operator === '??') return [change(node, `(${textOf(left)})`, '?? b left out')];
      const other = OPERATORS[operator];
      // A sum of texts has no difference.
      if (other === undefined || (operator === '+' && [left, right].some(isText))) return [];
      return [change(node, `((${textOf(left)}) ${other} (${textOf(right)}))`, `${operator} to ${other}`)];
    }
    case 'ConditionalExpression':
    case 'IfStatement': {
      const test = node['test'] as Node;
      return [change(test, 'true', 'condition to true'), change(test, 'false', 'condition to false')];
    }
    case 'UnaryExpression':
      return node['operator'] === '!' ? [change(node, `(${textOf(node['argument'])})`, '! left out')] : [];
    case 'BooleanLiteral':
      return [change(node, String(node['value'] !== true), 'the other boolean')];
    case 'NumericLiteral':
      return [change(node, `(${textOf(node)} + 1)`, 'number plus 1')];
    case 'ReturnStatement': {
      const argument = node['argument'];
      return isNode(argument) && argument.type !== 'Identifier'
        ? [change(argument, 'undefined', 'return undefined')]
        : [];
    }
    case 'ExpressionStatement': {
      const expression = node['expression'] as Node;
      const called = expression.type === 'AwaitExpression' ? expression['argument'] : expression;
      if (!isNode(called) || called.type !== 'CallExpression' || isSilent(called)) return [];
      return [change(node, ';', 'call left out', 'statement')];
    }
    case 'CallExpression':
      return methodMutations(node, change, textOf);
    default:
      return [];
  }
}

function methodMutations(
  node: Node,
  change: (part: Node, replacement: string, operator: string) => Mutant,
  textOf: (part: unknown) => string,
): Mutant[] {
  const callee = node['callee'] as Node;
  if (callee.type !== 'MemberExpression' || callee['computed'] === true) return [];
  const [object, property] = [callee['object'] as Node, callee['property'] as Node];
  const name = textOf(property);
  if (DROPPED.has(name)) return [change(node, `(${textOf(object)})`, `${name} left out`)];
  const other = METHODS[name];
  if (other === undefined) return [];
  const rest = textOf(node).slice(property.end - node.start);
  return [change(node, `(${textOf(object)}.${other}${rest})`, `${name} to ${other}`)];
}

const isText = (part: unknown) => ['StringLiteral', 'TemplateLiteral'].includes((part as Node).type);

function isSilent({ callee }: Node): boolean {
  let object = callee as Node;
  while (object.type === 'MemberExpression') object = object['object'] as Node;
  return object.type === 'Identifier' && SILENT.has(String(object['name']));
}

/** The text with the mutant in it. */
export const mutated = (text: string, { start, end, replacement }: Mutant): string =>
  text.slice(0, start) + replacement + text.slice(end);

/**
 * The text with a probe at each of these mutants, which calls `globalThis.plumblineProbe` with the mutant's number whenever the
 * place is reached.
 */
export function probed(text: string, mutants: readonly (Mutant & { readonly id: number })[]): string {
  const insertions = mutants.flatMap(({ start, end, kind, id }) => {
    const call = `globalThis.plumblineProbe?.(${id})`;
    const [open, close] = kind === 'statement' ? [`{${call};`, '}'] : [`(${call}, (`, '))'];
    return [
      { at: start, put: open, opens: true, length: end - start, id },
      { at: end, put: close, opens: false, length: end - start, id },
    ];
  });
  // From the end to the beginning; what is put at one place later comes to stand to the left of what was put there before.
  insertions.sort((a, b) => {
    if (a.at !== b.at) return b.at - a.at;
    if (a.opens !== b.opens) return a.opens ? -1 : 1;
    const inner = a.length - b.length || a.id - b.id;
    return a.opens ? inner : -inner;
  });
  return insertions.reduce((done, { at, put }) => done.slice(0, at) + put + done.slice(at), text);
}
