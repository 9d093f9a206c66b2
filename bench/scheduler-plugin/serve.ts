import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { tuneGarbageCollection } from '../../runtime/daemon.ts';
import { HttpServer } from '../../runtime/http-server.ts';
import { createLogger } from '../../runtime/log.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import { ClusterState } from '../../scheduler-plugin/cluster/cluster-state.ts';
import { createExplainer } from '../../scheduler-plugin/extender/explain.ts';
import { Decisions } from '../../scheduler-plugin/filter/decisions.ts';
import { createExtenderApp } from '../../scheduler-plugin/http/app.ts';
import { createExtenderMetrics } from '../../scheduler-plugin/telemetry/metrics.ts';
import { createBenchExtender } from './extender.ts';
import { nodeName, statusWithDevices } from './nodes.ts';

/**
 * The extender on plain HTTP for a cluster. Its two arguments are the number of nodes, in different states, and the
 * number of changed reports per second. Prints its port.
 */
const [count = 0, updates = 0] = process.argv.slice(2).map(Number);

tuneGarbageCollection();
const log = createLogger('bench', 'warn');
// As decoded by the reflector: every report has separate strings.
const decoded = (status: NodeTopologyStatus) => JSON.parse(JSON.stringify(status)) as NodeTopologyStatus;

const state = new ClusterState(log);
for (let index = 0; index < count; index++) {
  const name = JSON.parse(JSON.stringify(nodeName(index))) as string;
  state.nodeChanged(name, { dpuHost: false });
  state.reportChanged(name, decoded(statusWithDevices(index)));
}

const { extender } = createBenchExtender(state, log);
const decisions = new Decisions();
const explainer = createExplainer({ extender, decisions, client: { get: async () => ({}) }, isActive: () => true });
const metrics = createExtenderMetrics(createRegistry());
const { handler } = createExtenderApp({ extender, explainer, unpredictable: 'refuse', metrics, log });
const server = new HttpServer({ handler, host: '127.0.0.1', port: 0, certificate: undefined, log });

if (updates > 0) {
  let next = 0;
  let due = performance.now();
  setInterval(() => {
    const late = performance.now() - due;
    const many = Math.floor((late / 1000) * updates);
    due += (many / updates) * 1000;
    for (let i = 0; i < many; i++) {
      const index = next++ % count;
      state.reportChanged(nodeName(index), decoded(statusWithDevices(index, index + Math.floor(next / count))));
    }
  }, 5);
}
void server.start().then(() => process.stdout.write(`${JSON.stringify({ port: server.port })}\n`));
