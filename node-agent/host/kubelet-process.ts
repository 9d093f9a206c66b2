import { statSync } from 'node:fs';
import { createConnection } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { peerOf } from '../../native/peer.ts';
import { readBounded } from '../files/bounded-file.ts';
import { CHANGED_SINCE_START, KubeletConfigError } from './kubelet-config.ts';

/** Maximum bytes of a command line, and of a file with arguments. */
const MAX_ARGUMENTS_BYTES = 128 * 1024;
const CONNECT_MILLISECONDS = 1000;

/** The process that runs the kubelet. */
export interface KubeletProcess {
  readonly program: string;
  /** The kubelet's arguments. Undefined if it runs within a program that has other arguments, such as K3s. */
  readonly args: readonly string[] | undefined;
  /** When the kubelet created its socket, in milliseconds since 1970. It had read its configuration before. */
  readonly listensSince: number;
}

/** Flags that other programs which contain a kubelet do not have. */
const KUBELET_FLAG =
  /^--(root-dir|cert-dir|config-dir|kubeconfig|bootstrap-kubeconfig|container-runtime-endpoint)(=|$)/;

/**
 * Finds the kubelet by its PodResources socket, which only its own process can listen on: neither its name nor its
 * place is the same in all distributions.
 *
 * @param root directory of the host's files: `/`
 * @throws Error if nothing listens there, or the process cannot be read
 */
export async function findKubelet(socketPath: string, root: string): Promise<KubeletProcess> {
  const pid = await listenerOf(socketPath);
  if (pid === undefined) throw new KubeletConfigError(socketPath, 'the kubelet is in a process table of its own');
  const listensSince = statSync(socketPath).mtimeMs;
  const text = readBounded(join(root, `proc/${pid}/cmdline`), MAX_ARGUMENTS_BYTES);
  const [program = '', ...args] = text.replace(/\0$/, '').split('\0');
  const name = basename(program);
  const at = args.findIndex((arg) => /^--kubelet[-_]args[-_]file(=|$)/.test(arg));
  if (at >= 0) {
    const argsFile = args[at]?.split('=', 2)[1] ?? args[at + 1] ?? '';
    const { mtimeMs } = statSync(join(root, argsFile));
    if (mtimeMs > listensSince) throw new KubeletConfigError(argsFile, CHANGED_SINCE_START);
    return { program: name, listensSince, args: argumentsOf(argsFile, root) };
  }
  const [first = ''] = args;
  if (basename(first) === 'kubelet') return { program: name, listensSince, args: args.slice(1) };
  const isKubelet = /^kubelet(?!\w)/.test(name) || args.some((arg) => KUBELET_FLAG.test(arg));
  return { program: name, listensSince, args: isKubelet ? args : undefined };
}

function listenerOf(socketPath: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(socketPath, () => {
      const pid = peerOf(socket);
      socket.destroy();
      resolve(pid);
    });
    socket.setTimeout(CONNECT_MILLISECONDS, () => socket.destroy(new Error(`${socketPath} does not answer`)));
    socket.once('error', reject);
  });
}

/**
 * The arguments in the file of MicroK8s' kubelite. The snap's revision in its path is also the variables' value.
 * Source: github.com/canonical/microk8s, build-scripts/components/kubernetes/patches/v1.36.0 (ReadArgsFromFile).
 */
function argumentsOf(file: string, root: string): string[] {
  const data = dirname(dirname(file));
  const variables = new Map([
    ['SNAP_DATA', data],
    ['SNAP_COMMON', join(dirname(data), 'common')],
    ['SNAP', data.replace('/var/snap/', '/snap/')],
  ]);
  return readBounded(join(root, file), MAX_ARGUMENTS_BYTES)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .flatMap((line) => line.replaceAll(/["']/g, '').split(' '))
    .map((arg) =>
      arg.replaceAll(/\$(?:\{(\w+)\}|(\w+))/g, (text, braced?: string, bare?: string) => {
        return variables.get(braced ?? bare ?? '') ?? text;
      }),
    );
}
