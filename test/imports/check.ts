import { dirname } from 'node:path';
import { type Import, readImports } from './graph.ts';
import { CIRCLES_ALLOWED, type ImportRule, RULES } from './rules.ts';

/** Every import of the repository that breaks a rule, and every circle of folders; tests may contain circles. */
export function faultsIn(root: string): string[] {
  const tops = RULES.filter(({ may }) => may !== undefined).map(({ folder }) => folder);
  const imports = readImports(root, tops);
  const strict = imports.filter(({ file }) => !CIRCLES_ALLOWED.some((folder) => file.startsWith(`${folder}/`)));
  const circles = cycles(strict).flatMap((circle) => [
    `these folders import each other in a circle: ${circle.folders.join(', ')}`,
    ...circle.imports.map((text) => `  ${text}`),
  ]);
  return [...forbidden(imports, RULES), ...circles];
}

/** The imports that break a rule, each with the rule; no text appears twice. */
export function forbidden(imports: readonly Import[], rules: readonly ImportRule[]): string[] {
  const faults = imports.flatMap((one) =>
    rules
      .filter(({ folder }) => one.file.startsWith(`${folder}/`))
      .map((rule) => breach(one, rule, rule === innermost(one.file, rules)))
      .filter((fault) => fault !== undefined)
      .map((fault) => `${one.file} imports ${one.target}: ${fault}`),
  );
  return [...new Set(faults)];
}

/** The rule of the innermost folder around the file that defines imports from other folders. */
function innermost(file: string, rules: readonly ImportRule[]): ImportRule | undefined {
  return rules
    .filter(({ folder, may }) => may !== undefined && file.startsWith(`${folder}/`))
    .reduce<ImportRule | undefined>((a, b) => (a && a.folder.length > b.folder.length ? a : b), undefined);
}

function breach({ file, target, isPackage }: Import, rule: ImportRule, decides: boolean): string | undefined {
  const { folder, may, packages, floors } = rule;
  if (isPackage)
    return packages === undefined || packages.includes(target)
      ? undefined
      : `${folder}/ may import the packages ${packages.join(', ')} only`;
  if (target.startsWith(`${folder}/`)) return floors && breachOfFloors(folder, floors, file, target);
  if (!decides || may === undefined || may === '*' || target === 'package.json') return undefined;
  if (may.some((other) => target.startsWith(`${other}/`))) return undefined;
  return `${folder}/ may import ${may.length === 0 ? 'nothing of ours' : may.map((other) => `${other}/`).join(', ')} only`;
}

function breachOfFloors(folder: string, floors: readonly string[], file: string, target: string): string | undefined {
  const [from, to] = [childOf(folder, file), childOf(folder, target)];
  if (from === to) return undefined;
  const [high, low] = [from, to].map((child) => floors.findIndex((names) => names.split(' ').includes(child)));
  if (high === undefined || high < 0) return `${folder}/${from} is on no floor of ${folder}/`;
  if (low === undefined || low < 0) return `${folder}/${to} is on no floor of ${folder}/`;
  return low < high ? undefined : `the floors of ${folder}/ are ${floors.join(' < ')}`;
}

/** The folder directly in `folder` that the file is in, or '.'. */
function childOf(folder: string, file: string): string {
  const rest = file.slice(folder.length + 1).split('/');
  return rest.length === 1 ? '.' : (rest[0] ?? '.');
}

/** Folders that import each other in a circle, each circle once: its folders and the imports between them. */
export function cycles(imports: readonly Import[]): { folders: string[]; imports: string[] }[] {
  const edges = new Map<string, Set<string>>();
  const between = imports
    .filter(({ isPackage }) => !isPackage)
    .map(({ file, target }) => ({ from: dirname(file), to: dirname(target), text: `${file} imports ${target}` }))
    .filter(({ from, to }) => from !== to);
  for (const { from, to } of between) edges.set(from, (edges.get(from) ?? new Set()).add(to));
  const reach = new Map([...edges.keys()].map((folder) => [folder, reachable(folder, edges)]));
  const inCircle = [...edges.keys()].filter((folder) => reach.get(folder)?.has(folder)).sort();
  const circles = new Set(
    inCircle.map((folder) =>
      inCircle.filter((other) => reach.get(folder)?.has(other) && reach.get(other)?.has(folder)).join(' '),
    ),
  );
  return [...circles].map((names) => {
    const folders = names.split(' ');
    const within = between.filter(({ from, to }) => folders.includes(from) && folders.includes(to));
    return { folders, imports: within.map(({ text }) => text) };
  });
}

function reachable(start: string, edges: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
  const seen = new Set<string>();
  const open = [start];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    for (const next of edges.get(folder) ?? []) {
      if (seen.has(next)) continue;
      seen.add(next);
      open.push(next);
    }
  }
  return seen;
}
