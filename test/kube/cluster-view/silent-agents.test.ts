import assert from 'node:assert/strict';
import { SilentAgents } from '../../../kube/cluster-view/silent-agents.ts';

const NODES = new Map([['n1', {}]]);
const lease = (renewTime: string) => ({ node: 'n1', renewTime, duration: 40 });

function stage(reported: readonly string[] = []) {
  const clock = { now: 0 };
  const events: string[] = [];
  const agents = new SilentAgents({
    onSilent: (node, isSilent) => void events.push(`${node} ${isSilent ? 'silent' : 'back'}`),
    onRenewed: (node, hasRenewed) => void events.push(`${node} ${hasRenewed ? 'renewed' : 'forgotten'}`),
    nowSeconds: () => clock.now,
  });
  return {
    agents,
    renew: (renewTime: string) => agents.leaseChanged({ before: undefined, after: lease(renewTime) }, NODES),
    /** What has changed since the last check, with one at that second. @param lastHeard of the watch */
    async check(now: number, lastHeard = now): Promise<string> {
      clock.now = now;
      // The check of a run that ends while it waits.
      const running = new AbortController();
      const run = agents.run({ lastHeard }, running.signal, () => reported);
      running.abort();
      await run;
      return events.splice(0).join();
    },
  };
}

describe('the agent of a node', () => {
  it('is silent after the duration of its Lease, if the watch was heard since, until a renewal', async () => {
    const { renew, check, agents } = stage();
    renew('a');
    assert.equal(await check(39), '', 'the first reading proves nothing');
    assert.equal(await check(40, 39), '', 'the watch is silent, too');
    assert.equal(await check(40), 'n1 silent');
    assert.deepEqual([...agents.nodes], ['n1']);
    renew('b');
    assert.equal(await check(41), 'n1 renewed,n1 back');
  });

  it('is silent if the extender says so, until a renewal is observed', async () => {
    const { renew, check } = stage(['n1']);
    assert.equal(await check(0), 'n1 silent');
    renew('a');
    assert.equal(await check(1), '');
    renew('b');
    assert.equal(await check(2), 'n1 renewed,n1 back');
  });

  it('is forgotten when its Lease and its Node are both deleted', async () => {
    const gone = { before: lease('a'), after: undefined };
    const first = stage();
    first.renew('a');
    first.agents.leaseChanged(gone, NODES);
    assert.equal(await first.check(50), 'n1 silent');
    first.agents.nodeDeleted('n1');
    assert.equal(await first.check(51), 'n1 forgotten,n1 back');
    const last = stage();
    last.renew('a');
    last.agents.nodeDeleted('n1');
    assert.equal(await last.check(50), 'n1 silent');
    last.agents.leaseChanged(gone, new Map());
    assert.equal(await last.check(51), 'n1 forgotten,n1 back');
  });
});
