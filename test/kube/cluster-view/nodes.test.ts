import assert from 'node:assert/strict';
import { factsOfNode, writtenConditions } from '../../../kube/cluster-view/nodes.ts';

describe('the machine of a Node', () => {
  const of = (cpu?: string, labels?: Record<string, string>) =>
    factsOfNode({
      metadata: labels === undefined ? {} : { labels },
      ...(cpu !== undefined && { status: { capacity: { cpu } } }),
    });

  it('has its CPUs and its architecture', () => {
    const capacity = new Map();
    assert.deepEqual(of('16', { 'kubernetes.io/arch': 'arm64' }), { cpus: 16, capacity, arch: 'arm64' });
    assert.deepEqual(of('8000m'), { cpus: 8, capacity, arch: undefined });
  });

  it('has the architecture of its kubelet if it has no label', () => {
    const status = { nodeInfo: { architecture: 'amd64' } };
    assert.equal(factsOfNode({ metadata: {}, status }).arch, 'amd64');
    assert.equal(factsOfNode({ metadata: { labels: { 'kubernetes.io/arch': 'arm64' } }, status }).arch, 'arm64');
  });

  it('has its devices in any notation, and nothing else of its capacity', () => {
    const amounts = { cpu: '8', memory: '64Gi', pods: '110', 'hugepages-1Gi': '0' };
    const devices = { 'a.example/vf': '8', 'a.example/fuse': '2k', 'a.example/odd': 'many', 'a.example/none': '0' };
    assert.deepEqual(
      factsOfNode({ metadata: {}, status: { capacity: { ...amounts, ...devices } } }).capacity,
      new Map(Object.entries({ 'a.example/vf': 8, 'a.example/fuse': 2000, 'a.example/odd': 0, 'a.example/none': 0 })),
    );
    assert.equal(factsOfNode({ metadata: {} }).capacity, undefined, 'unknown');
  });

  it('has no number of CPUs if the capacity is missing, fractional or unreadable', () => {
    for (const cpu of [undefined, '1500m', 'many', '']) assert.equal(of(cpu).cpus, undefined, String(cpu));
  });
});

it('the conditions that the extender writes are read by their types', () => {
  const conditions = [
    { type: 'Ready', status: 'True' },
    { type: 'plumbline.dev/DPUReady', status: 'False' },
    { type: 'plumbline.dev/AgentReady', status: 'Unknown' },
  ];
  const node = { metadata: {}, status: { conditions } };
  assert.deepEqual(writtenConditions(node), { agentReady: 'Unknown', dpuReady: 'False' });
  assert.deepEqual(writtenConditions({ metadata: {} }), { agentReady: undefined, dpuReady: undefined });
});
