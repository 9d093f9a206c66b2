import { dirname } from 'node:path';
import { cruise, type ICruiseResult } from 'dependency-cruiser';
import { forbiddenImports } from './forbidden.ts';
import type { ImportRule } from './rules.ts';

interface Import {
  readonly from: string;
  readonly to: string;
}

/** Top folders whose folders may import each other in a circle. */
const CIRCLES_ALLOWED: readonly string[] = ['test'];

/** Every import below the root that breaks a rule, and every circle of files or folders. */
export async function faultsIn(root: string, rules: readonly ImportRule[]): Promise<string[]> {
  const tops = rules.filter(({ folder, may }) => may !== undefined && !folder.includes('/'));
  const result = await cruise(
    tops.map(({ folder }) => folder),
    {
      baseDir: root,
      ruleSet: { forbidden: forbiddenImports(rules) },
      validate: true,
      tsPreCompilationDeps: true,
      doNotFollow: { path: 'node_modules' },
    },
    { conditionNames: ['import', 'node', 'default', 'types'], exportsFields: ['exports'] },
  );
  const { modules, summary } = result.output as ICruiseResult;
  const broken = summary.violations.map(({ rule, from, to, cycle }) => {
    const path = cycle === undefined ? to : cycle.map(({ name }) => name).join(', which imports ');
    return `${from} imports ${path}: ${rule.name}`;
  });
  const imports = modules.flatMap(({ source, dependencies }) =>
    dependencies
      .filter(({ dependencyTypes }) => dependencyTypes.includes('local'))
      .map(({ resolved }) => ({ from: source, to: resolved })),
  );
  const strict = imports.filter(({ from }) => !CIRCLES_ALLOWED.some((folder) => from.startsWith(`${folder}/`)));
  return [...new Set([...broken, ...folderCircles(strict)])];
}

/** Imports between folders that import each other in a circle; dependency-cruiser overlooks a folder in the other one. */
function folderCircles(imports: readonly Import[]): string[] {
  const between = imports.filter(({ from, to }) => dirname(from) !== dirname(to));
  const targets = new Map<string, Set<string>>();
  for (const { from, to } of between) {
    targets.set(dirname(from), (targets.get(dirname(from)) ?? new Set()).add(dirname(to)));
  }
  const reach = new Map([...targets.keys()].map((folder) => [folder, reachable(folder, targets)]));
  return between
    .filter(({ from, to }) => reach.get(dirname(to))?.has(dirname(from)))
    .map(({ from, to }) => `${from} imports ${to}: circle of folders`);
}

function reachable(start: string, targets: ReadonlyMap<string, ReadonlySet<string>>): ReadonlySet<string> {
  const folders = new Set<string>();
  const open = [start];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    for (const target of targets.get(folder) ?? []) {
      if (folders.has(target)) continue;
      folders.add(target);
      open.push(target);
    }
  }
  return folders;
}
