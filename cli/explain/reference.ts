import { MAX_NAME_CHARACTERS } from '../support/command.ts';
import { ArgumentError, usageError } from '../support/exit-status.ts';

export interface Reference {
  /** Undefined: a VM with that name, else a pod. */
  readonly kind: 'vm' | 'pod' | undefined;
  /** Undefined: the namespace of -n, else of the context. */
  readonly namespace: string | undefined;
  readonly name: string;
}

/** The names of kinds in kubectl; a VMI is explained as its VM. */
const KINDS: Readonly<Record<string, 'vm' | 'pod'>> = {
  vm: 'vm',
  vms: 'vm',
  virtualmachine: 'vm',
  virtualmachines: 'vm',
  vmi: 'vm',
  vmis: 'vm',
  virtualmachineinstance: 'vm',
  virtualmachineinstances: 'vm',
  pod: 'pod',
  pods: 'pod',
  po: 'pod',
};

/** Other kinds that users of kubectl type before a slash: not meant as namespaces. */
const OTHER_KINDS = /^(deploy(ment)?|statefulset|sts|daemonset|ds|replicaset|rs|job|cronjob|cj|service|svc)s?$/;
const NODES: readonly string[] = ['node', 'nodes', 'no'];

const nodeError = (name: string) =>
  usageError(`only a VM or a pod can be explained; for a node: plumbline top ${name}`);

export const KIND_WORDS: readonly string[] = ['vm', 'vmi', 'pod'];

const FORMS = 'vm NAME, pod NAME, vm/NAME, pod/NAME or NAMESPACE/NAME';

/** `vm NAME`, `vm/NAME`, `vm NS/NAME`, `NS/NAME`, `NAME`. @param flag the value of -n @throws CliError */
export function parseReference(first: string, second: string | undefined, flag: string | undefined): Reference {
  if (second !== undefined && first.includes('/')) {
    throw new ArgumentError(`one VM or pod at a time: expected ${FORMS}`);
  }
  const { kind, rest } = splitKind(first, second);
  if (rest.length > 2 * MAX_NAME_CHARACTERS) {
    throw new ArgumentError(`a name has at most ${MAX_NAME_CHARACTERS} characters, not ${rest.length}`);
  }
  const [namespace, name, ...more] = rest.includes('/') ? rest.split('/') : [undefined, rest];
  if (!name || namespace === '' || more.length > 0) {
    throw new ArgumentError(`'${[first, second].filter(Boolean).join(' ')}' is not a name: expected ${FORMS}`);
  }
  if (namespace !== undefined && flag !== undefined && namespace !== flag) {
    throw new ArgumentError(`conflicting namespaces: ${namespace} in ${rest}, and -n ${flag}`);
  }
  return { kind, namespace: namespace ?? flag, name };
}

function splitKind(first: string, second: string | undefined): { kind: Reference['kind']; rest: string } {
  if (second !== undefined) {
    const firstKind = kindOf(first);
    if (firstKind !== undefined) return { kind: firstKind, rest: second };
    if (NODES.includes(first.toLowerCase())) throw nodeError(second);
    throw new ArgumentError(`unknown kind '${first}': use ${KIND_WORDS.join(', ')}`);
  }
  if (kindOf(first) !== undefined) throw new ArgumentError(`missing required argument 'name': expected ${FORMS}`);
  const slash = first.indexOf('/');
  const before = first.slice(0, Math.max(0, slash)).toLowerCase();
  if (NODES.includes(before)) throw nodeError(first.slice(slash + 1));
  if (OTHER_KINDS.test(before)) {
    throw new ArgumentError(
      `${first}: cannot explain a ${before}, only a VM or a pod; give a namespace of that name with -n`,
    );
  }
  const kind = kindOf(before);
  return kind === undefined ? { kind, rest: first } : { kind, rest: first.slice(slash + 1) };
}

function kindOf(word: string): Reference['kind'] {
  const bare = word.toLowerCase().replace(/\.kubevirt\.io$/, '');
  return Object.hasOwn(KINDS, bare) ? KINDS[bare] : undefined;
}
