import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dist } from '../support/bundles.ts';
import type { Lab } from './lab.ts';

/** Copies the `plumbline` command into a folder of the guest: plumbline.mjs and the files that it loads. */
export async function copyCommand(lab: Lab, folder: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-lab-'));
  try {
    const tar = join(directory, 'command.tar');
    execFileSync('tar', ['-cf', tar, '-C', dist, 'plumbline.mjs', 'cli']);
    await lab.copy(tar, `${folder}/command.tar`);
    await lab.run(`tar -C ${folder} -xf ${folder}/command.tar && rm ${folder}/command.tar`);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
