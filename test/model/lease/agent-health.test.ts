import assert from 'node:assert/strict';
import { AgentHealth } from '../../../model/lease/agent-health.ts';

describe('reports of agents are current', () => {
  const lease = (second: number, duration = 40) => ({
    node: 'n1',
    renewTime: `2026-01-01T00:00:${second}.000000Z`,
    duration,
  });
  const stale = (health: AgentHealth, now: number, listenedAt: number | undefined = now) => [
    ...health.stale(now, listenedAt),
  ];

  it('for the duration that the Lease had at its renewal', () => {
    const health = new AgentHealth();
    assert.deepEqual(stale(health, 1000), []);
    health.changed(lease(10), 100);
    assert.deepEqual([stale(health, 139.9), stale(health, 140)], [[], ['n1']]);
    health.changed(lease(20), 110);
    assert.deepEqual([stale(health, 149), stale(health, 150)], [[], ['n1']]);
    // The same renewal is not new; it may shorten the time but not lengthen it.
    health.changed(lease(20, 60), 130);
    assert.deepEqual([stale(health, 149), stale(health, 150)], [[], ['n1']]);
    health.changed(lease(20, 20), 130);
    assert.deepEqual([stale(health, 129), stale(health, 130)], [[], ['n1']]);
  });

  it('while the watch is silent', () => {
    const health = new AgentHealth();
    health.changed(lease(10), 100);
    assert.deepEqual([stale(health, 200, 139), stale(health, 200, 140)], [[], ['n1']]);
    assert.deepEqual([...health.stale(200, undefined)], []);
    health.changed({ ...lease(10), node: 'n2' }, 190);
    assert.deepEqual(stale(health, 200), ['n1']);
    health.forget('n1');
    assert.deepEqual([stale(health, 200), stale(health, 230)], [[], ['n2']]);
  });
});
