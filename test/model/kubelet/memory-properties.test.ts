import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Host } from '../../../model/host.ts';
import type { Admission } from '../../../model/kubelet/admission.ts';
import type { KubeletState } from '../../../model/kubelet/state.ts';
import { cellsOf, containersOf, kubeletOf, nicsOf, requestOf, type Scenario, scenarios } from './memory-scenarios.ts';
import { NaiveKubelet, type NaivePod, type NaiveVerdict } from './naive-kubelet.ts';
import { freeOf, naiveNode } from './naive-memory.ts';
import type { PlainHost } from './set-based.ts';

function naiveKubeletOf(scenario: Scenario, host: Host): NaiveKubelet {
  const cells = cellsOf(scenario);
  const plain: PlainHost = {
    cpus: new Map(host.cpus.map((cpu) => [cpu.id, cpu])),
    reserved: new Set([0]),
    bareNodes: cells?.slice(scenario.shape.cells).map(({ id }) => id) ?? [],
    policy: scenario.policy,
    fullPcpusOnly: scenario.fullPcpusOnly,
    preferUncore: false,
    wideDeviceHints: false,
  };
  const nodes = cells?.map(({ id, memory, hugePages = {}, reserved = {} }) =>
    naiveNode(id, memory, hugePages, reserved),
  );
  return new NaiveKubelet(plain, scenario.scope, nodes);
}

/** Compares the full text of the memory manager's refusals, but only the reason of the CPU manager's. */
function answerOf(admission: Admission): string {
  if (admission.admitted) return said(admission.containers.map(({ cpus, hint }) => ({ cpus: [...cpus], nodes: hint })));
  const memory = /\[memorymanager\] .*(?=, which is unexpected$)/.exec(admission.message)?.[0];
  return memory === undefined ? admission.reason : `${admission.reason}: ${memory}`;
}

function said(verdict: NaiveVerdict): string {
  if (typeof verdict === 'string') return verdict;
  return verdict.map(({ cpus, nodes }) => `${cpus} on ${nodes ?? 'any'}`).join('; ');
}

/** The memory part of a kubelet's state, in a form that both have. */
function booksOf(memory: KubeletState['memory'], kinds: readonly string[]) {
  const nodesOf = (mask: number) => [0, 1, 2, 3, 4].filter((bit) => (mask & (1 << bit)) !== 0);
  return {
    nodes: memory?.cells.map((cell) => ({
      blocks: cell.blocks,
      group: nodesOf(cell.group),
      free: kinds.map((kind) => cell.tables.get(kind)?.free ?? 0),
    })),
    held: [...(memory?.blocks ?? [])].map(([uid, pod]) => [
      uid,
      [...pod].map(([name, blocks]) => [
        name,
        blocks.map(({ mask, type, size }) => `${type} ${size} on ${nodesOf(mask)}`),
      ]),
    ]),
  };
}

function naiveBooksOf({ nodes, blocks }: NaiveKubelet, kinds: readonly string[]): ReturnType<typeof booksOf> {
  const held = [...blocks].filter(([, pod]) => pod.size > 0);
  return {
    nodes: nodes?.map((node) => ({
      blocks: node.blocks,
      group: [...node.group],
      free: kinds.map((kind) => freeOf(node, kind)),
    })),
    held: held.map(([uid, pod]) => [
      uid,
      [...pod].map(([name, own]) => [name, own.map(({ nodes, kind, size }) => `${kind} ${size} on ${nodes}`)]),
    ]),
  };
}

const KINDS = ['memory', 'hugepages-2Mi', 'hugepages-1Gi'];

const MEMORY_REFUSED = 'UnexpectedAdmissionError: [memorymanager] ';

/**
 * The minimum count of each outcome in the random sequences, a third of the usual count. Below that, they show too
 * little.
 */
const FAIR_SHARE = {
  admitted: 4000,
  readmit: 500,
  remove: 1000,
  'nodes in a group': 1000,
  TopologyAffinityError: 1000,
  SMTAlignmentError: 400,
  [`${MEMORY_REFUSED}failed to get the default NUMA affinity, no NUMA nodes with enough memory is available`]: 1500,
  [`${MEMORY_REFUSED}failed to find NUMA nodes to extend the current topology hint`]: 2000,
  [`${MEMORY_REFUSED}failed to find the extended preferred hint`]: 80,
  [`${MEMORY_REFUSED}failed to find the default preferred hint`]: 1,
  [`${MEMORY_REFUSED}preferred hint violates NUMA node allocation`]: 100,
};

describe('model/kubelet: properties of the memory manager', () => {
  it('10,000 random sequences under Static and None match the naive kubelet in verdicts, CPUs, hints and every byte', function () {
    this.timeout(600_000);
    const seen = new Map<string, number>();
    const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
    fc.assert(
      fc.property(scenarios, (scenario) => {
        const { kubelet, host } = kubeletOf(scenario);
        const naive = naiveKubeletOf(scenario, host);
        let state = kubelet.initialState(nicsOf(scenario));
        const start = state;
        const present: { readonly pod: NaivePod; readonly guaranteed: boolean }[] = [];
        const admit = (entry: (typeof present)[number]) => {
          const admission = kubelet.admit(state, requestOf(entry.pod, entry.guaranteed));
          const answer = answerOf(admission);
          assert.equal(answer, said(naive.admit(entry.pod)));
          state = admission.state;
          count(admission.admitted ? 'admitted' : answer);
          if (admission.admitted) present.push(entry);
        };
        scenario.steps.forEach((step, index) => {
          if (step.does === 'add') {
            const pod = { uid: `pod${index}`, containers: containersOf(step, scenario) };
            admit({ pod, guaranteed: step.pod !== 'burstable' });
          } else {
            const [entry] = present.splice(step.pod % Math.max(1, present.length), 1);
            if (!entry) return;
            count(step.does);
            if (step.does === 'readmit') admit(entry);
            else {
              state = kubelet.remove(state, entry.pod.uid);
              naive.remove(entry.pod.uid);
            }
          }
          assert.deepEqual(booksOf(state.memory, KINDS), naiveBooksOf(naive, KINDS));
          assert.deepEqual(
            scenario.cpuPolicy === 'none' ? [...host.online] : [...state.defaultSet],
            [...naive.pool].sort((a, b) => a - b),
          );
          if (state.memory?.cells.some(({ group }) => (group & (group - 1)) !== 0)) count('nodes in a group');
        });
        for (const { pod } of present) state = kubelet.remove(state, pod.uid);
        const { blocks, cells } = state.memory ?? { blocks: new Map(), cells: [] };
        assert.equal(blocks.size, 0);
        for (const cell of cells) assert.equal(cell.blocks, 0);
        assert.equal(cells.length, start.memory?.cells.length ?? 0);
      }),
      { numRuns: 10_000 },
    );
    for (const [what, least] of Object.entries(FAIR_SHARE)) {
      assert.ok((seen.get(what) ?? 0) >= least, `${what}: seen ${seen.get(what) ?? 0} times, not ${least}`);
    }
  });
});
