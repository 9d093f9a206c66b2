import type { IForbiddenRuleType } from 'dependency-cruiser';
import type { ImportRule } from './rules.ts';

const escaped = (text: string) => text.replaceAll(/[.\\]/g, String.raw`\$&`);
const below = (folders: readonly string[]) => `^(?:${folders.map(escaped).join('|')})/`;

/** The files of a child of a folder: '.' are those directly in it. */
const ofChild = (folder: string, child: string) =>
  child === '.' ? `^${escaped(folder)}/[^/]+$` : `^${escaped(`${folder}/${child}`)}/`;

/** What dependency-cruiser forbids: circles of files, and what the import rules do not allow. */
export function forbiddenImports(rules: readonly ImportRule[]): IForbiddenRuleType[] {
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

/** The rule of the innermost folder with `may` decides. */
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
