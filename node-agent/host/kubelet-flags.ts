import { KubeletConfigError } from './kubelet-config.ts';

/** What a kubelet's command line says. */
export interface KubeletFlags {
  /** --config, --config-dir, --root-dir and --cert-dir. */
  readonly config: string | undefined;
  readonly configDir: string | undefined;
  readonly rootDir: string;
  readonly certDir: string;
  /** Fields of a KubeletConfiguration that flags set. */
  readonly settings: Readonly<Record<string, unknown>>;
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
/**
 * Reads the flags that matter here; the last one wins, as for the kubelet.
 *
 * @param args without the name of the program
 * @throws KubeletConfigError if the kubelet could not have this value, or it contains an environment variable
 */
export function kubeletFlagsOf(args: readonly string[]): KubeletFlags {
  const paths = new Map<string, string>();
  const settings: Record<string, unknown> = {};
  for (const [flag, value] of flagsIn(args)) {
    if (value.includes('$')) throw new KubeletConfigError(`--${flag}`, 'the value of a variable in it is not known');
    const [field, parse] = FIELDS[flag] ?? [];
    if (field === undefined || parse === undefined) {
      paths.set(flag, value);
      continue;
    }
    try {
      settings[field] = parse(value, settings[field]);
    } catch (error) {
      throw new KubeletConfigError(`--${flag}`, (error as Error).message, { cause: error });
    }
  }
  return {
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
