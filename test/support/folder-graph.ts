import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';

/** Which folder imports from which, each with one import that makes it so. */
export type FolderGraph = ReadonlyMap<string, ReadonlyMap<string, string>>;

const SOURCE = /\.(?:ts|tsx|js|cjs|mjs)$/;
/** What follows `from`, `import` or `import(`: imports of types, exports from elsewhere and dynamic imports too. */
const RELATIVE_IMPORT = /\b(?:from|import)\s*\(?\s*(['"])(\.{1,2}\/[^'"\n]+)\1/g;

/** The source files below a directory, by their paths from there. */
export function sourcesIn(directory: string): Map<string, string> {
  const paths = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((path) => SOURCE.test(path));
  return new Map(paths.sort().map((path) => [path, readFileSync(posix.join(directory, path), 'utf8')]));
}

/** Relative imports between the sources' folders, where a folder is the directory of a file; `.` is the topmost. */
export function folderGraph(sources: ReadonlyMap<string, string>): FolderGraph {
  const graph = new Map<string, Map<string, string>>();
  for (const [path, text] of sources) {
    const from = posix.dirname(path);
    const targets = graph.get(from) ?? new Map<string, string>();
    graph.set(from, targets);
    for (const [, , specifier = ''] of text.matchAll(RELATIVE_IMPORT)) {
      const target = posix.join(from, specifier);
      const to = posix.dirname(target);
      if (to !== from && !target.startsWith('../') && !targets.has(to)) targets.set(to, `${path} imports ${target}`);
    }
  }
  return graph;
}

/** The shortest way from one folder to another by imports, both included; undefined where there is none. */
function shortestWay(graph: FolderGraph, start: string, end: string): readonly string[] | undefined {
  const ways: (readonly string[])[] = [[start]];
  const seen = new Set([start]);
  for (const way of ways) {
    const last = way.at(-1)!;
    if (last === end) return way;
    for (const next of graph.get(last)?.keys() ?? []) {
      if (seen.has(next)) continue;
      seen.add(next);
      ways.push([...way, next]);
    }
  }
  return undefined;
}

/** Each import that lies in a cycle of folders, in the shortest such cycle: its folders, and an import for each step. */
export function folderCycles(graph: FolderGraph): string[] {
  const found = new Map<string, string>();
  for (const [from, targets] of graph) {
    for (const to of targets.keys()) {
      const back = shortestWay(graph, to, from);
      if (back === undefined) continue;
      const first = back.indexOf([...back].sort()[0]!);
      const ring = [...back.slice(first), ...back.slice(0, first)];
      const steps = ring.map((folder, i) => graph.get(folder)?.get(ring[(i + 1) % ring.length]!));
      found.set(ring.join(), `${[...ring, ring[0]].join(' → ')}: ${steps.join('; ')}`);
    }
  }
  return [...found.values()].sort();
}
