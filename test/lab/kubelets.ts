import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { execute } from './machine/commands.ts';

export interface KubeletProgram {
  readonly path: string;
  readonly version: string;
}

/** The folders of `--kubelet`, otherwise those of the environment variable KUBELETS, separated as in PATH. */
export function kubeletFolders(flags: readonly string[] | undefined, env: NodeJS.ProcessEnv): readonly string[] {
  return flags ?? (env['KUBELETS'] ?? '').split(delimiter).filter((folder) => folder !== '');
}

/** The kubelets in folders, in order. @throws Error that names a folder without one */
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

export function versionIn(text: string, path: string): string {
  const version = /^Kubernetes (v\d+\.\d+\.\d+\S*)\s*$/.exec(text)?.[1];
  if (version === undefined)
    throw new Error(`${path} --version says ${JSON.stringify(text.trim())}, which is no version`);
  return version;
}
