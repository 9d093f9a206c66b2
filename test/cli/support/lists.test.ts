import assert from 'node:assert/strict';
import { readElection, SCHEDULER_LEASE } from '../../../cli/extender/ask.ts';
import { readAgentLeases } from '../../../cli/support/lists.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { leaseObject } from '../cluster-fixture.ts';
import { createObjectsApi } from '../objects-api-stand-in.ts';

const NOW = Date.parse('2026-11-01T10:00:00Z');
const RENEWED = Date.parse('2026-11-01T10:04:57Z');
/** The clock of this machine is five minutes late; the leases were renewed 3 s ago. */
const client: KubeClient = {
  ...createObjectsApi({
    '/apis/coordination.k8s.io/v1/leases': [
      leaseObject('plumbline-agent-n1', RENEWED, 'n1'),
      leaseObject('plumbline-scheduler', RENEWED, 'plumbline-scheduler-1_x'),
    ],
  }),
  clockOffset: () => 300_000,
};

describe('cli: the ages of Leases', () => {
  it('are by the clock of the API server', async () => {
    const agents = await readAgentLeases(client, NOW);
    assert.deepEqual([...(agents?.ages ?? [])], [['n1', 3]]);
    assert.deepEqual([...(agents?.silent ?? [])], []);
    assert.equal((await readElection(client, SCHEDULER_LEASE, NOW))?.age, 3);
  });

  it('of agents that stopped are long, also if this machine is late', async () => {
    const agents = await readAgentLeases({ ...client, clockOffset: () => 340_000 }, NOW);
    assert.deepEqual([...(agents?.silent ?? [])], ['n1']);
  });
});
