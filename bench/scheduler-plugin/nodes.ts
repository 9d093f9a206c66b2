import type { NodeTopologyStatus } from '../../kube/node-topology.ts';

export function nodeName(index: number): string {
  return `worker-${index}.east.example.internal`;
}

/** Two sockets of 32 cores with two threads each, up to seven pods of 18 CPUs: of eight nodes one is full. */
export function nodeStatus(index: number): NodeTopologyStatus {
  return {
    kubeletVersion: 'v1.36.2',
    cells: [
      { id: 0, cpus: '0-31,64-95' },
      { id: 1, cpus: '32-63,96-127' },
    ],
    cores: Array.from({ length: 64 }, (_, core) => `${core},${core + 64}`),
    reserved: '0,64',
    cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
    topologyManager: { policy: 'best-effort' },
    assignments: Array.from({ length: index % 8 }, (_, pod) => ({
      podUID: `3f2b9c1e-${String(index).padStart(6, '0')}-4c1d-9a7e-${String(pod).padStart(12, '0')}`,
      container: 'compute',
      cpus: `${pod * 9 + 1}-${pod * 9 + 9},${pod * 9 + 65}-${pod * 9 + 73}`,
    })),
    physnets: [{ name: 'physnet0', cells: '0' }],
  };
}

/** A filter call with every name, in an order of its own as kube-scheduler's workers hand them in. */
export function filterBody(names: number, seed: number): Buffer {
  const amounts = { cpu: '10', memory: '8Gi', 'devices.kubevirt.io/kvm': '1' };
  const container = { name: 'compute', resources: { requests: amounts, limits: amounts } };
  return Buffer.from(
    JSON.stringify({
      Pod: { metadata: { name: 'vm', namespace: 'east', uid: `uid-${seed}` }, spec: { containers: [container] } },
      Nodes: null,
      NodeNames: shuffled(names, seed).map(nodeName),
    }),
  );
}

function shuffled(count: number, seed: number): number[] {
  const order = Array.from({ length: count }, (_, index) => index);
  let state = seed + 1;
  for (let i = count - 1; i > 0; i--) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const j = state % (i + 1);
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}
