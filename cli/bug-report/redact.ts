import { DPU_LEASE_NAMESPACE, NAMESPACE } from '../../model/names.ts';

/** Namespaces whose names stay: those of the cluster's own components. */
const SYSTEM: ReadonlySet<string> = new Set([
  ...[NAMESPACE, DPU_LEASE_NAMESPACE, 'kubevirt', 'default'],
  ...['kube-system', 'kube-public', 'kube-node-lease'],
]);

export const isSystem = (namespace: string | undefined): boolean =>
  namespace === undefined || (SYSTEM.has(namespace) && namespace !== 'default');

/** A name in a text, with its boundaries: names of Kubernetes objects have no other characters. */
const NAME = /[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?/g;
const FIELD = /"(namespace|pod|podName|vm|vmi|podNamespace)":\s*"([^"\\]+)"/g;
const LAUNCHER = /^(virt-launcher|hp-volume)-/;

const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]+-----[\s\S]*?(?:-----END [A-Z ]+-----|$)/g, '<PEM removed>'],
  [/\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, '<token removed>'],
  [/(\bBearer\s+)[\w.~+/=-]+/gi, '$1<removed>'],
  [/(\bAuthorization:\s*\w+\s+)\S+/gi, '$1<removed>'],
  [/(--?[\w-]*(?:token|passw|secret|credential|key)[\w-]*\s+)(?![-<])\S+/gi, '$1<removed>'],
  [/\b(\w*(?:TOKEN|PASSW|SECRET|CREDENTIAL|API_?KEY)\w*=)(?!<)\S+/gi, '$1<removed>'],
  [/[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g, '<address removed>'],
  [/("?(?:token|password|passwd|secret|authorization)"?\s*[:=]\s*"?)(?!<)[^\s",}]+/gi, '$1<removed>'],
  [/(\/\/)[^\s/@:]+:[^\s/@]+@/g, '$1<removed>@'],
];

/** Flags of Plumbline's daemons and of kube-scheduler whose values are no secrets. */
const PUBLIC_FLAG =
  /^--(?:address|alignment|allocation-check|answers|config|dpu-[a-z-]+|eviction|full-pcpus-only|gate[a-z-]*|global-network-namespaces|host|host-root|kubelet-[a-z-]+|leader-elect[a-z-]*|log-level|mode|network-(?:context|map)|node-name|oversized|ovs-[a-z-]+|pod-name|port|probe-[a-z]+|reservation-timeout|scheduler-(?:lease|name)|unpredictable|v|vm-pinning)(?:=|$)/;

/** Arguments of a container: another one may hold anything, also as the value of a flag before it. */
export function redactedArguments(args: readonly string[] | null | undefined): string[] | undefined {
  return args?.map((argument, i) => {
    const isValue = !argument.startsWith('-') && PUBLIC_FLAG.test(args[i - 1] ?? '') && !args[i - 1]?.includes('=');
    if (PUBLIC_FLAG.test(argument) || isValue) return argument;
    return argument.startsWith('--') ? `${argument.split('=', 1)[0]}=<removed>` : '<removed>';
  });
}

/** IPv4, IPv6 and MAC addresses; without a letter, groups are entries of a CPU mask. */
const ADDRESS =
  /\b\d{1,3}(?:\.\d{1,3}){3}\b|\b(?=[\d:]*[a-f])(?:[\da-f]{1,4}:){4,7}[\da-f]{1,4}\b|\b(?:[\da-f]{1,4}:){1,6}:(?:[\da-f]{1,4}\b)?/gi;
const LOCAL_ADDRESSES: ReadonlySet<string> = new Set(['127.0.0.1', '0.0.0.0']);
/** Shorter names of tenants are replaced only where they stand alone: they are parts of too many other words. */
const MIN_PART_CHARACTERS = 4;
const MAX_PARTS = 12;

/** Replaces names of tenants' objects and addresses, each by the same word everywhere, and removes secrets. */
export class Redaction {
  readonly #words = new Map<string, string>();
  readonly #counts = new Map<string, number>();
  readonly #keep: ReadonlySet<string>;

  /** @param keep names that stay: those of nodes and of the cluster's own pods */
  constructor(keep: ReadonlySet<string>) {
    this.#keep = keep;
  }

  hide(kind: string, name: string | undefined): void {
    if (!name || this.#keep.has(name) || SYSTEM.has(name) || this.#words.has(name)) return;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    this.#words.set(name, `${kind}-${count}`);
  }

  /** Has the names in fields of a text replaced, which may be those of objects that are gone. */
  learn(text: string): void {
    for (const [, field = '', value = ''] of text.matchAll(FIELD)) {
      for (const name of value.split('/')) this.hide(field === 'namespace' ? 'namespace' : 'pod', name);
    }
    for (const [name] of text.matchAll(NAME)) if (LAUNCHER.test(name)) this.hide('pod', name);
  }

  text(text: string): string {
    const clean = SECRETS.reduce((rest, [pattern, by]) => rest.replaceAll(pattern, by), text);
    const named = clean.replaceAll(
      NAME,
      (name) => this.#words.get(name) ?? name.split('.').map(this.#replaced).join('.'),
    );
    return named.replaceAll(ADDRESS, (address) => this.#addressWord(address));
  }

  readonly #replaced = (name: string): string => {
    const whole = this.#words.get(name);
    if (whole !== undefined || this.#keep.has(name)) return whole ?? name;
    const parts = name.split('-');
    if (parts.length === 1 || parts.length > MAX_PARTS) return name;
    const result: string[] = [];
    for (let first = 0; first < parts.length; ) {
      const length = this.#lengthOfName(parts.slice(first));
      result.push(this.#words.get(parts.slice(first, first + length).join('-')) ?? parts[first]!);
      first += Math.max(1, length);
    }
    return result.join('-');
  };

  /** Number of parts that are the longest name of a tenant's object at the begin of a list; 0 for none. */
  #lengthOfName(parts: readonly string[]): number {
    for (let length = parts.length; length > 0; length--) {
      const name = parts.slice(0, length).join('-');
      if (name.length >= MIN_PART_CHARACTERS && this.#words.has(name)) return length;
    }
    return 0;
  }

  #addressWord(address: string): string {
    if (LOCAL_ADDRESSES.has(address)) return address;
    this.hide('address', address);
    return this.#words.get(address) ?? address;
  }

  data(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) return value.map((member) => this.data(member));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, this.data(field)]));
  }
}
