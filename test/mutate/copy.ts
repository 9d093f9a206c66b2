import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { root } from '../support/bundles.ts';

/** A copy of the project's files, with the same packages, in which sources are changed. */
export interface Copy {
  readonly directory: string;
  read(file: string): string;
  write(file: string, text: string): void;
  remove(): void;
}

/** Copies what git knows of and what it does not ignore, as it is now. */
export function createCopy(): Copy {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-mutate-'));
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root });
  for (const file of listed.toString().split('\0').filter(Boolean)) {
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    cpSync(join(root, file), join(directory, file), { verbatimSymlinks: true });
  }
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  return {
    directory,
    read: (file) => readFileSync(join(directory, file), 'utf8'),
    write: (file, text) => writeFileSync(join(directory, file), text),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
