import assert from 'node:assert/strict';
import { factsOfNode } from '../../kube/node-facts.ts';

describe('the machine of a Node', () => {
  const of = (cpu?: string, labels?: Record<string, string>) =>
    factsOfNode({
      metadata: labels === undefined ? {} : { labels },
      ...(cpu !== undefined && { status: { capacity: { cpu } } }),
    });

  it('has its CPUs and its architecture', () => {
    assert.deepEqual(of('16', { 'kubernetes.io/arch': 'arm64' }), { cpus: 16, arch: 'arm64' });
    assert.deepEqual(of('8000m'), { cpus: 8, arch: undefined });
  });

  it('has the architecture of its kubelet if it has no label', () => {
    const status = { nodeInfo: { architecture: 'amd64' } };
    assert.equal(factsOfNode({ metadata: {}, status }).arch, 'amd64');
    assert.equal(factsOfNode({ metadata: { labels: { 'kubernetes.io/arch': 'arm64' } }, status }).arch, 'arm64');
  });

  it('has no number of CPUs if the capacity is missing, fractional or unreadable', () => {
    for (const cpu of [undefined, '1500m', 'many', '']) assert.equal(of(cpu).cpus, undefined, String(cpu));
  });
});
