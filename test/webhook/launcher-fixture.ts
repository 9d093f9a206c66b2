import assert from 'node:assert/strict';
import jsonPatch from 'fast-json-patch';
import { type VirtualMachineInstance, virtualMachineInstance } from '../../kube/virtual-machines.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import type { NodeKind } from '../../model/launcher/smt-affinity.ts';
import { DECISION_ANNOTATION } from '../../model/names.ts';
import { EMPTY_CONTEXT } from '../../model/networks/context.ts';
import { type NadFacts, nadFacts } from '../../model/networks/nad.ts';
import type { ClusterView } from '../../webhook/cluster/cluster-view.ts';
import { createPodMutation, createPodValidation } from '../../webhook/pods/mutate-pod.ts';
import {
  type AdmissionAnswer,
  type AdmissionRequest,
  decodeReview,
  encodeReview,
  outcomeOf,
  type Review,
  ReviewError,
} from '../../webhook/review/admission-review.ts';
import { silent } from '../support/logger.ts';
import { vector } from '../support/vectors.ts';

type MutatePodOptions = Parameters<typeof createPodMutation>[0];

export { localnet } from '../model/admission/fixture.ts';

export interface TestPod {
  metadata: {
    labels: Record<string, string>;
    annotations: Record<string, string>;
    ownerReferences: { name: string; uid: string }[];
    [key: string]: unknown;
  };
  spec: {
    hostname?: string;
    containers: { name: string; resources: { requests: Record<string, string>; limits: Record<string, string> } }[];
    initContainers?: unknown[];
    [key: string]: unknown;
  };
}

type LauncherVector = 'virt-launcher-pod' | 'virt-launcher-pod.migration-target' | 'hp-volume-pod';

export function podVector(name: LauncherVector = 'virt-launcher-pod'): TestPod {
  return vector<TestPod>(`${name}.admission.json`);
}

export function vmiVector(change: (vmi: VirtualMachineInstance) => void = () => undefined): VirtualMachineInstance {
  const vmi = virtualMachineInstance.parse(vector('vmi.json'));
  change(vmi);
  return vmi;
}

export function requestFor(object: unknown, more: Partial<AdmissionRequest> = {}): AdmissionRequest {
  return {
    uid: 'b2f6d1f0-0000-4000-8000-000000000001',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    operation: 'CREATE',
    namespace: 'telco-east',
    object,
    ...more,
  };
}

/** Of a kind of node that gives whole cores only, by default. */
interface KindOptions {
  readonly fullPcpusOnly?: boolean;
  readonly physnets?: Readonly<Record<string, string>>;
  readonly tunnel?: string;
  /** CPUs that pods can have by NUMA node. */
  readonly rooms?: Readonly<Record<number, number>>;
}
export function kindOf(threadsPerCore: number, options: KindOptions = {}): NodeKind {
  const { fullPcpusOnly = true, physnets = {}, tunnel, rooms = { 0: 64, 1: 64 } } = options;
  const located = Object.entries(physnets).map(([name, cells]) => [name, CpuSet.parse(cells)] as const);
  return {
    threadsPerCore,
    fullPcpusOnly,
    rooms: new Map(Object.entries(rooms).map(([cell, room]) => [Number(cell), room])),
    alignment: 'best-effort',
    networks: { physnets: new Map(located), tunnel: tunnel === undefined ? undefined : CpuSet.parse(tunnel) },
  };
}

/** A cluster with nodes of these kinds, all of which every pod may use. */
export function viewOf(kinds: readonly NodeKind[] = [kindOf(2)], facts: Partial<ClusterView> = {}): ClusterView {
  return {
    run: async () => [],
    problem: undefined,
    findVmi: () => undefined,
    findNad: () => undefined,
    primaryNetwork: () => ({ kind: 'none' }),
    networkContext: () => EMPTY_CONTEXT,
    candidates: () => kinds,
    allReport: () => true,
    nodeKinds: () => kinds,
    reportedNetworks: () => ({
      physnets: new Set(kinds.flatMap(({ networks }) => [...networks.physnets.keys()])),
      tunnel: kinds.some(({ networks }) => networks.tunnel !== undefined),
    }),
    maskHosts: () => [],
    ...facts,
  };
}

/** A layer 2 network of OVN-Kubernetes: it uses the node's tunnel. */
export function overlay(name: string): NadFacts {
  const config = { type: 'ovn-k8s-cni-overlay', topology: 'layer2', name, netAttachDefName: `ns/${name}` };
  return nadFacts({ metadata: {}, spec: { config: JSON.stringify(config) } });
}

export function optionsOf(options: Partial<MutatePodOptions> = {}): MutatePodOptions {
  return {
    lookUpVmi: async () => ({ kind: 'found', vmi: vmiVector() }),
    fetchNad: async () => undefined,
    view: viewOf(),
    log: silent,
    // Tests of decisions about a pod compare whole patches.
    route: { schedulerName: '', away: undefined },
    gate: true,
    policy: 'annotated',
    oversized: 'refuse',
    globalNetworkNamespaces: new Set(['default']),
    ...options,
  };
}

export const mutationOf = (options: Partial<MutatePodOptions> = {}) => createPodMutation(optionsOf(options));
export const validationOf = (options: Partial<MutatePodOptions> = {}) => createPodValidation(optionsOf(options));

/** The pod as the API server would store it after that answer. */
export function patched(pod: TestPod, answer: AdmissionAnswer): TestPod {
  const operations = answer.allowed ? (answer.patch ?? []) : assert.fail(answer.message);
  return jsonPatch.applyPatch(structuredClone(pod), structuredClone(operations) as jsonPatch.Operation[], true)
    .newDocument;
}

/** The pod without the notes of its decision. */
export function withoutNotes(pod: TestPod): TestPod {
  const { [DECISION_ANNOTATION]: text, ...annotations } = pod.metadata.annotations;
  const { notes: _notes, ...decision } = JSON.parse(text ?? '{}') as { notes?: unknown };
  const decided = text === undefined ? {} : { [DECISION_ANNOTATION]: JSON.stringify(decision) };
  return { ...pod, metadata: { ...pod.metadata, annotations: { ...annotations, ...decided } } };
}

export const patchOf = (answer: AdmissionAnswer) =>
  answer.allowed ? (answer.patch ?? []) : assert.fail(answer.message);

export function denialOf(answer: AdmissionAnswer): { code: number; message: string } {
  return answer.allowed ? assert.fail('it was admitted') : answer;
}

export function setCpu(pod: TestPod, cpu: string): void {
  const resources = pod.spec.containers[0]!.resources;
  resources.requests['cpu'] = cpu;
  resources.limits['cpu'] = cpu;
}

export function computeCpus(pod: TestPod): { request: string | undefined; limit: string | undefined } {
  const compute = pod.spec.containers.find((container) => container.name === 'compute');
  return { request: compute?.resources.requests['cpu'], limit: compute?.resources.limits['cpu'] };
}

/** Answers one body as the webhook does, without HTTP. @throws ReviewError */
export async function answerReview(
  body: Uint8Array,
  review: Review,
): Promise<{ body: string; outcome: ReturnType<typeof outcomeOf> }> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (cause) {
    throw new ReviewError(400, 'not JSON', { cause });
  }
  const request = decodeReview(parsed);
  const answer = await review(request);
  return { body: JSON.stringify(encodeReview(request.uid, answer)), outcome: outcomeOf(answer) };
}
