import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  answerLimit,
  DEFAULT_RESERVATION_SECONDS,
  isLater,
  type Place,
  type PodObservation,
  type ReservationEnd,
  reservationSeconds,
} from '../../model/reservations/reservation.ts';
import { Reservations } from '../../model/reservations/reservations.ts';
import { World } from './reservations/stage.ts';

const PLACE: Place = { cpus: undefined, score: 5 };
const placesOn = (...nodes: string[]) => new Map(nodes.map((node) => [node, PLACE]));
const sight = (more: Partial<PodObservation<string>> = {}): PodObservation<string> => ({
  uid: 'a',
  version: '20',
  node: undefined,
  nominated: undefined,
  dropped: false,
  terminal: false,
  pod: 'needs',
  ...more,
});
/** An event that changes the reservations. */
type Act = (under: ReturnType<typeof ledgerOf>) => void;
function ledgerOf() {
  const ends: ReservationEnd[] = [];
  const reports = new Set<string>();
  const reservations = new Reservations<string>({
    isShown: (node, uid) => reports.has(`${node} ${uid}`),
    onEnd: (_, end) => ends.push(end),
  });
  const reservedNodes = () => ['n1', 'n2', 'n3'].filter((node) => reservations.assumedOn(node).length > 0).join(' ');
  return { reservations, ends, reports, reservedNodes };
}
/** A filter call for a pod returned these nodes, at second 0; the scheduler may bind the pod within a minute. */
function promise(nodes: string, { uid = 'a', version = '10', expires = 60 } = {}): Act {
  const places = placesOn(...nodes.split(' ').filter(Boolean));
  return ({ reservations }) =>
    reservations.reserve({ namespace: 'default', uid, pod: 'needs', places, version, expires });
}
const observe =
  (more: Partial<PodObservation<string>>): Act =>
  ({ reservations }) =>
    reservations.observe(sight(more));
const bound = (node: string, version = '20') => observe({ node, version });
const ended = observe({ node: 'n1', terminal: true });
const deleted: Act = ({ reservations }) => reservations.deleted('a');
const expire =
  (now: number, remaining?: string): Act =>
  ({ reservations, reservedNodes }) => {
    reservations.expire(now);
    if (remaining !== undefined) assert.equal(reservedNodes(), remaining);
  };
/** The report of a node shows the pod. */
const reportShows =
  (node: string): Act =>
  ({ reservations, reports }) => {
    reports.add(`${node} a`);
    reservations.reported(node, ['a']);
  };
/** A later report of a node shows nothing. */
const emptyReport =
  (node: string): Act =>
  ({ reservations, reports }) => {
    reports.clear();
    reservations.reported(node, []);
  };
const CASES: readonly (readonly [what: string, acts: readonly Act[], nodes: string, ...ends: ReservationEnd[]])[] = [
  ['a promise holds every node of the answer', [promise('n1 n2')], 'n1 n2'],
  ['a new filter call for the same pod replaces it', [promise('n1 n2'), promise('n3')], 'n3', 'filtered-again'],
  ['the binding narrows it, and time no longer ends it', [promise('n1 n2'), bound('n2'), expire(10_000)], 'n2'],
  ['a binding to another node ends it and holds that node', [promise('n1'), bound('n3')], 'n3', 'bound-elsewhere'],
  [
    'a withdrawn nomination ends it',
    [promise('n1 n2'), observe({ nominated: 'n1' }), observe({ version: '21' })],
    '',
    'nomination-withdrawn',
  ],
  ['the refusal of an earlier try does not', [promise('n1', { version: '25' }), observe({ dropped: true })], 'n1'],
  ['old news of a bound pod change nothing', [bound('n1', '30'), observe({ dropped: true, version: '31' })], 'n1'],
  ['the end of a bound pod ends it, with or without a report', [bound('n1'), ended], '', 'terminal'],
  ['the timeout ends it', [promise('n1'), expire(59, 'n1'), expire(60)], '', 'expired'],
  [
    'the timeout of a short promise ends it, even after a longer one',
    [promise('n2', { uid: 'b', expires: 700 }), promise('n1'), expire(60, 'n2'), expire(699, 'n2'), expire(700)],
    '',
    'expired',
    'expired',
  ],
  [
    'a report that shows the pod ends it, even before the watch reports the binding',
    [promise('n1 n2'), reportShows('n2'), bound('n2')],
    '',
    'shown',
  ],
  ['a report of another node that shows a bound pod does not end it', [bound('n1'), reportShows('n2')], 'n1'],
  [
    'a report that shows a pod with several promised nodes ends only its own node’s promise',
    [promise('n1 n2 n3'), reportShows('n2')],
    'n1 n3',
  ],
  [
    'a pod still holds the node that it is bound to after a false report',
    [promise('n1 n2'), reportShows('n2'), bound('n1')],
    'n1',
  ],
  [
    'a pod that a report has shown does not come back',
    [bound('n1'), reportShows('n1'), emptyReport('n1'), bound('n1', '40')],
    '',
    'shown',
  ],
  [
    'a pod that its node has shown gets no promise, also when it has ended',
    [bound('n1'), reportShows('n1'), promise('n2'), ended, promise('n3')],
    '',
    'shown',
  ],
  [
    'a deleted pod gets no promise from a filter call that is late',
    [promise('n1'), deleted, promise('n2')],
    '',
    'deleted',
  ],
  ['one that is seen again gets one', [promise('n1'), deleted, observe({}), promise('n2')], 'n2', 'deleted'],
];
describe('the state machine of reservations', () => {
  for (const [what, acts, nodes, ...ends] of CASES) {
    it(what, () => {
      const under = ledgerOf();
      for (const act of acts) act(under);
      assert.deepEqual([under.reservedNodes(), under.ends], [nodes, ends]);
    });
  }

  it('keeps the order of the reservations on a node, and one version of each', () => {
    const under = ledgerOf();
    const { reservations } = under;
    const on = (node: string, except?: string) => reservations.assumedOn(node, except).map(({ uid }) => uid);
    for (const act of [promise('n1 n2'), promise('n1', { uid: 'b' }), promise('n1 n3', { uid: 'c' })]) act(under);
    assert.deepEqual([on('n1'), on('n1', 'b'), on('n2'), on('n4')], [['a', 'b', 'c'], ['a', 'c'], ['a'], []]);
    reservations.reported('n2', ['a']);
    assert.deepEqual([on('n1'), on('n2')], [['a', 'b', 'c'], []]);
    assert.equal(reservations.assumedOn('n1')[0], reservations.of('a'));
    assert.deepEqual([...(reservations.of('a')?.places.keys() ?? [])], ['n1']);
    const ids = reservations.assumedOn('n1').map(({ id }) => id);
    assert.deepEqual(
      ids,
      ids.toSorted((a, b) => a - b),
    );
    reservations.observe(sight({ uid: 'b', node: 'n1' }));
    assert.deepEqual(on('n1'), ['a', 'c', 'b']);
    reservations.observe(sight({ uid: 'c', node: 'n1' }));
    reservations.observe(sight({ uid: 'b', node: 'n1', version: '21' }));
    assert.deepEqual([on('n1'), on('n3')], [['a', 'b', 'c'], []]);
    assert.deepEqual([reservations.size, reservations.unbound], [3, 1]);
    const isBound = [reservations.isBoundTo('b', 'n1'), reservations.isBoundTo('b', 'n3')];
    assert.deepEqual([...isBound, reservations.isBoundTo('a', 'n1')], [true, false, false]);
    reservations.deleted('b');
    reservations.withdraw('a');
    assert.deepEqual([reservations.isBoundTo('b', 'n1'), reservations.size, reservations.unbound], [false, 1, 0]);
  });

  it('compares resourceVersions as numbers', () => {
    const pairs = (text: string) => text.split(', ').map((pair) => pair.split(' ') as [string, string]);
    for (const pair of pairs('100 99, 8 7, x y, 10 x, x 10, x1 1')) assert.ok(isLater(...pair), `${pair}`);
    for (const pair of pairs('99 100, 7 7, x x, 1x 1x')) assert.ok(!isLater(...pair), `${pair}`);
  });
});
describe('the duration of a promise', () => {
  it('is longer than kube-scheduler’s wait for volumes, and short for a pod without volumes', () => {
    const bindTimeoutSeconds = 600;
    assert.ok(reservationSeconds(true, DEFAULT_RESERVATION_SECONDS) > bindTimeoutSeconds);
    assert.equal(reservationSeconds(false, DEFAULT_RESERVATION_SECONDS), 60);
    assert.equal(reservationSeconds(false, 30), 30);
  });
});
describe('the number of nodes in an answer', () => {
  for (const [what, most, candidates, others, expected] of [
    ['all for a pod alone', 16, 2, 0, 16],
    ['a share while others are in flight', 16, 100, 4, 5],
    ['a lower limit', 3, 64, 1, 3],
  ] as const) {
    it(`is ${expected}: ${what}`, () => assert.equal(answerLimit(most, candidates, others), expected));
  }
});

type Step = (world: World) => void;
/** Weighted so that the nodes are full most of the time. */
const steps: readonly [weight: number, run: (world: World, which: number) => void][] = [
  [6, (world, which) => world.create(which)],
  [8, (world, which) => world.schedule(which % 51, 1 + (which % 2), which >> 1, (which >> 1) % 8 === 0)],
  [6, (world, which) => world.bind(which)],
  [2, (world, which) => world.nominate(which)],
  [1, (world, which) => world.fail(which)],
  [6, (world, which) => world.admit(which)],
  [3, (world, which) => world.report(which)],
  [3, (world, which) => world.hearReport(which)],
  [8, (world) => world.hearPod()],
  [2, (world, which) => world.end(which)],
  [2, (world, which) => world.wait([7, 61, 300, 599][which % 4]!)],
  [1, (world) => world.restartScheduler()],
  [1, (world) => world.takeOver()],
];
const step: fc.Arbitrary<Step> = fc.oneof(
  ...steps.map(([weight, run]) => ({
    weight,
    arbitrary: fc.nat(10_000).map((which) => (world: World) => run(world, which)),
  })),
);
/** Raise it for a deeper search: 4,000 runs take about ten seconds for each case. */
const RUNS = Number(process.env['PLUMBLINE_PROPERTY_RUNS'] ?? 200);
const NODES = ['n0', 'n1'];
/** Counts promises and admissions over all runs, to show that the property was really tested. */
function check(changes: ConstructorParameters<typeof World>[1], numRuns: number) {
  const counts = { promised: 0, admissions: 0, refused: 0, evicted: 0 };
  fc.assert(
    fc.property(fc.array(step, { minLength: 60, maxLength: 240 }), (sequence) => {
      const world = new World(NODES, changes);
      for (const take of sequence) take(world);
      while (world.pods.some(({ assumed }) => assumed)) world.bind(0);
      while (world.pods.some(({ node, admitted, ended }) => node && !admitted && !ended)) world.admit(0);
      world.giveUpWaiting();
      world.settle();
      for (const [id, ends] of world.ends) assert.equal(ends.length, 1, `claim ${id} ended ${ends.join(' and ')}`);
      assert.equal(world.reservations.size, 0, 'nothing is held once every report has come in');
      for (const what of ['promised', 'admissions', 'refused', 'evicted'] as const) counts[what] += world[what];
    }),
    { numRuns },
  );
  return counts;
}
describe('reservations fit in every order in which kubelets admit pods', function () {
  this.timeout(300_000);
  const options = { 'full-pcpus-only': 'true' };
  for (const [what, policy, cpuOptions] of [
    ['whole cores', 'none', options],
    ['whole cores', 'best-effort', options],
    ['whole cores', 'restricted', options],
    ['whole cores', 'single-numa-node', options],
    ['threads', 'best-effort', {}],
  ] as const) {
    it(`${what}, topology policy ${policy}`, () => {
      const cpuManager = { policy: 'static', options: cpuOptions };
      const counts = check({ cpuManager, topologyManager: { policy } }, RUNS);
      const { promised, admissions } = counts;
      console.log(`      ${JSON.stringify(counts)}`);
      assert.ok(promised > RUNS / 2 && admissions > RUNS / 2, `${promised} promised, ${admissions} admitted`);
    });
  }
});
