import { randomBytes } from 'node:crypto';
import { renameSync, rmSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { resultOrNone } from '../../model/json.ts';
import { unlessMissing } from './bounded-file.ts';

/** A unix socket that this process made, at its path. Another process's socket at that path is never removed. */
export class OwnSocket {
  readonly #path: string;
  readonly #stats: Stats;

  constructor(path: string, stats: Stats) {
    this.#path = path;
    this.#stats = stats;
  }

  /** Whether the socket at the path is still this one; also while that cannot be read. */
  isInPlace(): boolean {
    try {
      const current = unlessMissing(() => statSync(this.#path));
      return current?.ino === this.#stats.ino && current.dev === this.#stats.dev;
    } catch {
      return true;
    }
  }

  /** Removes it if it is. Call it before the server closes: until then, no other socket can have its inode number. */
  remove(): void {
    if (this.isInPlace()) resultOrNone(() => rmSync(this.#path, { force: true }));
  }
}

/**
 * Puts a socket in place of any other, in one step. It listens at a temporary name first: a server that closes removes the
 * name at which it began to listen, whatever socket is there by then. @throws a system error
 */
export async function placeSocket(path: string, listen: (temporary: string) => Promise<void>): Promise<OwnSocket> {
  // As long as the shortest name of a socket, since the length of its path is limited.
  const temporary = join(dirname(path), `.new-${randomBytes(2).toString('hex')}`);
  rmSync(temporary, { force: true });
  await listen(temporary);
  try {
    const socket = new OwnSocket(path, statSync(temporary));
    renameSync(temporary, path);
    return socket;
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}
