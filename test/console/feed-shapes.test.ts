import assert from 'node:assert/strict';
import type { Cluster } from '../../console/server/cluster.ts';
import { createFeed, type Feeding } from '../../console/server/feed.ts';
import { createReports } from '../../console/server/reports.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { statusOf } from '../scheduler-plugin/extender-fixture.ts';

type Reports = ReturnType<typeof createReports>;

/** A feed with only reports. */
function feedOf(): { feed: Feeding; reports: Reports; report(node: string, status?: NodeTopologyStatus): void } {
  const reports: Reports = createReports((node) => feed.listeners.node(node));
  const cluster: Cluster = {
    run: async () => undefined,
    missing: undefined,
    problem: undefined,
    leader: null,
    nodes: new Map(),
    reports: reports.byNode,
    paused: new Map(),
    forbidden: new Set(),
    stale: new Set(),
    draCpu: new Set(),
  };
  const status = () => ({ leader: null, missing: undefined, problem: undefined, version: 'v', without: [] });
  const feed: Feeding = createFeed({ cluster: () => cluster, status });
  return {
    feed,
    reports,
    report(node, report) {
      reports.take(node, report);
      feed.look();
    },
  };
}

/** The records for a page that is up to date to a number: kind and number of each, and the shape of a node. */
function sent({ records }: Feeding, after = 0): string[] {
  return [...records.after(after)]
    .map(({ json }) => JSON.parse(json) as [string, number, string?, number?])
    .filter(([kind]) => kind !== 'c')
    .map(
      ([kind, number, name, shape]) =>
        `${kind}${number}${name === undefined || kind === 's' ? '' : ` ${name} of ${shape}`}`,
    );
}

const other = (kubeletVersion: string) => ({ ...statusOf(), kubeletVersion });

describe('shapes in the stream of the console', () => {
  it('are shared by equal nodes and sent once, before the first of them', () => {
    const { feed, report } = feedOf();
    report('a', statusOf());
    report('b', statusOf({ assignments: [{ podUID: 'u', container: 'compute', cpus: '2-3' }] }));
    report('c', other('v1.35.0'));
    report('d', statusOf());
    assert.deepEqual(sent(feed), ['s0', 'n1 a of 0', 'n2 b of 0', 's1', 'n3 c of 1', 'n4 d of 0']);
  });

  it('change with their node, and are not sent again when it changes back', () => {
    const { feed, report } = feedOf();
    report('a', statusOf());
    report('a', other('v1.35.0'));
    const before = feed.records.last;
    report('a', statusOf());
    assert.deepEqual(sent(feed, before), ['n1 a of 0']);
    assert.deepEqual(sent(feed), ['s0', 's1', 'n1 a of 0']);
  });

  it('do not exist for a node with a contradictory report', () => {
    const { feed, report } = feedOf();
    report('a', statusOf({ reserved: '0,99' }));
    assert.deepEqual(sent(feed), ['n1 a of -1']);
  });

  it('of a removed node end with its number; a returning node gets another one', () => {
    const { feed, report } = feedOf();
    report('a', statusOf());
    report('b', statusOf());
    report('a');
    assert.deepEqual(sent(feed), ['s0', 'n2 b of 0', 'n1']);
    report('a', statusOf());
    assert.deepEqual(sent(feed), ['s0', 'n2 b of 0', 'n1', 'n3 a of 0']);
  });

  it('do not accumulate: with a thousand more than nodes, all are written again in another epoch', () => {
    const { feed, report } = feedOf();
    report('a', statusOf());
    report('b', statusOf());
    const { epoch } = feed;
    // Numbers 1 to 1001: one of b, and a thousand more than nodes.
    for (let i = 1; i <= 1001; i++) report('b', other(`v1.35.${i}`));
    assert.equal(feed.epoch, epoch);
    assert.equal(sent(feed).filter((one) => one.startsWith('s')).length, 1002);
    report('b', other('v1.35.1002'));
    assert.equal(feed.epoch, epoch);
    report('b', other('v1.35.1003'));
    assert.notEqual(feed.epoch, epoch);
    assert.deepEqual(sent(feed).sort(), ['n1 a of 1', 'n2 b of 0', 's0', 's1']);
  });
});
