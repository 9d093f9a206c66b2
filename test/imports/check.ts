import { dirname } from 'node:path';
import { cruise, type ICruiseResult, type IForbiddenRuleType } from 'dependency-cruiser';
import type { ImportRule } from './rules.ts';

interface Import {
  readonly from: string;
  readonly to: string;
}

/** Top folders whose folders may import each other in a circle. */
const CIRCLES_ALLOWED: readonly string[] = ['test'];

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

const escaped = (text: string) => text.replaceAll(/[.\\]/g, String.raw`\$&`);
const below = (folders: readonly string[]) => `^(?:${folders.map(escaped).join('|')})/`;

const ofChild = (folder: string, child: string) =>
  child === '.' ? `^${escaped(folder)}/[^/]+$` : `^${escaped(`${folder}/${child}`)}/`;

function forbiddenImports(rules: readonly ImportRule[]): IForbiddenRuleType[] {
  return [
    {
      name: 'circle of files by value',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    // The lab has one circle by type: its recording knows the play, whose parts read the recording.
    { name: 'circle of files', from: { pathNot: '^test/lab/' }, to: { circular: true } },
    ...rules.flatMap((rule) => [...foldersOf(rule, rules), ...packagesOf(rule), ...floorsOf(rule)]),
  ];
}

function foldersOf({ folder, may }: ImportRule, rules: readonly ImportRule[]): IForbiddenRuleType[] {
  if (may === undefined || may === '*') return [];
  const inner = rules.filter((rule) => rule.may !== undefined && rule.folder.startsWith(`${folder}/`));
  const from = {
    path: below([folder]),
    ...(inner.length > 0 && { pathNot: below(inner.map((rule) => rule.folder)) }),
  };
  const allowed = [below([folder, ...may]), '^package\\.json$'];
  const name = `${folder}/ may import ${may.length === 0 ? 'nothing of ours' : `${may.join(', ')} only`}`;
  return [{ name, from, to: { dependencyTypes: ['local'], pathNot: allowed } }];
}

function packagesOf({ folder, packages }: ImportRule): IForbiddenRuleType[] {
  if (packages === undefined) return [];
  const allowed = `^(?:node_modules/)?(?:${packages.map(escaped).join('|')})(?:/|$)`;
  return [
    {
      name: `${folder}/ may import the packages ${packages.join(', ')} only`,
      from: { path: below([folder]) },
      to: { dependencyTypesNot: ['local'], pathNot: allowed },
    },
  ];
}

function floorsOf({ folder, floors = [] }: ImportRule): IForbiddenRuleType[] {
  const children = floors.map((floor) => floor.split(' '));
  return children.flatMap((floor, rank) =>
    floor.flatMap((child): IForbiddenRuleType[] => {
      const others = children
        .slice(rank)
        .flat()
        .filter((other) => other !== child);
      if (others.length === 0) return [];
      return [
        {
          name: `the floors of ${folder}/ are ${floors.join(' < ')}`,
          from: { path: ofChild(folder, child) },
          to: { path: others.map((other) => ofChild(folder, other)) },
        },
      ];
    }),
  );
}
