import { parse } from '@babel/parser';
import type { Mutant } from './mutants.ts';

/** The common fields of Babel's nodes. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** A binary operator and its replacement. */
const OPERATORS = new Map(
  Object.entries({
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
    '+=': '-=',
    '-=': '+=',
  }),
);

/** Methods with an opposite. */
const METHODS = new Map(
  Object.entries({
    some: 'every',
    every: 'some',
    min: 'max',
    max: 'min',
    startsWith: 'endsWith',
    endsWith: 'startsWith',
    find: 'findLast',
    findLast: 'find',
  }),
);

/** Methods whose call is replaced by its object: nothing is left out or sorted. */
const DROPPED = new Set(['filter', 'sort', 'toSorted', 'reverse', 'toReversed', 'slice', 'trim', 'toLowerCase']);

/** People judge log texts. */
const SILENT = new Set(['log', '#log', 'logger', 'console']);

/** Integers above this in a constant in capitals are limits, seconds and sizes: one more is equally good. */
const SMALL = 2;

/** Every mutant of a source file. @throws SyntaxError if it is not TypeScript */
export function mutantsOfTypeScript(text: string): Mutant[] {
  const { program } = parse(text, { sourceType: 'module', plugins: ['typescript', 'explicitResourceManagement'] });
  const found: Mutant[] = [];
  visit(program as unknown as Node, text, false, found);
  return found;
}

function visit(node: Node, text: string, inConstant: boolean, found: Mutant[]): void {
  if (isForTypesOnly(node) || isSilent(node)) return;
  found.push(...mutationsOf(node, text, inConstant));
  const constant = inConstant || isConstant(node);
  for (const child of childrenOf(node)) visit(child, text, constant, found);
}

/** Types, imports and exports of names do not run. An expression with a type is searched. */
function isForTypesOnly({ type }: Node): boolean {
  if (type === 'ImportDeclaration' || type === 'ExportAllDeclaration') return true;
  return type.startsWith('TS') && !['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression'].includes(type);
}

/** `const LONGEST = ...`, unless that is a function. */
function isConstant({ type, id, init }: Node): boolean {
  if (type !== 'VariableDeclarator' || !isNode(init) || init.type.includes('Function')) return false;
  return /^[A-Z][A-Z0-9_]*$/.test(String((id as Node)['name']));
}

function isSilent({ type, callee }: Node): boolean {
  if (type !== 'CallExpression') return false;
  const { type: kind, object } = callee as Node;
  if (kind !== 'MemberExpression') return false;
  const { name, property } = object as Node;
  const id = (property as Node | undefined)?.['id'] as Node | undefined;
  return [name, (property as Node | undefined)?.['name'], id && `#${id['name']}`].some((one) =>
    SILENT.has(String(one)),
  );
}

function childrenOf(node: Node): Node[] {
  return Object.entries(node).flatMap(([key, value]) => {
    // Names of properties and types are not values.
    if (['loc', 'typeAnnotation', 'typeParameters', 'typeArguments', 'returnType'].includes(key)) return [];
    if (key === 'key' && node['computed'] !== true) return [];
    // The bounds of a histogram's buckets are arbitrary.
    if (key === 'value' && (node['key'] as Node | undefined)?.['name'] === 'buckets') return [];
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return values.filter(isNode);
  });
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value && 'loc' in value;
}

type Change = (part: Node, replacement: string, operator: string, kind?: Mutant['kind']) => Mutant;

function mutationsOf(node: Node, text: string, inConstant: boolean): Mutant[] {
  const change: Change = ({ start, end }, replacement, operator, kind = 'expression') => ({
    start,
    end,
    replacement,
    operator,
    kind,
  });
  const textOf = (part: unknown) => text.slice((part as Node).start, (part as Node).end);

  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression':
    case 'AssignmentExpression':
      return operatorMutations(node, change, textOf);
    case 'ConditionalExpression':
    case 'IfStatement': {
      const test = node['test'] as Node;
      return [change(test, 'true', 'condition to true'), change(test, 'false', 'condition to false')];
    }
    case 'UnaryExpression':
      return node['operator'] === '!' ? [change(node, `(${textOf(node['argument'])})`, '! left out')] : [];
    case 'BooleanLiteral':
      return [change(node, String(node['value'] !== true), 'the other boolean')];
    case 'NumericLiteral': {
      const value = Number(node['value']);
      const isTuning = inConstant && Number.isInteger(value) && value > SMALL;
      return isTuning ? [] : [change(node, `(${textOf(node)} + 1)`, 'number plus 1')];
    }
    case 'ReturnStatement': {
      const argument = node['argument'];
      // A boolean becomes the other one; undefined instead of false makes no difference to a condition.
      const changes = isNode(argument) && textOf(argument) !== 'undefined' && argument.type !== 'BooleanLiteral';
      return changes ? [change(argument, 'undefined', 'return undefined')] : [];
    }
    case 'ExpressionStatement': {
      const expression = node['expression'] as Node;
      const called = expression.type === 'AwaitExpression' ? expression['argument'] : expression;
      if (!isNode(called) || called.type !== 'CallExpression' || isSilent(called)) return [];
      // Nothing else can run in a constructor without this call.
      if ((called['callee'] as Node).type === 'Super') return [];
      return [change(node, ';', 'call left out', 'statement')];
    }
    case 'CallExpression':
      return methodMutations(node, change, textOf);
    default:
      return [];
  }
}

function operatorMutations(node: Node, change: Change, textOf: (part: unknown) => string): Mutant[] {
  const [left, right, operator] = [node['left'] as Node, node['right'] as Node, String(node['operator'])];
  if (operator === '??') {
    // The compiler requires a value at an index that always exists: the fallback has no effect.
    if (left.type === 'MemberExpression' && left['computed'] === true) {
      return [change(node, `((${textOf(left)}) && (${textOf(right)}))`, '?? to &&')];
    }
    return [change(node, `(${textOf(left)})`, '?? b left out')];
  }
  const other = OPERATORS.get(operator);
  // A sum of texts has no difference.
  if (other === undefined || (operator.startsWith('+') && [left, right].some(isText))) return [];
  const [a, b] = [textOf(left), textOf(right)];
  const replacement =
    operator.endsWith('=') && operator.length === 2 && !'<>'.includes(operator.charAt(0))
      ? `(${a} ${other} (${b}))`
      : `((${a}) ${other} (${b}))`;
  return [change(node, replacement, `${operator} to ${other}`)];
}

function methodMutations(node: Node, change: Change, textOf: (part: unknown) => string): Mutant[] {
  const callee = node['callee'] as Node;
  if (callee.type !== 'MemberExpression' || callee['computed'] === true) return [];
  const [object, property] = [callee['object'] as Node, callee['property'] as Node];
  const name = textOf(property);
  if (DROPPED.has(name)) return [change(node, `(${textOf(object)})`, `${name} left out`)];
  const other = METHODS.get(name);
  if (other === undefined) return [];
  const rest = textOf(node).slice(property.end - node.start);
  return [change(node, `(${textOf(object)}.${other}${rest})`, `${name} to ${other}`)];
}

const isText = (part: Node) => ['StringLiteral', 'TemplateLiteral'].includes(part.type);
