import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { preparedHost } from '../../model/placement/needs.ts';
import { createHttpServer } from '../../runtime/http-server.ts';
import { createLogger } from '../../runtime/log.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import { createExtenderApp } from '../../scheduler-plugin/app.ts';
import type { Cluster } from '../../scheduler-plugin/cluster.ts';
import { createExtender } from '../../scheduler-plugin/extender.ts';
import { createExtenderMetrics } from '../../scheduler-plugin/metrics.ts';

/** The extender on plain HTTP over a cluster of PLUMBLINE_BENCH_NODES nodes in different states. Prints its port. */
const count = Number(process.env['PLUMBLINE_BENCH_NODES']);

function status(index: number): NodeTopologyStatus {
  const owned = index % 4;
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
    assignments: Array.from({ length: owned }, (_, pod) => ({
      podUID: `uid-${index}-${pod}`,
      container: 'compute',
      cpus: `${pod * 8 + 1}-${pod * 8 + 8},${pod * 8 + 65}-${pod * 8 + 72}`,
    })),
    physnets: [{ name: 'physnet0', cells: '0' }],
  };
}

const hosts = new Map(
  Array.from({ length: count }, (_, index) => [`worker-${index}.east.example.internal`, preparedHost(status(index))]),
);
const cluster: Cluster = {
  run: async () => undefined,
  missing: undefined,
  host: (name) => hosts.get(name),
  boundPods: () => [],
  isDpuHost: () => false,
  dpuLeases: new Map(),
};
const metrics = createExtenderMetrics(createRegistry());
const extender = createExtender({
  cluster,
  dpuHealth: {
    changed: () => undefined,
    verdict: () => ({ ready: true, state: 'alive', age: 1 }),
    stop: () => undefined,
  },
  recheck: { refused: () => undefined, settled: () => undefined, improved: () => undefined, stop: () => undefined },
  unpredictable: 'refuse',
  metrics,
});
const log = createLogger('bench', 'warn');
const server = createHttpServer({
  handler: createExtenderApp({ extender, metrics, log }),
  host: '127.0.0.1',
  port: 0,
  log,
});
await server.start();
process.stdout.write(`${JSON.stringify({ port: server.port })}\n`);
