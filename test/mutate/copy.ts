import { execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { root } from '../support/bundles.ts';

/** A copy of the project's files with the same packages, in which sources are changed. */
export interface Copy {
  readonly directory: string;
  /** For temporary files of programs in the copy. */
  readonly temporary: string;
  read(file: string): string;
  write(file: string, text: string): void;
  /**
   * Ends all processes that run a program built in the copy or have its directory of temporary files, whatever process
   * group they are in: Open vSwitch makes daemons of itself.
   */
  endPrograms(): void;
  remove(): void;
}

/** Copies all files that git tracks and does not ignore, in their current state. */
export function createCopy(): Copy {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-mutate-'));
  const listed = execFileSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'],
    {
      cwd: root,
    },
  );
  const deleted = execFileSync('git', ['ls-files', '-z', '--deleted'], { cwd: root }).toString().split('\0');
  for (const file of listed.toString().split('\0').filter(Boolean)) {
    if (deleted.includes(file)) continue;
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    cpSync(join(root, file), join(directory, file), { verbatimSymlinks: true });
  }
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  // Sockets are created below it, with paths of at most 107 bytes.
  const temporary = join(directory, 't');
  mkdirSync(temporary);
  return {
    directory,
    temporary,
    read: (file) => readFileSync(join(directory, file), 'utf8'),
    write: (file, text) => {
      mkdirSync(dirname(join(directory, file)), { recursive: true });
      writeFileSync(join(directory, file), text);
    },
    endPrograms: () => endProgramsOf(directory, temporary),
    remove: () => rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }),
  };
}

function endProgramsOf(directory: string, temporary: string): void {
  for (const pid of readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))) {
    try {
      const isBuilt = readlinkSync(`/proc/${pid}/exe`).startsWith(`${directory}/`);
      if (isBuilt || environmentOf(pid).includes(`TMPDIR=${temporary}`)) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // The process has ended, or is a thread of the kernel.
    }
  }
}

function environmentOf(pid: string): readonly string[] {
  return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
}
