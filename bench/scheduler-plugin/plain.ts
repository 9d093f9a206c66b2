import { createServer } from 'node:http';
import express from 'express';
import { CpuSet } from '../../model/cpu-set.ts';
import { listenAndTell } from '../support/serving.ts';
import { nodeName, nodeStatus } from './nodes.ts';

/**
 * A straightforward filter: express.json, a Map of nodes by name, a Set of free CPUs for each, and a count of whole
 * free cores. It ignores NUMA nodes, the kubelet and pods in flight. Its argument is the number of nodes.
 */
const count = Number(process.argv[2]);

interface Args {
  Pod: { spec: { containers: { resources: { requests: { cpu: string } } }[] } };
  NodeNames: string[];
}

const nodes = new Map(
  Array.from({ length: count }, (_, index) => {
    const { cells, cores, assignments, reserved } = nodeStatus(index);
    const free = new Set(cells.flatMap(({ cpus }) => CpuSet.parse(cpus).toArray()));
    for (const list of [reserved, ...assignments.map(({ cpus }) => cpus)]) {
      for (const cpu of CpuSet.parse(list)) free.delete(cpu);
    }
    return [nodeName(index), { free, cores: cores.map((core) => core.split(',').map(Number)) }] as const;
  }),
);

const app = express();
app.use(express.json({ limit: '5mb' }));
app.post('/filter', (request, response) => {
  const { Pod, NodeNames } = request.body as Args;
  const wanted = Pod.spec.containers.reduce((sum, { resources }) => sum + Number(resources.requests.cpu), 0);
  const fits: string[] = [];
  const failed: Record<string, string> = {};
  for (const name of NodeNames) {
    const node = nodes.get(name);
    if (node === undefined) {
      failed[name] = 'node is not known';
      continue;
    }
    let whole = 0;
    for (const core of node.cores) {
      if (whole >= wanted) break;
      if (core.every((cpu) => node.free.has(cpu))) whole += core.length;
    }
    if (whole >= wanted) fits.push(name);
    else failed[name] = 'too few free whole cores';
  }
  response.json({ Nodes: null, NodeNames: fits, FailedNodes: failed, FailedAndUnresolvableNodes: {}, Error: '' });
});
listenAndTell(createServer(app));
