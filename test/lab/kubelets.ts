import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import * as z from 'zod';
import type { Behaviour } from '../../model/kubelet/versions.ts';
import { execute } from './machine/commands.ts';

/** A kubelet's program on this machine. */
export interface KubeletProgram {
  readonly path: string;
  /** As the program itself says it: `v1.36.2`. */
  readonly version: string;
  /** What is known to differ from others of its version: changes that a distribution carries early. */
  readonly behaviour?: Partial<Behaviour>;
}

/** The file next to a kubelet that says so. */
const BEHAVIOUR_FILE = 'behaviour.json';
const behaviourFile = z.strictObject({
  deviceHints: z.enum(['all-nodes', 'device-nodes']).exactOptional(),
  uncoreRoundsUp: z.boolean().exactOptional(),
  resize: z.enum(['ignored', 'refused-whole', 'refused-by-resource']).exactOptional(),
});

/** The folders that `--kubelet` names, else those in the environment variable KUBELETS, separated as in PATH. */
export function kubeletFolders(flags: readonly string[] | undefined, env: NodeJS.ProcessEnv): readonly string[] {
  return flags ?? (env['KUBELETS'] ?? '').split(delimiter).filter((folder) => folder !== '');
}

/**
 * The kubelets in folders, in their order.
 * @throws Error naming the folder that has none, or the program that does not say its version; ZodError, SyntaxError on a
 *   `behaviour.json` that is none
 */
export async function readKubelets(folders: readonly string[]): Promise<readonly KubeletProgram[]> {
  const programs: KubeletProgram[] = [];
  for (const folder of folders) {
    const path = join(folder, 'kubelet');
    if (!existsSync(path)) throw new Error(`there is no program "kubelet" in ${folder}`);
    const version = versionIn(await execute(path, ['--version']), path);
    const file = join(folder, BEHAVIOUR_FILE);
    const behaviour = existsSync(file) ? behaviourFile.parse(JSON.parse(await readFile(file, 'utf8'))) : undefined;
    programs.push({ path, version, ...(behaviour && { behaviour }) });
  }
  return programs;
}

/** Reads `Kubernetes v1.36.2`, as the program at `path` says it. @throws Error if that is no version */
export function versionIn(text: string, path: string): string {
  const version = /^Kubernetes (v\d+\.\d+\.\d+\S*)\s*$/.exec(text)?.[1];
  if (version === undefined)
    throw new Error(`${path} --version says ${JSON.stringify(text.trim())}, which is no version`);
  return version;
}
