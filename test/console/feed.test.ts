import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { formatCpus } from '../../console/data/cpu-list.ts';
import { Paint } from '../../console/data/node.ts';
import { Store } from '../../console/data/store.ts';
import { Flag, WIRE_VERSION as PAGES_VERSION, type WireRecord } from '../../console/data/wire.ts';
import { NodeFlag } from '../../scheduler-plugin/cluster/fleet.ts';
import { WIRE_VERSION } from '../../scheduler-plugin/web-console/records.ts';
import { statusOf } from '../scheduler-plugin/extender-fixture.ts';
import { launcher } from './cluster.ts';
import { type Listener, listen } from './events.ts';
import { type ConsoleFixture, type ConsoleUnderTest, consoleOf, waitingPod } from './fixture.ts';

const isReady = ({ event }: { readonly event: string }) => event === 'ready';
const isRecords = ({ event }: { readonly event: string }) => event === 'message';

/** What a page would hold after all that a listener was sent. */
function pageOf(events: Listener['events'], store = new Store()): Store {
  for (const { event, data } of events) {
    if (event === 'hello' && !(JSON.parse(data) as { resumed: boolean }).resumed) store.clear();
    if (event === 'message') store.take(JSON.parse(data) as WireRecord[]);
  }
  return store;
}

describe('what the console sends', () => {
  let under: ConsoleUnderTest;
  const listeners: Listener[] = [];
  const start = async (fixture: ConsoleFixture) => {
    under = await consoleOf(fixture);
  };
  const join = async (path = '/events', headers: Record<string, string> = {}) => {
    const listener = await listen(`${under.url}${path}`, headers);
    listeners.push(listener);
    return listener;
  };
  afterEach(async () => {
    for (const listener of listeners.splice(0)) listener.close();
    await under.stop();
  });

  it('is of the version that the page reads, with the same flags', () => {
    assert.equal(WIRE_VERSION, PAGES_VERSION);
    assert.deepEqual({ ...Flag }, { ...NodeFlag });
    return start({});
  });

  it('makes the page know each node: hardware, owners by the name of their VM, padding, networks, free cores', async () => {
    const vm = { namespace: 'east', name: 'fw', uid: 'u1', count: 4, padding: 1 };
    await start({
      nodes: {
        n1: statusOf({ assignments: [{ podUID: 'u1', container: 'compute', cpus: '1-2,9-10' }], pmdCPUs: '3,11' }),
      },
    });
    const pod = launcher(vm);
    under.see({ ...pod, spec: { ...pod.spec, nodeName: 'n1' } }, { phase: 'Running' });
    const listener = await join();
    await listener.until(isReady);
    const node = pageOf(listener.events).nodeNamed('n1')!;
    const { shape, paint, padding, owners } = node;
    const cpusOf = (kind: number) =>
      formatCpus([...paint.keys()].filter((s) => paint[s] === kind).map((s) => shape!.slots[s]!.cpu));
    assert.deepEqual(owners, [['east/fw', 'compute', '1-2,9-10', 1]]);
    assert.equal(cpusOf(Paint.owner), '1-2,9-10');
    assert.equal(cpusOf(Paint.reserved), '0,8');
    assert.equal(cpusOf(Paint.polled), '3,11');
    assert.deepEqual(
      [...padding.keys()].filter((slot) => padding[slot]).map((slot) => shape!.slots[slot]!.cpu),
      [10],
    );
    assert.equal(node.freeCores, 4);
    assert.deepEqual(
      shape!.cells.map(({ id, physnets, tunnel }) => ({ id, physnets, tunnel })),
      [
        { id: 0, physnets: ['physnet0'], tunnel: false },
        { id: 1, physnets: ['physnet1'], tunnel: true },
      ],
    );
    assert.deepEqual(node.problems, []);
  });

  it('tells of changes alone, and once: a DPU, a report, a promise, a node that goes', async () => {
    await start({
      nodes: { n1: statusOf(), n2: statusOf() },
      dpus: { n2: { ready: false, state: 'dead', age: 50 } },
    });
    const listener = await join();
    await listener.until(isReady);
    const news = async (change: () => void) => {
      const from = listener.events.length;
      change();
      const event = await listener.until(isRecords, from);
      return JSON.parse(event.data) as WireRecord[];
    };
    assert.deepEqual(pageOf(listener.events).nodeNamed('n2')?.problems, ['dpu-dead']);
    const pod = waitingPod('vm', 4);
    const promised = await news(() => under.filter(pod, ['n1', 'n2']));
    assert.deepEqual(
      promised.map(([kind, , name]) => [kind, name]),
      [['n', 'n1']],
    );
    assert.deepEqual(
      pageOf(listener.events)
        .nodeNamed('n1')
        ?.held.map(([, kind]) => kind),
      ['promised'],
    );
    const gone = await news(() => {
      under.state.nodeChanged('n2', undefined);
      under.state.setFlag('n2', 'dpuDead', false);
      under.state.reportChanged('n2', undefined);
    });
    assert.deepEqual(gone, [['n', pageOf(listener.events.slice(0, -1)).nodeNamed('n2')!.id]]);
    assert.equal(pageOf(listener.events).nodeNamed('n2'), undefined);
    // The same report again is no news: what comes next is the change after it.
    under.state.reportChanged('n1', statusOf());
    const stale = await news(() => under.state.setFlag('n1', 'stale', true));
    assert.deepEqual(
      stale.map((record) => record.length),
      [8],
    );
    assert.deepEqual(pageOf(listener.events).nodeNamed('n1')?.problems, ['silent']);
  });

  it('tells who waits, with the reasons of the last try, and that he waits no more', async () => {
    await start({ nodes: { n1: statusOf() } });
    const pod = waitingPod('vm', 40);
    under.see(pod);
    under.filter(pod, ['n1']);
    const listener = await join();
    await listener.until(isReady);
    const [waits] = [...pageOf(listener.events).pods.values()];
    assert.equal(waits?.vm, 'vm');
    assert.equal(waits?.cpus, 40);
    assert.equal(waits?.since, '2026-05-04T10:00:00Z');
    assert.deepEqual(
      waits?.decision?.refused.map(([, nodes]) => nodes),
      [1],
    );
    const from = listener.events.length;
    under.gone(pod);
    await listener.until(isRecords, from);
    assert.equal(pageOf(listener.events).pods.size, 0);
  });

  it('says that this replica is a standby, and who decides', async () => {
    await start({});
    const listener = await join();
    await listener.until(isReady);
    const from = listener.events.length;
    Object.assign(under.replica, { active: false, holder: 'extender-b_2' });
    await listener.until(isRecords, from);
    assert.deepEqual(pageOf(listener.events).replica, {
      active: false,
      holder: 'extender-b_2',
      identity: 'extender-a_1',
      version: '0.1.0',
    });
  });

  for (const how of ['the browser’s own header', 'the address']) {
    it(`lets a page that was away catch up with what changed, by ${how}`, async () => {
      await start({ invented: 300 });
      const first = await join();
      await first.until(isReady);
      const lastId = first.events.filter(isRecords).at(-1)!.id;
      first.close();
      await first.ended;
      under.state.setFlag('worker-5.east.example.internal', 'stale', true);
      const back =
        how === 'the address'
          ? await join(`/events?after=${lastId}`)
          : await join('/events', { 'last-event-id': lastId });
      await back.until(({ data }) => data.includes('worker-5.east'));
      assert.deepEqual(JSON.parse(back.events[0]!.data), { ...JSON.parse(back.events[0]!.data), resumed: true });
      const records = back.events.filter(isRecords).flatMap(({ data }) => JSON.parse(data) as WireRecord[]);
      assert.equal(records.length, 1);
      assert.deepEqual(
        pageOf(back.events, pageOf(first.events)).nodeNamed('worker-5.east.example.internal')?.problems,
        ['silent'],
      );
    });
  }

  for (const id of ['0123456789ab.7', 'nonsense', '.', '.-1', `.${'9'.repeat(30)}`]) {
    it(`begins anew for a page that comes from elsewhere (${id.slice(0, 20)})`, async () => {
      await start({ invented: 20 });
      const listener = await join(`/events?after=${encodeURIComponent(id)}`);
      await listener.until(isReady);
      assert.equal((JSON.parse(listener.events[0]!.data) as { resumed: boolean }).resumed, false);
      assert.equal(pageOf(listener.events).nodes.size, 20);
    });
  }

  it('forgets everything some time after the last page has gone, and then lets nobody resume', async () => {
    await start({ invented: 20, keep: 1 });
    const leave = under.feed.watch(() => undefined);
    const { epoch } = under.feed;
    leave();
    await delay(20);
    const back = await join(`/events?after=${epoch}.3`);
    await back.until(isReady);
    assert.equal((JSON.parse(back.events[0]!.data) as { resumed: boolean }).resumed, false);
    assert.notEqual(under.feed.epoch, epoch);
    assert.equal(pageOf(back.events).nodes.size, 20);
  });

  it('sends 5,000 nodes in less than a quarter of a megabyte where the client reads gzip', async () => {
    await start({ invented: 5000 });
    const listener = await join('/events', { 'accept-encoding': 'gzip' });
    await listener.until(isReady);
    const page = pageOf(listener.events);
    assert.equal(page.nodes.size, 5000);
    assert.ok(page.shapes <= 3, `${page.shapes} shapes`);
    assert.ok(listener.bytes < 250_000, `${listener.bytes} bytes`);
  });
});
