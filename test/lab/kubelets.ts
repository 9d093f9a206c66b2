import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import * as z from 'zod';
import type { Behaviour } from '../../model/kubelet/versions.ts';
import { execute } from './machine/commands.ts';

/** A kubelet's program on this machine. */
export interface KubeletProgram {
  readonly path: string;
  /** From the program itself: `v1.36.2`. */
  readonly version: string;
  /** Known differences from other kubelets of its version: changes that a distribution backported. */
  readonly behaviour?: Partial<Behaviour>;
}

/** The file next to a kubelet that lists them. */
const BEHAVIOUR_FILE = 'behaviour.json';
const behaviourFile = z.strictObject({
  deviceHints: z.enum(['all-nodes', 'device-nodes']).exactOptional(),
});

/** The folders of `--kubelet`, otherwise those of the environment variable KUBELETS, separated as in PATH. */
export function kubeletFolders(flags: readonly string[] | undefined, env: NodeJS.ProcessEnv): readonly string[] {
  return flags ?? (env['KUBELETS'] ?? '').split(delimiter).filter((folder) => folder !== '');
}

/**
 * The kubelets in folders, in order.
 * @throws Error with the folder that has none, or the program without a version; ZodError or SyntaxError for an invalid
 * `behaviour.json`
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

/** Reads `Kubernetes v1.36.2` from the program at `path`. @throws Error if it is not a version */
export function versionIn(text: string, path: string): string {
  const version = /^Kubernetes (v\d+\.\d+\.\d+\S*)\s*$/.exec(text)?.[1];
  if (version === undefined)
    throw new Error(`${path} --version says ${JSON.stringify(text.trim())}, which is no version`);
  return version;
}
