import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const DAEMONS = ['webhook', 'scheduler-plugin', 'node-agent', 'console/server'];
/** A type of an object as it was received: `type Pod = z.infer<typeof pod>`. Configurations are read-only copies. */
const RAW_TYPE = /\btype (\w+) = z\.(?:infer|output)</g;
/** Types that keep their values: collections, caches and fields of classes. */
const KEEPER = /\b(?:Map|Set|WeakMap|Reflector|FairIntake)<.*|^\s+(?:readonly )?#\w+[?!]?: .*/gm;

/** The lines that keep objects as they were received. Caches keep a projection, of which every field is read. */
export function rawTypesKept(files: ReadonlyMap<string, string>): string[] {
  const raw = [...files.values()].flatMap((text) => [...text.matchAll(RAW_TYPE)].map(([, name]) => name));
  const isRaw = new RegExp(`\\b(?:${raw.join('|')})\\b`);
  return [...files].flatMap(([file, text]) =>
    [...text.matchAll(KEEPER)]
      .filter(([line]) => isRaw.test(line))
      .map(([line]) => `${file} keeps a whole object: ${line.trim()}`),
  );
}

/** The sources of the daemons, with the schemas of API objects. */
export function daemonSources(root: string): Map<string, string> {
  const paths = DAEMONS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  ).filter((path) => path.endsWith('.ts'));
  return new Map([...paths, 'kube/resources.ts'].map((path) => [path, readFileSync(join(root, path), 'utf8')]));
}
