import { chmod, copyFile, mkdir, realpath, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { execute } from './commands.ts';
import { type Layer, makeLayer, writeArchive } from './oci-archive.ts';

/** Waits, and exits on a signal; a bare `sleep` as the first process of a container would not. */
const WAIT = ['sh', '-c', 'trap exit TERM INT; sleep 2147483647 & wait'];

/** `lab/busybox:1`, and `lab/pause:1` that only waits: an archive of both. */
export async function writeBasicImages(work: string, busybox: string, target: string): Promise<void> {
  const root = join(work, 'busybox');
  for (const name of ['bin', 'dev', 'etc', 'proc', 'sys', 'tmp']) await mkdir(join(root, name), { recursive: true });
  await copyFile(busybox, join(root, 'bin/busybox'));
  await chmod(join(root, 'bin/busybox'), 0o755);
  const applets = (await execute(busybox, ['--list'])).trim().split('\n');
  for (const applet of applets.filter((name) => name !== 'busybox'))
    await symlink('busybox', join(root, 'bin', applet));
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0:root:/:/bin/sh\n');
  const layers = [await makeLayer(root, join(work, 'busybox.tar'))];
  await writeArchive(target, [
    { name: 'lab/busybox:1', layers, command: ['sh'] },
    { name: 'lab/pause:1', layers, entrypoint: WAIT },
  ]);
}

/**
 * Replaces the base image of the daemons, which is in a registry: this machine's Node.js in the same place, with its
 * libraries.
 */
export async function makeNodeLayer(work: string): Promise<Layer> {
  const root = join(work, 'node');
  await addProgram(root, process.execPath, '/nodejs/bin/node');
  return makeLayer(root, join(work, 'node.tar'));
}

/** Copies a program with its libraries, at their own paths. */
export async function addProgram(root: string, program: string, path: string): Promise<void> {
  const put = async (from: string, to: string) => {
    await mkdir(dirname(join(root, to)), { recursive: true });
    await copyFile(await realpath(from), join(root, to));
    await chmod(join(root, to), 0o755);
  };
  await put(program, path);
  for (const [library] of (await execute('ldd', [program])).matchAll(/\/\S+(?= \()/g)) await put(library, library);
}
