import { statSync } from 'node:fs';
import { createConnection } from 'node:net';
import { uptime } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { resultOrNone } from '../../model/json.ts';
import { peerOf } from '../../native/peer.ts';
import { readBounded } from '../files/bounded-file.ts';
import { CHANGED_SINCE_START, KubeletConfigError } from './kubelet-config.ts';

/** Maximum bytes of a command line, and of a file with arguments. */
const MAX_ARGUMENTS_BYTES = 128 * 1024;
const CONNECT_MILLISECONDS = 1000;

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

/** By its PodResources socket: its name and place differ between distributions. @throws Error if none listens */
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

/** Clock ticks a second in /proc: USER_HZ of the kernel's interface, the same on all architectures of Kubernetes. */
const TICKS_PER_SECOND = 100;

/**
 * When the kubelet's process started, in milliseconds since 1970; where it is hidden, when it created its socket.
 * Undefined if there is no socket.
 */
export async function kubeletStartedAt(socketPath: string, root: string): Promise<number | undefined> {
  const pid = await listenerOf(socketPath).catch(() => undefined);
  const processStart = resultOrNone(() => processStartedAt(join(root, `proc/${pid}/stat`)));
  return processStart ?? resultOrNone(() => statSync(socketPath).mtimeMs);
}

/** Source: proc_pid_stat(5), field 22; the name in field 2 may contain blanks and brackets. @throws a system error */
function processStartedAt(statFile: string): number {
  const text = readBounded(statFile, MAX_ARGUMENTS_BYTES);
  const ticks = Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[19]);
  return Date.now() - (uptime() - ticks / TICKS_PER_SECOND) * 1000;
}

/**
 * The arguments in the file of MicroK8s' kubelite. The snap's revision in its path is also the variables' value.
 * Source: github.com/canonical/microk8s, build-scripts/components/kubernetes/patches/v1.36.0 (ReadArgsFromFile).
 */
function argumentsOf(file: string, root: string): string[] {
  const data = dirname(dirname(file));
  const snap = data.replace('/var/snap/', '/snap/');
  const variables = new Map(
    Object.entries({ SNAP_DATA: data, SNAP_COMMON: join(dirname(data), 'common'), SNAP: snap }),
  );
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

type Parse = (value: string, before: unknown) => unknown;

/** Repeated flags add to the same map, which replaces the one of the configuration. */
function pairs(parse: (value: string) => unknown): Parse {
  return (value, before) => {
    const entries = value.split(',').filter((pair) => pair !== '');
    const added = entries.map((pair) => split(pair, '=')).map(([key, of]) => [key.trim(), parse(of.trim())]);
    return { ...(before as object | undefined), ...Object.fromEntries(added) };
  };
}

/**
 * The flags that set what the agent reads, and their fields.
 * Source: kubernetes 1.36, cmd/kubelet/app/options/options.go (AddKubeletConfigFlags), component-base/cli/flag,
 * pkg/util/flag (ReservedMemoryVar).
 */
const FIELDS: Readonly<Record<string, readonly [field: string, parse: Parse]>> = {
  address: ['address', String],
  port: ['port', wholeNumber],
  'tls-cert-file': ['tlsCertFile', String],
  'cpu-manager-policy': ['cpuManagerPolicy', String],
  'cpu-manager-policy-options': ['cpuManagerPolicyOptions', pairs(String)],
  'topology-manager-policy': ['topologyManagerPolicy', String],
  'topology-manager-scope': ['topologyManagerScope', String],
  'topology-manager-policy-options': ['topologyManagerPolicyOptions', pairs(String)],
  'memory-manager-policy': ['memoryManagerPolicy', String],
  'reserved-memory': ['reservedMemory', reservedMemory],
  'reserved-cpus': ['reservedSystemCPUs', String],
  'max-pods': ['maxPods', wholeNumber],
  'feature-gates': ['featureGates', pairs(truth)],
};
const PATHS = ['config', 'config-dir', 'root-dir', 'cert-dir'];
/** Settings from a kubelet's command line; the last of equal flags wins. @throws KubeletConfigError if a value is impossible or has an environment variable */
export function kubeletFlagsOf(args: readonly string[]) {
  const paths = new Map<string, string>();
  const settings: Record<string, unknown> = {};
  for (const [flag, value] of flagsIn(args)) {
    if (value.includes('$')) throw new KubeletConfigError(`--${flag}`, 'the value of a variable in it is not known');
    const [field, parse] = FIELDS[flag] ?? [];
    try {
      if (field === undefined || parse === undefined) paths.set(flag, value);
      else settings[field] = parse(value, settings[field]);
    } catch (error) {
      throw new KubeletConfigError(`--${flag}`, (error as Error).message, { cause: error });
    }
  }
  return {
    /** --config, --config-dir, --root-dir and --cert-dir. */
    config: paths.get('config') || undefined,
    configDir: paths.get('config-dir') || undefined,
    rootDir: paths.get('root-dir') ?? '/var/lib/kubelet',
    certDir: paths.get('cert-dir') ?? '/var/lib/kubelet/pki',
    settings,
  };
}

/** The flags of both lists with their values. Underscores are dashes, and nothing after `--` is a flag. */
function* flagsIn(args: readonly string[]): Generator<[flag: string, value: string]> {
  for (let i = 0; i < args.length && args[i] !== '--'; i++) {
    const [, written = '', inline] = /^--([^=]+)(?:=(.*))?$/s.exec(args[i] ?? '') ?? [];
    const flag = written.replaceAll('_', '-');
    if (Object.hasOwn(FIELDS, flag) || PATHS.includes(flag)) yield [flag, inline ?? args[++i] ?? ''];
  }
}

function split(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  if (at < 0) throw new Error(`expected key${separator}value`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function wholeNumber(text: string): number {
  if (!/^-?\d{1,10}$/.test(text)) throw new Error('expected a whole number');
  return Number(text);
}

function truth(text: string): boolean {
  if (/^(1|t|T|true|TRUE|True)$/.test(text)) return true;
  if (/^(0|f|F|false|FALSE|False)$/.test(text)) return false;
  throw new Error('expected true or false');
}

/** `0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=1Gi`. */
function reservedMemory(text: string, before: unknown): unknown[] {
  const added = text.split(';').map((entry) => {
    const [numaNode, limits] = split(entry, ':');
    return { numaNode: wholeNumber(numaNode), limits: pairs(String)(limits, undefined) };
  });
  return [...((before as unknown[] | undefined) ?? []), ...added];
}
