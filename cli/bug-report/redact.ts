import { DPU_LEASE_NAMESPACE, NAMESPACE } from '../../model/names.ts';

/** Namespaces whose names stay: those of the cluster's own components. */
const SYSTEM: ReadonlySet<string> = new Set([
  NAMESPACE,
  DPU_LEASE_NAMESPACE,
  'kube-system',
  'kube-public',
  'kube-node-lease',
  'kubevirt',
  'default',
]);

/** Whether the objects in a namespace are the cluster's own. */
export const isSystem = (namespace: string | undefined): boolean => {
  return namespace === undefined || (SYSTEM.has(namespace) && namespace !== 'default');
};

/** A name in a text, with its boundaries: names of Kubernetes objects have no other characters. */
const NAME = /[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?/g;
/** The fields of a log line, an Event or a report that name an object of a tenant. */
const FIELD = /"(namespace|pod|podName|vm|vmi|podNamespace)":\s*"([^"\\]+)"/g;
const LAUNCHER = /^(virt-launcher|hp-volume)-/;

/** What must never leave the cluster, wherever it is. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]+-----[\s\S]*?(?:-----END [A-Z ]+-----|$)/g, '<PEM removed>'],
  [/\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, '<token removed>'],
  [/(\bBearer\s+)[\w.~+/=-]+/gi, '$1<removed>'],
  [/("?(?:token|password|passwd|secret|authorization)"?\s*[:=]\s*"?)(?!<)[^\s",}]+/gi, '$1<removed>'],
  [/(\/\/)[^\s/@:]+:[^\s/@]+@/g, '$1<removed>@'],
];

/** Replaces names of tenants' objects, each by the same word everywhere, and removes secrets. */
export class Redaction {
  readonly #words = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  readonly #keep: ReadonlySet<string>;

  /** @param keep names that stay: those of nodes and of the cluster's own pods */
  constructor(keep: ReadonlySet<string>) {
    this.#keep = keep;
  }

  /** Has a name replaced. @param kind the prefix of the replacement: `vm`, `namespace` */
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
    const wordOf = (name: string) => this.#words.get(name) ?? name;
    return clean.replaceAll(NAME, (name) => this.#words.get(name) ?? name.split('.').map(wordOf).join('.'));
  }

  /** The same in every text of some data, but not in the names of its fields. */
  data(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) return value.map((one) => this.data(one));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, this.data(one)]));
  }
}
