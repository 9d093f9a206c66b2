import assert from 'node:assert/strict';
import type { PodResources } from '../../../kube/kubelet-api/gen/pod-resources.ts';
import { readMemoryState } from '../../../node-agent/assignments/memory-checkpoint.ts';
import { podResourcesOf } from '../../support/pod-resources.ts';

const GI = 2 ** 30;
type Block = readonly [type: string, gibibytes: number, ...nodes: number[]];

/** A node of the state: 16 GiB of memory and 8 of 1 GiB pages. */
const node = (id: number, blocks = 0, used: Readonly<Record<string, number>> = {}, cells = [id]) => {
  const table = (type: string, size: number) => {
    const reserved = (used[type] ?? 0) * GI;
    return { total: size * GI, systemReserved: 0, allocatable: size * GI, reserved, free: size * GI - reserved };
  };
  const memoryMap = { memory: table('memory', 16), 'hugepages-1Gi': table('hugepages-1Gi', 8) };
  return [id, { numberOfAssignments: blocks, memoryMap, cells }] as const;
};
const blocks = (list: readonly Block[]) =>
  list.map(([type, size, ...numaAffinity]) => ({ numaAffinity, type, size: size * GI }));
const mapped = <From, To>(items: Readonly<Record<string, From>>, map: (item: From) => To) =>
  Object.fromEntries(Object.entries(items).map(([key, item]) => [key, map(item)]));
const file = (
  nodes: readonly ReturnType<typeof node>[],
  entries: Record<string, Record<string, readonly Block[]>> = {},
  changes: object = {},
) =>
  JSON.stringify({
    policyName: 'Static',
    machineState: Object.fromEntries(nodes),
    entries: mapped(entries, (containers) => mapped(containers, blocks)),
    checksum: 1,
    ...changes,
  });
const pod = (containers: Record<string, readonly Block[]>): PodResources => {
  const memoryOf = ([memoryType, size, ...nodes]: Block) => {
    return { memoryType, size: size * GI, topology: { nodes: nodes.map((ID) => ({ ID })) } };
  };
  const list = Object.entries(containers).map(([name, ofContainer]) => ({ name, memory: ofContainer.map(memoryOf) }));
  return podResourcesOf({ containers: list });
};
/** `blocks group memory pages` of each NUMA node. */
const brief = (text: string, pods: readonly PodResources[], podsWithCpus: readonly string[] = []) => {
  const { cells, problem } = readMemoryState(text, pods, new Set(podsWithCpus));
  const texts = [...cells].map(([id, { blocks: count, group, free }]) => {
    return `${id}: ${count} ${group} ${free['memory']! / GI} ${free['hugepages-1Gi']! / GI}`;
  });
  return problem ?? texts;
};

describe('the state of the memory manager', () => {
  const VM: readonly Block[] = [
    ['memory', 2, 0],
    ['hugepages-1Gi', 4, 0],
  ];
  const used = [node(0, 2, { memory: 2, 'hugepages-1Gi': 4 }), node(1)];
  const wide = [node(0, 1, { memory: 16 }, [0, 1]), node(1, 1, { memory: 4 }, [0, 1])];
  const two = [node(0, 4, { memory: 4, 'hugepages-1Gi': 8 })];
  const WIDE = { compute: [['memory', 20, 0, 1]] } as const;
  const split = [node(0, 1, { memory: 16 }, [0, 1]), node(1, 2, { memory: 5 })];
  const EQUAL = file(two, { u: { compute: VM }, v: { compute: VM } });
  const GONE = { compute: [['hugepages-2Mi', 1, 0]] } as const;
  const EMPTY = ['0: 0 0 16 8', '1: 0 1 16 8'];
  const states: [string, string, PodResources[], string[]][] = [
    ['of a node without pods', file([node(0), node(1)]), [pod({ other: [] })], EMPTY],
    ['with a VM', file(used, { u: { compute: VM } }), [pod({ compute: VM })], ['0: 2 0 14 4', '1: 0 1 16 8']],
    ['with a VM on two NUMA nodes', file(wide, { u: WIDE }), [pod(WIDE)], ['0: 1 0-1 0 8', '1: 1 0-1 12 8']],
    [
      'with a block on two NUMA nodes, of which another pod has made one a group of its own',
      file(split, { u: WIDE, v: { compute: [['memory', 1, 1]] } }),
      [pod({ compute: [['memory', 20, 1, 0]] }), pod({ compute: [['memory', 1, 1]] })],
      ['0: 1 0-1 0 8', '1: 2 1 11 8'],
    ],
    ['after a VM ended, as at the next admission', file(used, { u: { compute: VM } }), [], EMPTY],
    ['after a VM ended whose page size the node has no longer', file([node(0, 1)], { u: GONE }), [], EMPTY.slice(0, 1)],
    ['with one of two equal VMs', EQUAL, [pod({ compute: VM })], ['0: 2 0 14 4']],
    [
      'with an init container that ended and keeps what the others do not use',
      file([node(0, 2, { memory: 3 })], { u: { init: [['memory', 1, 0]], compute: [['memory', 2, 0]] } }),
      [pod({ compute: [['memory', 2, 0]] })],
      ['0: 2 0 13 8'],
    ],
    ['under policy None', file([], {}, { policyName: 'None' }), [pod({ compute: VM })], []],
  ];
  for (const [what, text, pods, expected] of states)
    it(`is read ${what}`, () => assert.deepEqual(brief(text, pods), expected));

  const similar = file([node(0, 5, { memory: 5, 'hugepages-1Gi': 8 })], {
    u: { compute: VM },
    v: { compute: VM, init: [['memory', 1, 0]] },
  });
  it('is read with two VMs that only their CPUs distinguish', () => {
    assert.deepEqual(brief(similar, [pod({ compute: VM })], ['u']), ['0: 2 0 14 4']);
    assert.deepEqual(brief(similar, [pod({ compute: VM })], ['v']), ['0: 3 0 13 4']);
  });

  const whole = file(used, { u: { compute: VM } });
  const WHOLE_PODS = /podEntries: memory of pods as a whole \(pod-level managers\) is not predicted$/;
  const OTHER = /the kubelet lists other memory: compute memory:/;
  const problems: [string, string, PodResources[], RegExp][] = [
    ['torn', whole.slice(0, -20), [], /torn: its \d+ characters are not complete JSON/],
    ['of another version', JSON.stringify({ policyName: 'Static', state: '{}' }), [], /unknown format at machineState/],
    ['with memory of whole pods', file([node(0)], {}, { podEntries: { u: {} } }), [], WHOLE_PODS],
    ['with a number as text', whole.replace(/"free":\d+/, '"free":"1"'), [], /at machineState.0.memoryMap.memory.free/],
    ['of containers with other memory than the kubelet lists', whole, [pod({ compute: [['memory', 3, 0]] })], OTHER],
    ['with pods that cannot be distinguished', similar, [pod({ compute: VM })], /pods that cannot be distinguished/],
  ];
  for (const [what, text, pods, problem] of problems) {
    it(`is not known from a file ${what}`, () => {
      const { cells, problem: message = '' } = readMemoryState(text, pods, new Set());
      assert.match(message, problem);
      assert.ok(message.length < 600);
      assert.equal(cells.size, 0);
    });
  }
});
