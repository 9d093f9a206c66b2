import assert from 'node:assert/strict';
import {
  answerLimit,
  DEFAULT_RESERVATION_SECONDS,
  isLater,
  type Place,
  type PodObservation,
  type ReservationEnd,
  reservationSeconds,
} from '../../../model/reservations/reservation.ts';
import { Reservations } from '../../../model/reservations/reservations.ts';

const PLACE: Place = { cpus: undefined, score: 5 };
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

function ledgerOf(shown: readonly string[] = []) {
  const ends: ReservationEnd[] = [];
  const reports = new Set(shown);
  const reservations = new Reservations<string>({
    isShown: (node, uid) => reports.has(`${node} ${uid}`),
    onEnd: (_, end) => ends.push(end),
  });
  const promise = (nodes: readonly string[], version = '10', now = 0) =>
    reservations.reserve({
      namespace: 'default',
      uid: 'a',
      pod: 'needs',
      places: new Map(nodes.map((node) => [node, PLACE])),
      version,
      expires: now + 60,
    });
  const held = () => ['n1', 'n2', 'n3'].filter((node) => reservations.assumedOn(node).length > 0);
  return { reservations, ends, promise, held, reports };
}

type Act = (under: ReturnType<typeof ledgerOf>) => void;

const CASES: readonly {
  name: string;
  acts: readonly Act[];
  held: readonly string[];
  ends: readonly ReservationEnd[];
}[] = [
  {
    name: 'a promise holds every node of the answer',
    acts: [({ promise }) => promise(['n1', 'n2'])],
    held: ['n1', 'n2'],
    ends: [],
  },
  {
    name: 'a new filter call for the same pod replaces the previous promise',
    acts: [({ promise }) => promise(['n1', 'n2']), ({ promise }) => promise(['n3'])],
    held: ['n3'],
    ends: ['filtered-again'],
  },
  {
    name: 'a filter call that refuses all nodes ends it',
    acts: [({ promise }) => promise(['n1']), ({ promise }) => promise([])],
    held: [],
    ends: ['filtered-again'],
  },
  {
    name: 'the binding narrows it, and time no longer ends it',
    acts: [
      ({ promise }) => promise(['n1', 'n2']),
      ({ reservations }) => reservations.observe(sight({ node: 'n2' })),
      ({ reservations }) => reservations.expire(10_000),
    ],
    held: ['n2'],
    ends: [],
  },
  {
    name: 'a binding to another node ends it and holds that node',
    acts: [({ promise }) => promise(['n1']), ({ reservations }) => reservations.observe(sight({ node: 'n3' }))],
    held: ['n3'],
    ends: ['bound-elsewhere'],
  },
  {
    name: 'a nomination narrows it',
    acts: [
      ({ promise }) => promise(['n1', 'n2']),
      ({ reservations }) => reservations.observe(sight({ nominated: 'n1' })),
    ],
    held: ['n1'],
    ends: [],
  },
  {
    name: 'a withdrawn nomination ends it',
    acts: [
      ({ promise }) => promise(['n1', 'n2']),
      ({ reservations }) => reservations.observe(sight({ nominated: 'n1' })),
      ({ reservations }) => reservations.observe(sight({ version: '21' })),
    ],
    held: [],
    ends: ['nomination-withdrawn'],
  },
  {
    name: 'PodScheduled False ends it',
    acts: [({ promise }) => promise(['n1']), ({ reservations }) => reservations.observe(sight({ dropped: true }))],
    held: [],
    ends: ['unschedulable'],
  },
  {
    name: 'the refusal of an earlier try does not end it',
    acts: [
      ({ promise }) => promise(['n1'], '25'),
      ({ reservations }) => reservations.observe(sight({ dropped: true })),
    ],
    held: ['n1'],
    ends: [],
  },
  {
    name: 'news from before the binding changes nothing for a bound pod',
    acts: [
      ({ reservations }) => reservations.observe(sight({ node: 'n1', version: '30' })),
      ({ reservations }) => reservations.observe(sight({ dropped: true, version: '31' })),
    ],
    held: ['n1'],
    ends: [],
  },
  {
    name: 'the deletion ends it',
    acts: [({ promise }) => promise(['n1']), ({ reservations }) => reservations.deleted('a')],
    held: [],
    ends: ['deleted'],
  },
  {
    name: 'the end of a bound pod ends it, with or without a report',
    acts: [
      ({ reservations }) => reservations.observe(sight({ node: 'n1' })),
      ({ reservations }) => reservations.observe(sight({ node: 'n1', terminal: true })),
    ],
    held: [],
    ends: ['terminal'],
  },
  {
    name: 'the timeout ends it',
    acts: [
      ({ promise }) => promise(['n1'], '10', 100),
      ({ reservations, held }) => {
        reservations.expire(159);
        assert.deepEqual(held(), ['n1']);
      },
      ({ reservations }) => reservations.expire(160),
    ],
    held: [],
    ends: ['expired'],
  },
  {
    name: 'the timeout of a short promise ends it, even after a longer one',
    acts: [
      ({ reservations }) =>
        reservations.reserve({
          namespace: 'default',
          uid: 'b',
          pod: 'needs',
          places: new Map([['n2', PLACE]]),
          version: '10',
          expires: 700,
        }),
      ({ promise }) => promise(['n1']),
      ({ reservations }) => reservations.expire(60),
      ({ reservations, held }) => {
        assert.deepEqual(held(), ['n2']);
        reservations.expire(699);
        assert.deepEqual(held(), ['n2']);
        reservations.expire(700);
      },
    ],
    held: [],
    ends: ['expired', 'expired'],
  },
  {
    name: 'a report that shows the pod ends it, even before the watch reports the binding',
    acts: [
      ({ promise }) => promise(['n1', 'n2']),
      ({ reservations, reports }) => {
        reports.add('n2 a');
        reservations.reported('n2', ['a']);
      },
      ({ reservations }) => reservations.observe(sight({ node: 'n2' })),
    ],
    held: [],
    ends: ['shown'],
  },
  {
    name: 'a report of another node that shows a bound pod does not end it',
    acts: [
      ({ reservations }) => reservations.observe(sight({ node: 'n1' })),
      ({ reservations, reports }) => {
        reports.add('n2 a');
        reservations.reported('n2', ['a']);
      },
    ],
    held: ['n1'],
    ends: [],
  },
  {
    name: 'a report that shows a pod with several promised nodes ends only its own node’s promise',
    acts: [
      ({ promise }) => promise(['n1', 'n2', 'n3']),
      ({ reservations, reports }) => {
        reports.add('n2 a');
        reservations.reported('n2', ['a']);
      },
    ],
    held: ['n1', 'n3'],
    ends: [],
  },
  {
    name: 'a pod still holds the node that it is bound to after a false report',
    acts: [
      ({ promise }) => promise(['n1', 'n2']),
      ({ reservations, reports }) => {
        reports.add('n2 a');
        reservations.reported('n2', ['a']);
      },
      ({ reservations }) => reservations.observe(sight({ node: 'n1' })),
    ],
    held: ['n1'],
    ends: [],
  },
  {
    name: 'a false report does not prevent later promises',
    acts: [
      ({ promise }) => promise(['n2']),
      ({ reservations, reports }) => {
        reports.add('n2 a');
        reservations.reported('n2', ['a']);
      },
      ({ promise }) => promise(['n1', 'n3'], '11'),
    ],
    held: ['n1', 'n3'],
    ends: ['filtered-again'],
  },
  {
    name: 'a promise that a report has narrowed ends in time, before later ones',
    acts: [
      ({ promise }) => promise(['n1', 'n2']),
      ({ reservations }) =>
        reservations.reserve({
          namespace: 'default',
          uid: 'b',
          pod: 'needs',
          places: new Map([['n3', PLACE]]),
          version: '10',
          expires: 90,
        }),
      ({ reservations, reports }) => {
        reports.add('n2 a');
        reservations.reported('n2', ['a']);
      },
      ({ reservations }) => reservations.expire(61),
    ],
    held: ['n3'],
    ends: ['expired'],
  },
  {
    name: 'a pod that a report has shown does not come back',
    acts: [
      ({ reservations }) => reservations.observe(sight({ node: 'n1' })),
      ({ reservations, reports }) => {
        reports.add('n1 a');
        reservations.reported('n1', ['a']);
        reports.clear();
        reservations.reported('n1', []);
      },
      ({ reservations }) => reservations.observe(sight({ node: 'n1', version: '40' })),
    ],
    held: [],
    ends: ['shown'],
  },
  {
    name: 'bound and nominated pods hold their nodes after a restart',
    acts: [
      ({ reservations }) => reservations.observe(sight({ node: 'n1' })),
      ({ reservations }) => reservations.observe(sight({ uid: 'b', nominated: 'n2' })),
    ],
    held: ['n1', 'n2'],
    ends: [],
  },
  {
    name: 'a filter call for a bound pod promises nothing',
    acts: [({ reservations }) => reservations.observe(sight({ node: 'n1' })), ({ promise }) => promise(['n2'])],
    held: ['n1'],
    ends: [],
  },
];

describe('model/reservations: state machine', () => {
  for (const { name, acts, held, ends } of CASES) {
    it(name, () => {
      const under = ledgerOf();
      for (const act of acts) act(under);
      assert.deepEqual(under.held(), held);
      assert.deepEqual(under.ends, ends);
    });
  }

  it('tells which nodes have changed, and nothing of what is repeated', () => {
    const changed: string[] = [];
    const ended: string[] = [];
    const reservations = new Reservations<string>({
      isShown: () => false,
      onAssumed: (node) => changed.push(node),
      onEnd: ({ uid, places }, end) => ended.push(`${uid} ${end} on ${[...places.keys()]}`),
    });
    const places = (...nodes: string[]) => new Map(nodes.map((node) => [node, PLACE]));
    const acts: [what: string, act: () => void, changed: string, ended: string][] = [
      [
        'a promise',
        () =>
          reservations.reserve({
            namespace: 'default',
            uid: 'a',
            pod: 'p',
            places: places('n1', 'n2', 'n3'),
            version: '10',
            expires: 60,
          }),
        'n1,n2,n3',
        '',
      ],
      ['a report that shows it', () => reservations.reported('n2', ['a', 'unknown']), 'n2', ''],
      ['the same report again', () => reservations.reported('n2', ['a']), '', ''],
      ['a nomination', () => reservations.observe(sight({ nominated: 'n3' })), 'n1,n3,n3', ''],
      ['the same nomination again', () => reservations.observe(sight({ nominated: 'n3', version: '21' })), '', ''],
      ['an older nomination', () => reservations.observe(sight({ nominated: 'n1', version: '9' })), '', ''],
      [
        'another nomination',
        () => reservations.observe(sight({ nominated: 'n4', version: '22' })),
        'n3,n4',
        'a bound-elsewhere on n3',
      ],
      ['the binding', () => reservations.observe(sight({ node: 'n4' })), 'n4,n4', ''],
      ['the same binding again', () => reservations.observe(sight({ node: 'n4', version: '30' })), '', ''],
      ['a nomination after the binding', () => reservations.observe(sight({ nominated: 'n1', version: '31' })), '', ''],
      ['a withdrawal after the binding', () => reservations.withdraw('a'), '', ''],
      ['a report of another node', () => reservations.reported('n1', ['a']), '', ''],
      ['the report of its node', () => reservations.reported('n4', ['a']), 'n4', 'a shown on n4'],
      ['the same report of its node again', () => reservations.reported('n4', ['a']), '', ''],
      ['a nomination after the report', () => reservations.observe(sight({ nominated: 'n1', version: '40' })), '', ''],
      ['the deletion', () => reservations.deleted('a'), '', ''],
    ];
    for (const [what, act, nodes, ends] of acts) {
      changed.length = 0;
      ended.length = 0;
      act();
      assert.deepEqual([`${changed.sort()}`, `${ended}`], [nodes, ends], what);
    }
    assert.equal(reservations.size, 0);
  });

  it('keeps the order of the reservations on a node, and one version of each', () => {
    const { reservations } = ledgerOf();
    const promise = (uid: string, nodes: readonly string[]) =>
      reservations.reserve({
        namespace: 'default',
        uid,
        pod: uid,
        places: new Map(nodes.map((node) => [node, PLACE])),
        version: '10',
        expires: 60,
      });
    const on = (node: string, except?: string) => reservations.assumedOn(node, except).map(({ uid }) => uid);
    promise('a', ['n1', 'n2']);
    promise('b', ['n1']);
    promise('c', ['n1', 'n3']);
    assert.deepEqual([on('n1'), on('n1', 'b'), on('n2'), on('n4')], [['a', 'b', 'c'], ['a', 'c'], ['a'], []]);
    reservations.reported('n2', ['a']);
    assert.deepEqual([on('n1'), on('n2')], [['a', 'b', 'c'], []]);
    assert.equal(reservations.assumedOn('n1')[0], reservations.of('a'));
    assert.deepEqual([...(reservations.of('a')?.places.keys() ?? [])], ['n1']);
    const ids = () => reservations.assumedOn('n1').map(({ id }) => id);
    assert.ok(
      ids().every((id, i) => i === 0 || id > ids()[i - 1]!),
      `${ids()}`,
    );
    reservations.observe(sight({ uid: 'b', node: 'n1' }));
    assert.deepEqual(on('n1'), ['a', 'c', 'b']);
    reservations.observe(sight({ uid: 'c', node: 'n1' }));
    reservations.observe(sight({ uid: 'b', node: 'n1', version: '21' }));
    assert.deepEqual([on('n1'), on('n3')], [['a', 'b', 'c'], []]);
    assert.deepEqual([reservations.size, reservations.unbound], [3, 1]);
    assert.deepEqual(
      [reservations.isBoundTo('b', 'n1'), reservations.isBoundTo('b', 'n3'), reservations.isBoundTo('a', 'n1')],
      [true, false, false],
    );
    reservations.deleted('b');
    reservations.withdraw('a');
    assert.deepEqual([reservations.isBoundTo('b', 'n1'), reservations.size, reservations.unbound], [false, 1, 0]);
  });

  it('promises nothing for a pod that its node has shown, until it is gone', () => {
    const { reservations, promise, held, reports } = ledgerOf();
    reports.add('n1 a');
    reservations.observe(sight({ node: 'n1' }));
    reports.clear();
    promise(['n2']);
    assert.deepEqual(held(), []);
    reservations.observe(sight({ node: 'n1', terminal: true }));
    promise(['n2']);
    assert.deepEqual(held(), ['n2']);
  });

  it('compares resourceVersions as numbers', () => {
    assert.ok(isLater('100', '99') && !isLater('99', '100') && !isLater('7', '7') && isLater('x', 'y'));
    assert.ok(
      isLater('10', 'x') && isLater('x', '10') && !isLater('x', 'x') && isLater('8', '7') && !isLater('7', '8'),
    );
    assert.ok(!isLater('1x', '1x') && isLater('x1', '1'));
  });
});

describe('model/reservations: duration of a promise', () => {
  it('is longer than kube-scheduler’s wait for volumes, and short for a pod without volumes', () => {
    const bindTimeoutSeconds = 600;
    assert.ok(reservationSeconds(true, DEFAULT_RESERVATION_SECONDS) > bindTimeoutSeconds);
    assert.equal(reservationSeconds(false, DEFAULT_RESERVATION_SECONDS), 60);
    assert.equal(reservationSeconds(false, 30), 30);
  });
});

describe('model/reservations: answer limit', () => {
  const CASES = [
    { most: 16, candidates: 2, others: 0, answers: 16 },
    { most: 16, candidates: 2, others: 1, answers: 1 },
    { most: 16, candidates: 5000, others: 10, answers: 16 },
    { most: 16, candidates: 100, others: 4, answers: 5 },
    { most: 16, candidates: 64, others: 1, answers: 8 },
    { most: 16, candidates: 63, others: 1, answers: 7 },
    { most: 3, candidates: 64, others: 1, answers: 3 },
  ];
  for (const { most, candidates, others, answers } of CASES) {
    it(`is ${answers} of ${candidates} while ${others} others are in flight`, () => {
      assert.equal(answerLimit(most, candidates, others), answers);
    });
  }
});
