import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { until } from '../../support/until.ts';
import { startCluster } from './watch-fixture.ts';

const AGENTS = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';
const NODES = '/api/v1/nodes';

describe('reports of silent agents', () => {
  const leaseOf = (node: string) => ({
    metadata: { name: `plumbline-agent-${node}`, namespace: 'plumbline-system', resourceVersion: '2' },
    spec: { renewTime: '2026-11-01T10:00:00.000000Z', leaseDurationSeconds: 40 },
  });
  const nodeOf = (name: string) => ({ metadata: { name, resourceVersion: '2' } });

  it('stay stale when the Lease of the agent is deleted, until the Node is deleted, too', async () => {
    const { api, state, clock, cluster, end } = startCluster();
    const isStale = (node: string) => state.fleet.get(node)?.stale === true;
    const hasRenewed = (node: string) => state.fleet.get(node)?.agentRenewed === true;
    const heard = () => api.push(AGENTS, 'BOOKMARK', { metadata: { resourceVersion: '3' } });
    await until('the watches', () => api.watched(AGENTS) && api.watched(NODES));
    for (const name of ['n1', 'n2']) api.push(NODES, 'ADDED', nodeOf(name));
    api.push(AGENTS, 'ADDED', leaseOf('n1'));
    await until('the nodes', () => cluster.nodes.has('n2'));
    assert.equal(hasRenewed('n1'), false, 'the first reading proves nothing');
    const { spec, ...lease } = leaseOf('n1');
    api.push(AGENTS, 'MODIFIED', { ...lease, spec: { ...spec, renewTime: '2026-11-01T10:00:10.000000Z' } });
    await until('the renewal', () => hasRenewed('n1'));
    clock.now += 50;
    heard();
    await until('the report to be stale', () => isStale('n1'));
    api.push(AGENTS, 'ADDED', leaseOf('n2'));
    api.push(AGENTS, 'DELETED', leaseOf('n1'));
    heard();
    await nextTurn();
    // When the other node's report is stale, the nodes were checked again.
    clock.now += 50;
    heard();
    await until('the other report to be stale', () => isStale('n2'));
    assert.ok(isStale('n1'));
    api.push(NODES, 'DELETED', nodeOf('n1'));
    await until('the report to be forgotten with its node', () => !isStale('n1'));
    assert.equal(state.fleet.get('n1'), undefined);
    await end();
  });

  it('are as many as the metric counts, and a renewal waits for no timer', async () => {
    const { api, clock, cluster, end } = startCluster();
    await until('the watch', () => api.watched(AGENTS));
    // The renewals of a second in a cluster of 15,000 nodes.
    for (let i = 0; i < 1500; i++) api.push(AGENTS, 'ADDED', leaseOf(`n${i}`));
    for (let turn = 0; turn < 1500 && api.unread(AGENTS) > 0; turn++) await nextTurn();
    assert.equal(api.unread(AGENTS), 0);
    await nextTurn();
    clock.now += 50;
    api.push(AGENTS, 'BOOKMARK', { metadata: { resourceVersion: '3' } });
    await until('every agent to be silent', () => cluster.silentAgents === 1500);
    await end();
  });
});
