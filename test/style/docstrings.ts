import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from '@babel/parser';
import type { StyleFault } from './check.ts';

/** Folders whose exported functions have docstrings: other folders build on them. */
export const DOCUMENTED = ['model/', 'kube/', 'runtime/'] as const;

/** The part of a syntax tree's node that is read here. */
interface Node {
  readonly type: string;
  readonly start?: number | null;
  readonly end?: number | null;
  readonly loc?: { readonly start: { readonly line: number } } | null;
}

interface Declaration extends Node {
  readonly leadingComments?: readonly { readonly type: string; readonly value: string }[] | null;
  readonly declaration?: Declared | null;
}

interface Declared extends Node {
  readonly id?: { readonly name?: string } | null;
  readonly body?: unknown;
  readonly declarations?: readonly { readonly id: { readonly name?: string }; readonly init?: Declared | null }[];
}

/** A function that a module exports. */
interface ExportedFunction {
  readonly name: string;
  readonly line: number;
  /** Undefined without a docstring. */
  readonly docstring: string | undefined;
  readonly throws: boolean;
}

const FUNCTIONS = ['FunctionDeclaration', 'ArrowFunctionExpression', 'FunctionExpression'];
/** Their `throw` belongs to a later call. */
const INNER = [...FUNCTIONS, 'ObjectMethod', 'ClassMethod', 'ClassPrivateMethod', 'TryStatement'];

/** Whether a `throw` leaves the function itself: not one of an inner function, and none inside `try`. */
function throwsItself(node: unknown): boolean {
  if (Array.isArray(node)) return node.some(throwsItself);
  if (typeof node !== 'object' || node === null) return false;
  const { type } = node as Partial<Node>;
  if (type === 'ThrowStatement') return true;
  if (type !== undefined && INNER.includes(type)) return false;
  return Object.entries(node).some(([key, value]) => key !== 'loc' && !key.endsWith('Comments') && throwsItself(value));
}

/** The exported functions of a module, also those in constants. @throws SyntaxError if it cannot be parsed */
function exportedFunctions(source: string): ExportedFunction[] {
  const { program } = parse(source, { sourceType: 'module', plugins: ['typescript'] });
  return (program.body as readonly Declaration[]).flatMap((statement) => {
    const { type, declaration, leadingComments, loc } = statement;
    if (type !== 'ExportNamedDeclaration' || !declaration) return [];
    const found =
      declaration.type === 'FunctionDeclaration'
        ? [{ name: declaration.id?.name, body: declaration.body }]
        : (declaration.declarations ?? []).flatMap(({ id, init }) =>
            init && FUNCTIONS.includes(init.type) ? { name: id.name, body: init.body } : [],
          );
    const last = leadingComments?.at(-1);
    const docstring = last?.type === 'CommentBlock' && last.value.startsWith('*') ? last.value : undefined;
    return found.map(({ name = '', body }) => ({
      name,
      line: loc?.start.line ?? 1,
      docstring,
      throws: throwsItself(body),
    }));
  });
}

/** Exported functions without a docstring, and those that throw without an `@throws` in it. */
function faultsOfDocstrings(file: string, source: string): StyleFault[] {
  return exportedFunctions(source).flatMap(({ name, line, docstring, throws }) => {
    if (docstring === undefined) {
      return { file, line, text: `${name} has no docstring`, use: 'what it returns, with units, errors and source' };
    }
    if (throws && !docstring.includes('@throws')) {
      return { file, line, text: `${name} throws`, use: 'name the error and its condition with @throws' };
    }
    return [];
  });
}

/** The faults of every documented folder. @param files paths from the root, as git lists them */
export function faultsOfFolders(root: string, files: readonly string[]): StyleFault[] {
  return files
    .filter((file) => file.endsWith('.ts') && !file.includes('/gen/'))
    .filter((file) => DOCUMENTED.some((folder) => file.startsWith(folder)) && existsSync(join(root, file)))
    .flatMap((file) => faultsOfDocstrings(file, readFileSync(join(root, file), 'utf8')));
}
