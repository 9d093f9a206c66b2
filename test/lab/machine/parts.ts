import { randomBytes } from 'node:crypto';
import { chmod, copyFile, cp, mkdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { execute } from './commands.ts';
import { HOST_ALIAS } from './diagnosis.ts';
import { type Layer, makeLayer, writeArchive } from './oci-archive.ts';
import type { Places } from './places.ts';

const GUEST = join(import.meta.dirname, 'guest');
const PRIVATE = /ssh_host_|authorized_keys|kubeconfig/;
/** MiB of free space that the file system needs. */
const SPARE = 32;
/** An image of the guest: Node.js in the same place as in the daemons' base image. */
export const NODE_IMAGE = 'lab/node:1';
export const NODE_ARCHIVE = '/opt/lab/images/node.tar';

/**
 * Creates the second disk, mounted at /opt/lab: `bin/` has the kubelet and Node.js, `images/` the runtime's imports,
 * and `over/` is copied over the root file system at the start.
 * @param files additional files by their path in the guest
 * @returns the layer of `NODE_IMAGE`
 */
export async function makeParts(
  places: Places,
  kubelet: string,
  files: Readonly<Record<string, string>>,
): Promise<Layer> {
  const work = join(places.run, 'parts');
  await rm(work, { recursive: true, force: true });
  const disk = join(work, 'disk');
  for (const name of ['bin', 'images']) await mkdir(join(disk, name), { recursive: true });
  await cp(GUEST, join(disk, 'over'), { recursive: true });
  await mkdir(join(disk, 'over/usr/local/bin'), { recursive: true });
  for (const [name, from] of Object.entries({ kubelet, node: process.execPath })) {
    await copyFile(from, join(disk, 'bin', name));
    await chmod(join(disk, 'bin', name), 0o755);
    await symlink(`/opt/lab/bin/${name}`, join(disk, 'over/usr/local/bin', name));
  }
  for (const [path, text] of Object.entries({ ...files, ...(await identity(places)) })) {
    const file = join(disk, 'over', path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text, { mode: PRIVATE.test(path) ? 0o600 : 0o644 });
  }
  await writeBasicImages(work, places.busybox, join(disk, 'images/basic.tar'));
  const layer = await makeNodeLayer(work);
  await writeArchive(join(disk, 'images/node.tar'), [{ name: NODE_IMAGE, layers: [layer] }]);
  await makeDisk(disk, places.parts);
  await rm(work, { recursive: true });
  return layer;
}

async function identity(places: Places): Promise<Record<string, string>> {
  const hostKey = join(places.run, 'host');
  for (const file of [places.key, hostKey]) {
    await rm(file, { force: true });
    await execute('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', HOST_ALIAS, '-f', file]);
  }
  await writeFile(places.knownHosts, `${HOST_ALIAS} ${await readFile(`${hostKey}.pub`, 'utf8')}`);
  return {
    '/etc/machine-id': `${randomBytes(16).toString('hex')}\n`,
    '/etc/resolv.conf': '',
    '/etc/ssh/ssh_host_ed25519_key': await readFile(hostKey, 'utf8'),
    '/root/.ssh/authorized_keys': await readFile(`${places.key}.pub`, 'utf8'),
  };
}

async function makeDisk(directory: string, target: string): Promise<void> {
  await rm(target, { force: true });
  const size = Number.parseInt(await execute('du', ['--summarize', '--block-size=1M', directory]), 10);
  const options = ['-q', '-t', 'ext4', '-O', '^has_journal', '-m', '0', '-E', 'root_owner=0:0'];
  await execute('mke2fs', [...options, '-d', directory, target, `${Math.ceil(size * 1.05) + SPARE}M`]);
}

/** Waits, and exits on a signal; a bare `sleep` as the first process of a container would not. */
const WAIT = ['sh', '-c', 'trap exit TERM INT; sleep 2147483647 & wait'];

async function writeBasicImages(work: string, busybox: string, target: string): Promise<void> {
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

/** In place of the daemons' base image, which is in a registry: this machine's Node.js with its libraries. */
async function makeNodeLayer(work: string): Promise<Layer> {
  const root = join(work, 'node');
  await addProgram(root, process.execPath, '/nodejs/bin/node');
  return makeLayer(root, join(work, 'node.tar'));
}

async function addProgram(root: string, program: string, path: string): Promise<void> {
  const put = async (from: string, to: string) => {
    await mkdir(dirname(join(root, to)), { recursive: true });
    await copyFile(await realpath(from), join(root, to));
    await chmod(join(root, to), 0o755);
  };
  await put(program, path);
  for (const [library] of (await execute('ldd', [program])).matchAll(/\/\S+(?= \()/g)) await put(library, library);
}
