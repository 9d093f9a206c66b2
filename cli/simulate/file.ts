import { parseAllDocuments } from 'yaml';
import * as z from 'zod';
import { type NetworkAttachmentDefinition, networkAttachmentDefinition, objectMeta } from '../../kube/resources.ts';
import {
  startingInstance,
  virtualMachine,
  virtualMachineInstanceReplicaSet,
  virtualMachinePool,
} from '../../kube/virtual-machines.ts';
import { PlumblineError } from '../../model/errors.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../../model/names.ts';
import { refText } from '../../model/networks/attachments.ts';
import { EMPTY_CONTEXT } from '../../model/networks/context.ts';
import { interfacesOf, parseAffinities } from '../../model/networks/interfaces.ts';
import { nadFacts } from '../../model/networks/nad.ts';
import { resolveNetworks } from '../../model/networks/resolve.ts';
import { readInput } from '../../runtime/input-file.ts';
import { usageError } from '../support/exit-status.ts';
import { type InstancetypeObject, isInstancetypeKind, type MatchedVm, matcher } from './instancetypes.ts';

export interface FileVm extends MatchedVm {
  readonly count: number;
}

export type VmFile = ReturnType<typeof readVmFile>;

/** Bytes of a file: thousands of VMs as kubectl prints them. Parsing YAML takes a second for each megabyte. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;

const replicas = z.object({ spec: z.object({ replicas: z.number().int().min(0).max(100_000).nullish() }) });
const anyObject = z.object({ apiVersion: z.string(), kind: z.string(), metadata: objectMeta });

const READERS: Readonly<Record<string, (object: unknown) => Pick<FileVm, 'vmi' | 'count'>>> = {
  VirtualMachine: (object) => fromTemplate(virtualMachine.parse(object).spec, 1),
  VirtualMachineInstance: (object) => ({ vmi: startingInstance.parse(object), count: 1 }),
  VirtualMachineInstanceReplicaSet: (object) =>
    fromTemplate(virtualMachineInstanceReplicaSet.parse(object).spec, countOf(object)),
  VirtualMachinePool: (object) =>
    fromTemplate(virtualMachinePool.parse(object).spec.virtualMachineTemplate.spec, countOf(object)),
};

const withSpec = z.object({ spec: z.unknown() });

/** `-`: standard input. Other objects are ignored. @throws CliError if unreadable or a VM is malformed */
export function readVmFile(path: string, namespace: string) {
  const vms: FileVm[] = [];
  const nads: NetworkAttachmentDefinition[] = [];
  const instancetypes: InstancetypeObject[] = [];
  for (const document of documentsOf(path)) {
    const head = anyObject.safeParse(document);
    if (!head.success)
      throw usageError(`${path}: a document is not a Kubernetes object (needs apiVersion, kind, metadata)`);
    const { kind, metadata } = head.data;
    const read = READERS[kind];
    try {
      if (kind === 'NetworkAttachmentDefinition') nads.push(networkAttachmentDefinition.parse(document));
      const named = { name: metadata.name ?? kind, namespace: metadata.namespace ?? namespace };
      if (isInstancetypeKind(kind)) instancetypes.push({ ...named, kind, spec: withSpec.parse(document).spec });
      if (read) vms.push({ ...named, ...matchersOf(document), ...read(document) });
    } catch (error) {
      if (!(error instanceof z.ZodError)) throw error;
      const [issue] = error.issues;
      throw usageError(`${path}: ${kind} ${metadata.name}: ${issue?.path.join('.')}: ${issue?.message}`);
    }
  }
  if (vms.length + instancetypes.length === 0)
    throw usageError(`${path}: the file has no VM (VirtualMachine, VirtualMachineInstance, …)`);
  return { vms, nads, instancetypes };
}

function documentsOf(path: string): unknown[] {
  let text: string;
  try {
    text = readInput(path, MAX_FILE_BYTES).toString();
  } catch (error) {
    throw usageError(`cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
  const documents = parseAllDocuments(text);
  if ('empty' in documents) return [];
  return documents.flatMap((document) => {
    const [problem] = document.errors;
    if (problem) throw usageError(`${path} is not valid YAML: ${problem.message.split('\n')[0]}`);
    const content: unknown = document.toJS();
    // kubectl get -o yaml writes a List.
    const items = (content as { kind?: string; items?: unknown[] } | null)?.kind?.endsWith('List')
      ? (content as { items?: unknown[] }).items
      : undefined;
    return items ?? (content === null ? [] : [content]);
  });
}
const matchers = z.object({ instancetype: matcher, preference: matcher });
const vmSpec = z.union([
  z.object({ spec: z.object({ virtualMachineTemplate: z.object({ spec: matchers }) }) }),
  z.object({ spec: matchers }),
]);

function matchersOf(document: unknown): Pick<FileVm, 'instancetype' | 'preference'> {
  const { spec } = vmSpec.parse(document);
  return 'virtualMachineTemplate' in spec ? spec.virtualMachineTemplate.spec : spec;
}

type Template = z.infer<typeof virtualMachine>['spec'];

function fromTemplate({ template }: Pick<Template, 'template'>, count: number): Pick<FileVm, 'vmi' | 'count'> {
  return { vmi: { metadata: template.metadata ?? {}, spec: template.spec }, count };
}

function countOf(object: unknown): number {
  return replicas.parse(object).spec.replicas ?? 1;
}

/** Physnets and `tunnel` that a VM requires, and unknown networks. @throws CliError for a malformed annotation */
export function requiredNetworks(
  { name, namespace, vmi }: FileVm,
  nads: readonly NetworkAttachmentDefinition[],
): { readonly networks: readonly string[]; readonly notes: readonly string[] } {
  const definitions = new Map(
    nads.map((nad) => [`${nad.metadata.namespace ?? namespace}/${nad.metadata.name}`, nadFacts(nad)]),
  );
  try {
    const { networks, findings } = resolveNetworks({
      interfaces: interfacesOf({ namespace, vmi }),
      preferences: parseAffinities(vmi.metadata.annotations?.[NUMA_AFFINITY_ANNOTATION] ?? ''),
      findNad: (ref) => definitions.get(refText(ref)),
      context: EMPTY_CONTEXT,
      exclusive: true,
    });
    const required = networks.flatMap((network) => {
      if (network.affinity !== 'required') return [];
      return network.kind === 'physnet' ? [network.physnet] : network.kind === 'tunnel' ? ['tunnel'] : [];
    });
    return { networks: [...new Set(required)], notes: findings.map(({ message }) => `${name}: ${message}`) };
  } catch (error) {
    if (error instanceof PlumblineError) throw usageError(`VM ${name}: ${error.message}`);
    throw error;
  }
}
