import { type BenchResult, summary } from '../model/timing.ts';
import { createClient, quantile } from '../support/http-load.ts';
import { runScript } from '../support/process.ts';

const NAMES = 5000;
const ROUNDS = 7;
const CALLS = 20;
/** Every one of the nodes is predicted in full, against parsing and sending back the same bytes. */
const BOUND = 150;

/** A filter call over 5,000 node names, end to end, against an echo of plain node:http in a process of its own. */
export async function filterOverEcho(): Promise<BenchResult> {
  const extender = runScript('bench/scheduler-plugin/serve.ts', { PLUMBLINE_BENCH_NODES: String(NAMES) });
  const echo = runScript('bench/support/echo-server.ts');
  const hasPort = (line: Record<string, unknown>) => typeof line['port'] === 'number';
  try {
    const [mine, theirs] = await Promise.all([extender.line(hasPort), echo.line(hasPort)]);
    const filter = createClient({ port: Number(mine['port']), path: '/filter' });
    const base = createClient({ port: Number(theirs['port']), path: '/' });
    const load = { calls: CALLS, concurrency: 1, body: filterBody() };
    await filter.load(load);
    await base.load(load);
    const ratios: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const [measured, reference] = [await filter.load(load), await base.load(load)];
      ratios.push(quantile(measured, 0.5) / quantile(reference, 0.5));
    }
    filter.close();
    base.close();
    return summary('scheduler-plugin.filter-5000-names-over-echo', ratios, { most: BOUND });
  } finally {
    await Promise.all([extender.stop(), echo.stop()]);
  }
}

function filterBody(): Buffer {
  const amounts = { cpu: '10', memory: '8Gi', 'devices.kubevirt.io/kvm': '1' };
  const container = { name: 'compute', resources: { requests: amounts, limits: amounts } };
  return Buffer.from(
    JSON.stringify({
      Pod: { metadata: { name: 'vm', namespace: 'east', uid: 'a-uid' }, spec: { containers: [container] } },
      Nodes: null,
      NodeNames: Array.from({ length: NAMES }, (_, index) => `worker-${index}.east.example.internal`),
    }),
  );
}

/** Every measurement of scheduler-plugin/, in the order in which it is printed. */
export const SCHEDULER_PLUGIN_BENCHES: readonly (() => Promise<BenchResult>)[] = [filterOverEcho];
