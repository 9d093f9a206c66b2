import assert from 'node:assert/strict';
import { domainsText, NodeDomains } from '../../../scheduler-plugin/cluster/node-domains.ts';

const ZONE = 'topology.kubernetes.io/zone';
const zone = (name: string) => domainsText({ [ZONE]: name, 'kubernetes.io/hostname': 'n' });

describe('the topology domains of nodes', () => {
  it('have one number for each zone, even after thousands of nodes', () => {
    const domains = new NodeDomains();
    const ids = [0, 1, 255, 256, 257, 5000];
    for (const id of ids) domains.set(id, zone(id % 2 === 0 ? 'even' : 'odd'));
    const of = domains.of(ZONE);
    assert.deepEqual(
      ids.map((id) => of?.ofNode[id]),
      [1, 2, 2, 1, 2, 1],
    );
    assert.equal(of?.count, 2);
    assert.equal(domains.of('kubernetes.io/hostname'), undefined);
  });

  it('follow a node that moves or loses its label', () => {
    const domains = new NodeDomains();
    domains.set(3, zone('a'));
    domains.set(3, zone('b'));
    assert.equal(domains.of(ZONE)?.ofNode[3], 2);
    domains.set(3, '');
    assert.equal(domains.of(ZONE)?.ofNode[3], 0);
  });

  it('have at most eight keys, and no labels of more than 1,024 characters', () => {
    const domains = new NodeDomains();
    const labels = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`topology.kubernetes.io/k${i}`, 'v']));
    domains.set(0, domainsText(labels));
    const kept = Object.keys(labels).filter((key) => domains.of(key) !== undefined);
    assert.equal(kept.length, 8);
    assert.equal(domainsText({ [ZONE]: 'x'.repeat(1024) }), '');
    assert.equal(domainsText({ [ZONE]: 'x'.repeat(1023 - ZONE.length) }).length, 1024);
  });
});
