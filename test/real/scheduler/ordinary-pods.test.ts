import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { until } from '../../support/until.ts';
import { onControlPlane } from '../control-plane.ts';
import { listenOnLoopback } from '../processes.ts';
import { configurationAt, inParallel, type Stage, startStage } from './stage.ts';

const [VMS, PODS] = [20, 100];

/** Possible failures of the extender in the leader's pod. */
const OUTAGES = {
  hung: () => createServer(() => undefined),
  'answering garbage': () => createServer((_request, response) => response.end('<html>')),
  'answering with an Error': () =>
    createServer((_request, response) => response.end(JSON.stringify({ Error: 'out of order' }))),
  dead: undefined,
} as const;

/**
 * Two schedulers as installed: the cluster's own, without the extender, and Plumbline's. Whatever the state of the
 * extender, only pods with Plumbline's scheduler wait.
 */
describe('ordinary pods while the extender fails', function () {
  onControlPlane(this);
  let stage: Stage;
  let count = 0;

  before(async () => {
    stage = await startStage();
    await stage.addNodes(Array.from({ length: 20 }, (_, i) => ({ name: `node-${i}` })));
    await stage.startScheduler({ extenders: [] });
  });
  after(() => stage?.stop());

  for (const [what, make] of Object.entries(OUTAGES)) {
    it(`${what}: every ordinary pod is bound, the VMs wait`, async () => {
      const server = make?.();
      const port = server === undefined ? 9 : await listenOnLoopback(server);
      const { extenders } = await configurationAt('sidecar', port);
      const scheduler = await stage.startScheduler({ name: 'plumbline-scheduler', extenders });
      const named = (kind: string, many: number) => Array.from({ length: many }, (_, i) => `${kind}-${count}-${i}`);
      const [vms, pods] = [named('vm', VMS), named('web', PODS)];
      count++;
      try {
        const more = { schedulerName: 'plumbline-scheduler' };
        await inParallel(vms, async (name) => stage.addPod({ name, cpu: '4', more }));
        if (make === undefined || what !== 'hung') {
          await until(
            'a VM to be tried',
            async () => ((await stage.podOf(vms[0]!)).status.conditions ?? []).length > 0,
          );
        }
        await inParallel(pods, async (name) => stage.addPod({ name, cpu: '100m', devices: [] }));
        const bound = async (names: readonly string[]) => {
          const nodes = new Map((await stage.pods()).map(({ metadata, spec }) => [metadata.name, spec.nodeName]));
          return names.filter((name) => nodes.get(name) !== undefined).length;
        };
        await until('every ordinary pod to be bound', async () => (await bound(pods)) === PODS);
        assert.equal(await bound(vms), 0);
      } finally {
        await scheduler.stop();
        server?.closeAllConnections();
        server?.close();
        await inParallel([...vms, ...pods], async (name) => {
          await stage.client.delete(`/api/v1/namespaces/default/pods/${name}`);
        });
      }
    });
  }
});
