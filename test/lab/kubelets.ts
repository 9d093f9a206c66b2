import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { execute } from './machine/commands.ts';

/** A kubelet's program on this machine. */
export interface KubeletProgram {
  readonly path: string;
  /** From the program itself: `v1.36.2`. */
  readonly version: string;
}

/** The folders of `--kubelet`, otherwise those of the environment variable KUBELETS, separated as in PATH. */
export function kubeletFolders(flags: readonly string[] | undefined, env: NodeJS.ProcessEnv): readonly string[] {
  return flags ?? (env['KUBELETS'] ?? '').split(delimiter).filter((folder) => folder !== '');
}

/**
 * The kubelets in folders, in order.
 * @throws Error with the folder that has none, or the program without a version
 */
export async function readKubelets(folders: readonly string[]): Promise<readonly KubeletProgram[]> {
  const programs: KubeletProgram[] = [];
  for (const folder of folders) {
    const path = join(folder, 'kubelet');
    if (!existsSync(path)) throw new Error(`there is no program "kubelet" in ${folder}`);
    const version = versionIn(await execute(path, ['--version']), path);
    programs.push({ path, version });
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
