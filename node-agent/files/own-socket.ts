import { randomBytes } from 'node:crypto';
import { renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { resultOrNone } from '../../model/json.ts';

/** A unix socket that this process made, at its path. Another process's socket at that path is never removed. */
export type OwnSocket = Awaited<ReturnType<typeof placeSocket>>;

/**
 * In place of any other socket, in one step. It listens at a temporary name first: a server that closes removes the
 * name at which it began to listen, whatever socket is there by then.
 */
export async function placeSocket(path: string, listen: (temporary: string) => Promise<void>) {
  // As long as the shortest name of a socket, since the length of its path is limited.
  const temporary = join(dirname(path), `.new-${randomBytes(2).toString('hex')}`);
  rmSync(temporary, { force: true });
  await listen(temporary);
  const { dev, ino } = statSync(temporary);
  renameSync(temporary, path);
  const isInPlace = (): boolean => {
    const current = resultOrNone(() => statSync(path));
    return current?.ino === ino && current.dev === dev;
  };
  return {
    /** Whether the socket at the path is still this one. */
    isInPlace,
    /** Removes it if it is. Call it before the server closes: until then, no other socket can have its inode number. */
    remove() {
      if (isInPlace()) rmSync(path, { force: true });
    },
  };
}
