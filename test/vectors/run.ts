import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Adapter, collect, type Outcome, Skip } from './outcome.ts';

/** Files that hold no cases of their own: topologies and recorded objects that other files and tests refer to. */
const SUPPORT_FILES = /^(?:kubelet-topologies|kubelet-discovery|ovsdb-.*|vmi|launcher-patches|.*\.admission)$/;

/** How one vector file came out, by its name without `.json`. */
export interface FileOutcome extends Outcome {
  readonly file: string;
}

/**
 * Runs every vector file of a folder by the adapter of the same name (`<file>.ts` next to this one, or the same without
 * `-cases`), which exports `run`. A file without an adapter is counted as skipped, never ignored.
 */
export async function runVectors(folder: string): Promise<FileOutcome[]> {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -'.json'.length))
    .sort();
  const outcomes: FileOutcome[] = [];
  for (const file of files) {
    if (!(await adapterOf(file)) && SUPPORT_FILES.test(file)) continue;
    outcomes.push({ file, ...(await runFile(folder, file)) });
  }
  return outcomes;
}

/** Runs the cases of one file, or other content in its form. */
export async function runFile(folder: string, file: string, content?: unknown): Promise<Outcome> {
  const load = (name: string): unknown => JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'));
  const adapter = await adapterOf(file);
  return adapter ? adapter(content ?? load(file), load) : withoutAdapter(load(file));
}

async function adapterOf(file: string): Promise<Adapter | undefined> {
  const names = readdirSync(import.meta.dirname);
  const module = [file, file.replace(/-cases$/, '')].find((name) => names.includes(`${name}.ts`));
  if (!module) return undefined;
  const loaded: { run?: Adapter } = await import(`./${module}.ts`);
  return loaded.run;
}

function withoutAdapter(content: unknown): Outcome {
  const cases = Array.isArray(content) ? content : [content];
  return collect(
    cases,
    (_, index) => `${index}`,
    () => new Skip('no adapter for this file'),
  );
}
