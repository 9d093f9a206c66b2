import { once } from 'node:events';
import { access, constants, lstat, open, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { usageError } from '../support/exit-status.ts';

const DEMO_SERVER = /^ {2}- name: plumbline-sandbox\n {4}cluster:\n {6}server: https:\/\/127\.0\.0\.1:(\d+)$/m;

const existsError = (path: string) => usageError(`${path} exists, and is not overwritten: name a new file`);

/** @throws CliError if the path exists (also as a link), or the directory is missing or not writable */
export async function requireNew(path: string): Promise<void> {
  const existing = await lstat(path).catch(() => undefined);
  if (existing !== undefined && !(existing.isFile() && (await isAbandoned(path)))) throw existsError(path);
  if (existing !== undefined) await rm(path);
  await access(dirname(path), constants.W_OK).catch((error: NodeJS.ErrnoException) => {
    throw usageError(`cannot create ${path}: ${error.message}`);
  });
}

/** Whether a demo wrote this kubeconfig that is not running any more: it was killed. */
async function isAbandoned(path: string): Promise<boolean> {
  const [, port] = DEMO_SERVER.exec(await readFile(path, 'utf8').catch(() => '')) ?? [];
  if (port === undefined) return false;
  const socket = connect(Number(port), '127.0.0.1');
  const isListening = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return !isListening;
}

/** Readable by its owner only. @returns removes it, unless replaced @throws CliError */
export async function createNewFile(path: string, content: Uint8Array): Promise<() => Promise<void>> {
  const file = await open(path, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EEXIST' ? existsError(path) : usageError(`cannot create ${path}: ${error.message}`);
  });
  await file.writeFile(content);
  const { dev, ino } = await file.stat();
  return async () => {
    const current = await lstat(path).catch(() => undefined);
    if (current?.ino === ino && current.dev === dev) await rm(path);
    // Open until here, so that no other file gets its inode.
    await file.close();
  };
}
